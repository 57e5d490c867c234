"""The order of joins: every connected pair of sets once, and the cheapest of all trees."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.statistics.join_graph import Equality, Join, JoinGraph, Relation, joins_of, members, set_of
from windrow.statistics.join_order import best_plan, connected_pairs, cost_of, greedy_plan, join_cost, with_small_builds


def graph_of(count, edges):
    relations = tuple(Relation(f"t{number}", f"t{number}") for number in range(count))
    return JoinGraph(relations, tuple(Equality(a, f"k{a}_{b}", b, f"k{a}_{b}") for a, b in edges))


@st.composite
def graphs(draw, most=6):
    """Connected graphs: a random tree, and more edges."""
    count = draw(st.integers(2, most))
    order = draw(st.permutations(range(count)))
    edges = {tuple(sorted((order[at], order[draw(st.integers(0, at - 1))]))) for at in range(1, count)}
    edges |= set(draw(st.lists(st.sampled_from(list(combinations(range(count), 2))), max_size=5)))
    return graph_of(count, sorted(edges))


@st.composite
def rows_of(draw, graph):
    """Rows of every set: those of its relations, and a share for each equality inside."""
    sizes = [draw(st.integers(1, 10**6)) for _ in graph.relations]
    shares = [draw(st.floats(1e-6, 1)) for _ in graph.equalities]

    def rows(relations):
        found = 1.0
        for number in members(relations):
            found *= sizes[number]
        for each, share in zip(graph.equalities, shares, strict=True):
            if 1 << each.left & relations and 1 << each.right & relations:
                found *= share
        return found

    return rows


def exhaustive(graph, rows):
    """The least cost of all trees without cross products, by trying each."""

    @cache
    def cost(relations):
        if relations & (relations - 1) == 0:
            return 0.0
        found = [float("inf")]
        part = (relations - 1) & relations
        while part:
            other = relations ^ part
            if graph.is_connected(part) and graph.is_connected(other) and graph.neighbours_of(part) & other:
                small, large = sorted((rows(part), rows(other)))
                found.append(cost(part) + cost(other) + join_cost(large, small, rows(relations)))
            part = (part - 1) & relations
        return min(found)

    return cost(graph.everything)


def check(graph, tree):
    """A tree is a plan of the query: each relation once, each join by an equality, each equality in one join."""
    assert set_of(tree) == graph.everything
    compared = []
    for join in joins_of(tree):
        assert set_of(join.left) & set_of(join.right) == 0
        compared += graph.between(set_of(join.left), set_of(join.right))
        assert graph.between(set_of(join.left), set_of(join.right))
    assert sorted(compared, key=repr) == sorted(graph.equalities, key=repr)


@given(graphs().flatmap(lambda graph: st.tuples(st.just(graph), rows_of(graph))))
@settings(max_examples=200, deadline=None)
def test_the_best_plan_is_the_cheapest_of_all_trees(given_):
    graph, rows = given_
    plan = best_plan(graph, rows)
    check(graph, plan.tree)
    assert plan.cost == pytest.approx(exhaustive(graph, rows))
    assert cost_of(plan.tree, rows) == pytest.approx(plan.cost)
    assert with_small_builds(plan.tree, rows) == plan.tree


@given(graphs(9).flatmap(lambda graph: st.tuples(st.just(graph), rows_of(graph))))
@settings(max_examples=100, deadline=None)
def test_a_greedy_plan_is_a_plan(given_):
    graph, rows = given_
    plan = greedy_plan(graph, rows)
    check(graph, plan.tree)
    assert plan.cost >= best_plan(graph, rows).cost * (1 - 1e-9)


@given(graphs(7))
@settings(max_examples=200, deadline=None)
def test_each_connected_pair_comes_once(graph):
    found = [tuple(sorted(pair)) for pair in connected_pairs(graph)]
    sets = [each for each in range(1, graph.everything + 1) if graph.is_connected(each)]
    expected = {(a, b) for a in sets for b in sets if a < b and not a & b and graph.neighbours_of(a) & b}
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_many_relations_are_ordered_greedily():
    chain = graph_of(20, [(number, number + 1) for number in range(19)])
    plan = best_plan(chain, lambda relations: float(2 ** (20 - relations.bit_count())))
    check(chain, plan.tree)


def test_a_star_joins_its_most_selective_dimension_first():
    star = graph_of(4, [(0, 1), (0, 2), (0, 3)])
    sizes = [1e6, 10.0, 100.0, 1000.0]
    shares = {1: 1e-5, 2: 1e-2, 3: 1e-3}

    def rows(relations):
        found = 1.0
        for number in members(relations):
            found *= sizes[number] * (shares[number] if number and relations & 1 else 1)
        return found

    tree = best_plan(star, rows).tree
    assert Join(0, 1) in joins_of(tree)
    assert tree.left == 3 or tree.right == 3 or tree.left == 2 or tree.right == 2


def test_a_written_equality_stands_for_its_class():
    graph = graph_of(3, [(0, 1), (1, 2)])
    implied = Equality(0, "k0_1", 2, "k1_2", is_implied=True)
    one_class = JoinGraph(
        graph.relations, (Equality(0, "k", 1, "k"), Equality(1, "k", 2, "k"), Equality(0, "k", 2, "k", is_implied=True))
    )
    assert implied not in one_class.equalities
    assert one_class.between(0b001, 0b100) == (Equality(0, "k", 2, "k", is_implied=True),)
    assert one_class.between(0b011, 0b100) == (Equality(1, "k", 2, "k"),)

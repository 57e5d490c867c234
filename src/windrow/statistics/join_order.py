"""The cheapest order of joins: every bushy tree by DPccp, greedily above twelve relations.

DPccp (Moerkotte and Neumann, 2006) visits each pair of connected sets that an equality connects once. The cost of a
tree is what its hash joins read, build and return, summed up; the smaller side of a join is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from windrow.statistics.join_graph import Join, JoinGraph, JoinTree, members, set_of

__all__ = [
    "MOST_ENUMERATED",
    "Plan",
    "Rows",
    "best_plan",
    "cost_of",
    "greedy_plan",
    "with_small_builds",
    "written_order",
]

Rows: TypeAlias = Callable[[int], float]
"""Gives the rows of a set of relations."""

MOST_ENUMERATED = 12
"""With more relations, orders are no longer enumerated."""
BUILD = 2.0
"""What a row that goes into a hash table costs, in rows that a join returns."""
PROBE = 0.5
"""What a row costs that looks a hash table up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A tree of joins and its cost."""

    tree: JoinTree
    cost: float


def join_cost(probe: float, build: float, result: float) -> float:
    """Return what one hash join costs."""
    return PROBE * probe + BUILD * build + result


def cost_of(tree: JoinTree, rows: Rows) -> float:
    """Return the cost of a tree as it stands: the right side of each join is built."""
    if not isinstance(tree, Join):
        return 0.0
    own = join_cost(rows(set_of(tree.left)), rows(set_of(tree.right)), rows(tree.relations))
    return cost_of(tree.left, rows) + cost_of(tree.right, rows) + own


def with_small_builds(tree: JoinTree, rows: Rows) -> JoinTree:
    """Return the same tree with the smaller side of each join on the right, where it is built."""
    if not isinstance(tree, Join):
        return tree
    left, right = with_small_builds(tree.left, rows), with_small_builds(tree.right, rows)
    return Join(right, left) if rows(set_of(left)) < rows(set_of(right)) else Join(left, right)


def best_plan(graph: JoinGraph, rows: Rows) -> Plan:
    """Return the cheapest plan; all relations are connected by equalities."""
    if len(graph.relations) > MOST_ENUMERATED:
        return greedy_plan(graph, rows)
    best: dict[int, Plan] = {1 << number: Plan(number, 0.0) for number in range(len(graph.relations))}
    for one, other in connected_pairs(graph):
        plan = _joined(best[one], best[other], rows)
        if plan.cost < best.get(one | other, _NO_PLAN).cost:
            best[one | other] = plan
    return best[graph.everything]


def greedy_plan(graph: JoinGraph, rows: Rows) -> Plan:
    """Return a plan that always joins the two trees whose join is cheapest."""
    trees = {1 << number: Plan(number, 0.0) for number in range(len(graph.relations))}
    while len(trees) > 1:
        pairs = [(a, b) for a in trees for b in trees if a < b and graph.neighbours_of(a) & b]
        joined = [(_joined(trees[a], trees[b], rows), a, b) for a, b in pairs]
        plan, one, other = min(joined, key=lambda each: (rows(each[1] | each[2]), each[0].cost))
        del trees[one], trees[other]
        trees[one | other] = plan
    return next(iter(trees.values()))


def written_order(graph: JoinGraph) -> JoinTree:
    """Return the order of an engine without statistics: as written, where an equality connects the next relation."""
    waiting = list(range(len(graph.relations)))
    tree: JoinTree = waiting.pop(0)
    while waiting:
        number = next(each for each in waiting if graph.neighbours[each] & set_of(tree))
        waiting.remove(number)
        tree = Join(tree, number)
    return tree


def _joined(one: Plan, other: Plan, rows: Rows) -> Plan:
    left, right = set_of(one.tree), set_of(other.tree)
    if rows(left) < rows(right):
        one, other, left, right = other, one, right, left
    own = join_cost(rows(left), rows(right), rows(left | right))
    return Plan(Join(one.tree, other.tree), one.cost + other.cost + own)


_NO_PLAN = Plan(0, float("inf"))


# ---- enumeration: connected sets, and their connected complements


def connected_pairs(graph: JoinGraph) -> Iterator[tuple[int, int]]:
    """Yield each pair of connected sets that an equality connects, once; smaller sets come before larger ones."""
    for one in _connected_sets(graph):
        yield from ((one, other) for other in _complements(graph, one))


def _connected_sets(graph: JoinGraph) -> Iterator[int]:
    for number in reversed(range(len(graph.relations))):
        start = 1 << number
        yield start
        yield from _grown(graph, start, _up_to(number))


def _complements(graph: JoinGraph, one: int) -> Iterator[int]:
    excluded = one | _up_to((one & -one).bit_length() - 1)
    around = graph.neighbours_of(one) & ~excluded
    for number in reversed(list(members(around))):
        start = 1 << number
        yield start
        yield from _grown(graph, start, excluded | (_up_to(number) & around))


def _grown(graph: JoinGraph, start: int, excluded: int) -> Iterator[int]:
    """Yield the connected sets that contain `start` and more, without the relations that are excluded."""
    around = graph.neighbours_of(start) & ~excluded
    for more in _subsets(around):
        yield start | more
    for more in _subsets(around):
        yield from _grown(graph, start | more, excluded | around)


def _subsets(relations: int) -> Iterator[int]:
    """Yield the subsets that are not empty, each after its own subsets."""
    subset = -relations & relations
    while subset:
        yield subset
        subset = (subset - relations) & relations


def _up_to(number: int) -> int:
    return (1 << (number + 1)) - 1

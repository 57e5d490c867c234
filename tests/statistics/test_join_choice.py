"""Whether joins are worth another order."""

from __future__ import annotations

from datetime import date

import pytest

from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_choice import LEAST_ROWS, candidate, is_dense, is_worth_a_look
from windrow.statistics.join_graph import Equality, Join, JoinGraph, Relation
from windrow.statistics.join_order import with_small_builds, written_order
from windrow.statistics.table_statistics import ColumnStatistics, DistinctCount, TableStatistics


def key(rows, spread=1):
    return ColumnStatistics(DistinctCount(float(rows), is_exact=True), 0, 0, rows * spread - 1)


def tables_of(spread=1, rows=LEAST_ROWS):
    return {
        "fact": TableStatistics(rows, {"a": key(1000, spread), "b": key(100, spread)}),
        "wide": TableStatistics(1000, {"a": key(1000, spread)}),
        "tiny": TableStatistics(10, {"b": key(10, spread)}),
    }


RELATIONS = tuple(Relation(name, name) for name in ("wide", "fact", "tiny"))
GRAPH = JoinGraph(RELATIONS, (Equality(0, "a", 1, "a"), Equality(1, "b", 2, "b")))


@pytest.mark.parametrize(
    ("graph", "tables", "sees_bounds", "expected"),
    [
        (GRAPH, tables_of(), True, False),
        (GRAPH, tables_of(), False, True),
        (GRAPH, tables_of(spread=1000), True, True),
        (GRAPH, tables_of(rows=1000), False, False),
        (GRAPH, {}, False, False),
        (JoinGraph(RELATIONS[:2], GRAPH.equalities[:1]), tables_of(), False, False),
        (JoinGraph((*RELATIONS[:2], Relation("tiny", "tiny", (), 1)), GRAPH.equalities), tables_of(), False, False),
    ],
    ids=[
        "dense keys",
        "no bounds",
        "sparse keys",
        "few rows",
        "nothing known",
        "two relations",
        "an unknown condition",
    ],
)
def test_only_large_joins_that_an_engine_misjudges_are_looked_at(graph, tables, sees_bounds, expected):
    assert is_worth_a_look(graph, tables, lambda _: sees_bounds) is expected


def test_one_column_without_bounds_is_enough_for_a_look():
    assert is_worth_a_look(GRAPH, tables_of(), lambda column: column != ("fact", "a"))
    assert not is_worth_a_look(GRAPH, tables_of(), lambda column: column[0] != "elsewhere")


def test_an_order_is_better_by_what_the_engine_makes_of_it():
    choice = candidate(GRAPH, Cardinalities(GRAPH, tables_of()))
    assert choice.best.tree == Join(Join(1, 2), 0)
    bad = Join(Join(0, 1), 2)
    assert choice.cost(bad) > choice.cost(with_small_builds(bad, choice.rows)) >= choice.best.cost
    assert choice.is_promising(bad)
    assert choice.is_better(bad, choice.best.tree)
    assert not choice.is_better(choice.best.tree, choice.best.tree)
    assert not choice.is_better(bad, bad)


def test_vague_estimates_are_no_reason():
    tables = {name: TableStatistics(known.row_count) for name, known in tables_of().items()}
    assert candidate(GRAPH, Cardinalities(GRAPH, tables)) is None


def test_an_engine_without_statistics_joins_as_written():
    graph = JoinGraph((RELATIONS[0], RELATIONS[2], RELATIONS[1]), (Equality(0, "a", 2, "a"), Equality(2, "b", 1, "b")))
    assert written_order(graph) == Join(Join(0, 2), 1)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (key(100), True),
        (key(100, 4), True),
        (key(100, 2**40), False),
        (ColumnStatistics(DistinctCount(3), 0, "a", "c"), False),
        (ColumnStatistics(DistinctCount(3), 0, date(2024, 1, 1), date(2024, 1, 3)), False),
        (ColumnStatistics(DistinctCount(3), 0), False),
        (ColumnStatistics(), False),
    ],
)
def test_a_dense_column_has_about_as_many_values_as_its_range(column, expected):
    assert is_dense(column) is expected

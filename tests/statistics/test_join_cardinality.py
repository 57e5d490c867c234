"""How many rows joins have, against the rows that they have."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_graph import Equality, Filter, JoinGraph, Relation, Residual
from windrow.statistics.keys import DeclaredKeys
from windrow.statistics.table_statistics import TableStatistics, exact_statistics

GENERATOR = np.random.default_rng(3)
ORDERS, LINES, PARTS, SUPPLIERS = 2000, 8000, 200, 40
PLACES = [(part, (part * 7 + number * 11) % SUPPLIERS) for part in range(PARTS) for number in range(4)]
CHOSEN = GENERATOR.integers(0, len(PLACES), LINES)
TABLES = {
    "orders": pa.table({"o_id": np.arange(ORDERS), "o_day": np.arange(ORDERS) % 100}),
    "lines": pa.table(
        {
            "l_order": GENERATOR.integers(0, ORDERS, LINES),
            "l_part": [PLACES[each][0] for each in CHOSEN],
            "l_supplier": [PLACES[each][1] for each in CHOSEN],
            "l_flag": pa.array([None if each % 5 == 0 else each for each in range(LINES)], pa.int64()),
        }
    ),
    "offers": pa.table({"f_part": [part for part, _ in PLACES], "f_supplier": [each for _, each in PLACES]}),
    "suppliers": pa.table({"s_id": np.arange(SUPPLIERS), "s_nation": np.arange(SUPPLIERS) % 5}),
    "visits": pa.table({"v_nation": np.where(np.arange(1000) % 10 < 8, 0, np.arange(1000) % 5)}),
}
KNOWN = {
    name: exact_statistics(table, GENERATOR.choice(table.num_rows, min(1024, table.num_rows), replace=False).tolist())
    for name, table in TABLES.items()
}


def evaluated(rows, filters):
    connection = duckdb.connect()
    connection.register("rows", rows)
    query = "select coalesce(({}), false) as found from rows"
    return [connection.sql(query.format(each.sql)).fetchnumpy()["found"].astype(bool) for each in filters]


def graph_of(*relations, equal=(), residuals=()):
    return JoinGraph(relations, tuple(Equality(*each) for each in equal), residuals)


def table(name, *filters):
    return Relation(name, name, filters)


def estimate(graph, relations=None, **options):
    cardinalities = Cardinalities(graph, KNOWN, evaluated, **options)
    return cardinalities.of(graph.everything if relations is None else relations)


def count(query):
    connection = duckdb.connect()
    for name, rows in TABLES.items():
        connection.register(name, rows)
    return connection.sql(f"select count(*) from {query}").fetchall()[0][0]


def near(graph, query, factor=1.3, **options):
    found, true = estimate(graph, **options), count(query)
    assert true / factor <= found.rows <= true * factor
    assert not found.is_vague


def test_a_foreign_key_joins_each_row_once():
    near(
        graph_of(table("orders"), table("lines"), equal=[(0, "o_id", 1, "l_order")]),
        "orders join lines on o_id = l_order",
    )


def test_filters_of_both_sides_count():
    recent = Filter("o_day < 10", ("o_day",))
    graph = graph_of(table("orders", recent), table("lines"), equal=[(0, "o_id", 1, "l_order")])
    near(graph, "orders join lines on o_id = l_order where o_day < 10", 1.4)


def test_a_key_of_two_columns_joins_each_row_once():
    graph = graph_of(
        table("lines"), table("offers"), equal=[(0, "l_part", 1, "f_part"), (0, "l_supplier", 1, "f_supplier")]
    )
    near(graph, "lines join offers on l_part = f_part and l_supplier = f_supplier")


def test_an_estimate_is_the_same_for_every_order():
    equal = [
        (0, "l_part", 1, "f_part"),
        (0, "l_supplier", 1, "f_supplier"),
        (0, "l_supplier", 2, "s_id"),
        (1, "f_supplier", 2, "s_id"),
    ]
    graph = graph_of(table("lines"), table("offers"), table("suppliers"), equal=equal)
    joined = "lines join offers on l_part = f_part and l_supplier = f_supplier join suppliers on s_id = l_supplier"
    near(graph, joined)
    assert estimate(graph, 0b110).rows == pytest.approx(count("offers join suppliers on f_supplier = s_id"))


def test_nulls_join_nothing():
    graph = graph_of(table("lines"), table("orders"), equal=[(0, "l_flag", 1, "o_id")])
    cardinalities = Cardinalities(graph, KNOWN, evaluated, containment=lambda _, __: 0.25)
    assert cardinalities.of(0b11).rows == pytest.approx(LINES * 0.8 * 0.25, rel=0.3)


def test_frequent_values_count_by_their_frequency():
    graph = graph_of(table("visits"), Relation("others", "visits"), equal=[(0, "v_nation", 1, "v_nation")])
    near(graph, "visits join visits as others using (v_nation)")


def test_a_condition_on_two_relations_is_tried_on_pairs_of_their_rows():
    ordered = Residual(0b11, Filter('"0.o_day" < "1.l_part"', ("0.o_day", "1.l_part")))
    graph = graph_of(table("orders"), table("lines"), equal=[(0, "o_id", 1, "l_order")], residuals=(ordered,))
    near(graph, "orders join lines on o_id = l_order where o_day < l_part")


def test_unknown_conditions_and_columns_make_an_estimate_vague():
    unknown = {name: TableStatistics(known.row_count) for name, known in KNOWN.items()}
    graph = graph_of(table("orders"), table("lines"), equal=[(0, "o_id", 1, "l_order")])
    assert Cardinalities(graph, unknown).of(0b11).is_vague
    hidden = graph_of(Relation("orders", "orders", (), 1), table("lines"), equal=[(0, "o_id", 1, "l_order")])
    assert estimate(hidden).is_vague


def test_a_declared_key_is_believed():
    graph = graph_of(table("visits"), Relation("others", "visits"), equal=[(0, "v_nation", 1, "v_nation")])
    assert estimate(graph, keys=DeclaredKeys({"visits": ("v_nation",)})).rows == pytest.approx(1000)


def test_empty_tables_join_to_nothing():
    empty = {"a": exact_statistics(pa.table({"k": pa.array([], pa.int64())}))}
    graph = graph_of(Relation("a", "a"), Relation("b", "a"), equal=[(0, "k", 1, "k")])
    assert Cardinalities(graph, empty).of(0b11).rows == 0

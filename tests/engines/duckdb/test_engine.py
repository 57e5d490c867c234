"""Queries over published splits answer as over one table with the same rows."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.engines.duckdb.engine import DuckDBEngine, Relation
from windrow.errors import InvalidInput, NotFound
from windrow.planning.data_files import DataFile
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.reading.read_context import ReadContext
from windrow.storage import LocalStore, open_store

COLUMNS = pa.schema([("host", pa.string()), ("value", pa.float64())])


def parquet(**columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


@pytest.fixture(params=["a local folder", "a store without paths"])
def store(request, tmp_path):
    return LocalStore(tmp_path / "it's here") if request.param == "a local folder" else open_store("memory://")


@pytest.fixture
def ask(store):
    store.put("metrics/partition_id=3/a.parquet", parquet(value=[1.0, 2.0], host=["x", "y"]))
    store.put("metrics/partition_id=4/b.parquet", parquet(value=[3.0]))
    store.put("metrics/partition_id=4/retired.parquet", parquet(value=[99.0]))
    keys = ["metrics/partition_id=3/a.parquet", "metrics/partition_id=4/b.parquet"]

    def never():
        pytest.fail("a table that the query does not name is not looked at")

    def relation(columns, keys):
        files = [DataFile(store, key, store.head(key).identity) for key in keys]
        context = ScanContext("lake", store)
        return Relation(
            columns, lambda asked: plan_files(context, files, predicate=asked.predicate, columns=asked.columns)
        )

    tables = {
        "metrics": lambda: relation(COLUMNS, keys),
        "empty": lambda: relation(COLUMNS, []),
        "vacant": lambda: relation(pa.schema([("x", pa.int8())]), []),
        "other": never,
    }
    engine = DuckDBEngine(ReadContext("lake", store))
    yield lambda query: engine.sql(query, tables).to_dict()
    engine.close()


def test_only_named_splits_are_read_and_a_missing_column_is_null(ask):
    assert ask("select host, value from metrics order by value") == [
        {"host": "x", "value": 1.0},
        {"host": "y", "value": 2.0},
        {"host": None, "value": 3.0},
    ]


def test_the_folders_of_the_lake_are_no_columns(ask):
    assert list(ask("select * from metrics limit 1")[0]) == ["host", "value"]


def test_a_table_without_splits_has_its_columns_and_no_rows(ask):
    assert ask("select host from empty") == []
    assert ask("select count(*) as n from empty") == [{"n": 0}]


def test_two_tables_without_splits_keep_their_own_columns(ask):
    assert ask("select host, x from empty, vacant") == []


def test_tables_can_be_joined_and_named_in_subqueries(ask):
    query = "with m as (select * from metrics) select count(*) as n from m join metrics using (host)"
    assert ask(query) == [{"n": 2}]


def test_an_unknown_table_is_not_found_and_the_known_ones_are_named(ask):
    with pytest.raises(NotFound, match="metrics, empty, vacant"):
        ask("select * from nothing")


def test_names_are_found_whatever_their_case(ask):
    assert ask("select count(*) as n from METRICS") == [{"n": 3}]


@pytest.mark.parametrize("query", ["selekt 1", "select nothing from metrics"])
def test_a_query_that_cannot_be_answered_says_why(ask, query):
    with pytest.raises(InvalidInput, match="query"):
        ask(query)


def test_now_is_the_same_for_what_is_left_out_and_for_what_is_asked(store):
    asked = []

    def plan(question):
        asked.append(question.predicate)
        return plan_files(ScanContext("lake", store), [], predicate=question.predicate, columns=question.columns)

    columns = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    engine = DuckDBEngine(ReadContext("lake", store))
    query = "select now() as now, count(*) as n from moments where ts < now() - interval 1 hour"
    (row,) = engine.sql(query, {"moments": lambda: Relation(columns, plan)}).to_dict()
    assert row["now"] - asked[0].value == timedelta(hours=1)
    engine.close()


def test_a_constant_without_a_value_is_left_to_the_query(ask):
    assert ask("select count(*) as n from empty where value > 1 or value = cast('x' as double)") == [{"n": 0}]
    with pytest.raises(InvalidInput, match="Could not convert string 'x'"):
        ask("select count(*) as n from metrics where value = cast('x' as double)")
    assert ask("select count(*) as n from metrics") == [{"n": 3}]

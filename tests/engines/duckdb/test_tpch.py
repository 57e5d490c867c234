"""All queries of TPC-H answer as over native DuckDB tables, whoever wrote the files and whatever is left out."""

from __future__ import annotations

import pytest
from tests.engines.tpch import QUERIES, Tpch

WAYS = ["parquet-rs", "pyarrow", "duckdb", "registered", "ingested"]


@pytest.fixture(
    scope="module", params=[0.01, pytest.param(0.1, marks=pytest.mark.long)], ids=lambda scale: f"sf{scale}"
)
def tpch(request, tmp_path_factory):
    made = Tpch(request.param, tmp_path_factory.mktemp("tpch"))
    yield made
    made.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_answers_as_native_tables_do(tpch, query, way):
    expected = tpch.expected(query).to_pylist()
    assert expected
    for prune in (True, False):
        assert tpch.found(query, way, prune=prune).to_pylist() == expected, f"pruning {prune}"


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_files_of_spark_answer_so_too(tpch, spark):
    for query in QUERIES:
        expected = tpch.expected(query).to_pylist()
        tpch.found(query, "pyarrow", prune=True)
        for prune in (True, False):
            assert tpch.found(query, "spark", prune=prune, spark=spark).to_pylist() == expected, query


def test_what_is_switched_off_is_the_leaving_out(tpch):
    tpch.found("q06", "registered", prune=True)
    tables = {prune: lake.table("registered_lineitem") for prune, lake in tpch.lakes.items()}
    rows = tables[True].plan().rows
    assert tables[True].plan("l_shipdate < date '1993-01-01'").rows < rows / 2
    assert tables[False].plan("l_shipdate < date '1993-01-01'").rows == rows

"""All queries of TPC-H answer as over native DuckDB tables, whoever wrote the files and whatever is left out."""

from __future__ import annotations

from itertools import product

import pytest
from tests.engines.forced import WAYS
from tests.engines.tpch import QUERIES, Tpch

from windrow.model.sources import SourceKind

PLACES = ["parquet-rs", "pyarrow", "duckdb", "registered", "ingested"]


@pytest.fixture(
    scope="module", params=[0.01, pytest.param(0.1, marks=pytest.mark.long)], ids=lambda scale: f"sf{scale}"
)
def tpch(request, tmp_path_factory):
    made = Tpch(request.param, tmp_path_factory.mktemp("tpch"))
    yield made
    made.close()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_answers_as_native_tables_do(tpch, query, place):
    expected = tpch.expected(query).to_pylist()
    assert expected
    assert tpch.found(query, place).to_pylist() == expected


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_answers_so_whatever_its_rows_come_from(tpch, query, way):
    """Each query has its turn of places with each way, as far as there are queries."""
    place = PLACES[(list(QUERIES).index(query) + WAYS.index(way)) % len(PLACES)]
    assert tpch.found(query, place, way).to_pylist() == tpch.expected(query).to_pylist(), place


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_all_queries_answer_so_of_all_places(tpch, way, capsys):
    expected = {query: tpch.expected(query).to_pylist() for query in QUERIES}
    for query, place in product(QUERIES, PLACES):
        assert tpch.found(query, place, way).to_pylist() == expected[query], f"{query} of {place}"
    with capsys.disabled():
        print(f"\n  {tpch.ways[way]}")
    # No query of TPC-H is one of counts and extremes alone.
    assert tpch.ways[way].served["served"] or way not in (SourceKind.DECODED, SourceKind.PATHS, SourceKind.VIRTUAL)


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_files_of_spark_answer_so_too(tpch, spark):
    for query in QUERIES:
        expected = tpch.expected(query).to_pylist()
        tpch.found(query, "pyarrow")
        for way in ("as chosen", "without pruning"):
            assert tpch.found(query, "spark", way, spark=spark).to_pylist() == expected, query


def test_what_is_switched_off_is_the_leaving_out(tpch):
    tpch.found("q06", "registered")
    tables = {name: way.lake.table("registered_lineitem") for name, way in tpch.ways.items()}
    rows = tables["as chosen"].plan().rows
    assert tables["as chosen"].plan("l_shipdate < date '1993-01-01'").rows < rows / 2
    assert tables["without pruning"].plan("l_shipdate < date '1993-01-01'").rows == rows

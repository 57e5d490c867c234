"""Rows that are plain values of Python, or a lazy frame, come in like any others."""

from datetime import UTC, datetime

import polars as pl
import pyarrow as pa
import pytest

from windrow.errors import InvalidInput

TIME = datetime(2024, 1, 1, tzinfo=UTC)
ROWS = [{"host": "a", "timestamp": TIME, "value": 1}, {"host": "b", "timestamp": TIME, "value": 2.5, "region": "x"}]
COLUMNS = {"host": ["a", "b"], "timestamp": [TIME, TIME], "value": [1, 2.5], "region": [None, "x"]}


@pytest.fixture
def table(lake):
    return lake.create_table("readings", sort="host|timestamp/V2")


@pytest.mark.parametrize(
    "rows",
    [ROWS, tuple(ROWS), COLUMNS, pl.LazyFrame(COLUMNS, strict=False), pa.table(COLUMNS).to_batches()[0]],
    ids=["list of dicts", "tuple of dicts", "dict of lists", "LazyFrame", "RecordBatch"],
)
def test_they_are_the_rows_of_the_table(lake, table, rows):
    assert table.ingest.plan(rows).columns == ("host", "timestamp", "value", "region")
    assert table.ingest(rows).rows == 2
    found = lake.sql("select host, value, region from readings order by host").to_dict()
    assert found == [{"host": "a", "value": 1.0, "region": None}, {"host": "b", "value": 2.5, "region": "x"}]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"host": "a", "timestamp": TIME}, r"column 'host' is 'a', not a list.*\[\{...\}\]"),
        ({"host": ["a"], "timestamp": [TIME, TIME]}, "not of one length: 'host' has 1, 'timestamp' has 2"),
        ([{"host": "a", "timestamp": TIME}, {"host": 1, "timestamp": TIME}], "column 'host' has values that no type"),
        ([], "cannot ingest a list"),
        ([1, 2], "cannot ingest a list"),
        (7, "cannot ingest a int.*a list of dicts"),
    ],
    ids=["a row", "lengths", "types", "empty", "numbers", "number"],
)
def test_what_is_no_table_is_refused_with_what_to_do(table, rows, message):
    with pytest.raises(InvalidInput, match=message):
        table.ingest(rows)
    assert table.version() == 0

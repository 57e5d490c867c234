"""A query that cannot be answered says what is wrong with it, and what to do; nothing is left behind."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import windrow
from windrow.cache import CacheSettings
from windrow.errors import ConfigError, InvalidInput, NotFound

TABLE = pa.table(
    {
        "metric_name": ["cpu", "mem"],
        "host": ["a", "b"],
        "timestamp": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
        "value": [1.0, 2.0],
    }
)


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path)) as opened:
        for name in ("metrics", "events"):
            opened.create_table(name, sort="metric_name|host|timestamp/V2", mirror=False).ingest(TABLE)
        yield opened


CASES = {
    "select * from metricz": (NotFound, "the table 'metricz', which is not there; did you mean 'metrics'?"),
    "select * from qqq": (NotFound, "Tables of the lake: events, metrics"),
    "select metric_nam from metrics": (InvalidInput, "the column 'metric_nam'.* did you mean 'metric_name'?"),
    "select zzz from metrics": (InvalidInput, "there are: metric_name, host, timestamp, value"),
    "select m.hots from metrics m": (InvalidInput, "'hots'.* did you mean 'host'?"),
    "select host from metrics, events": (
        InvalidInput,
        "more than one of its tables has; write metrics.host or events.h",
    ),
    "select * from metrics where timestamp > 'soon'": (InvalidInput, "does not fit the type"),
    "select * from metrics where value = 'much'": (InvalidInput, "does not fit the type"),
    "select * from metrics where timestamp > 5": (InvalidInput, "Cannot compare values of type"),
    "select nofunc(value) from metrics": (InvalidInput, "nofunc"),
    "select from where": (InvalidInput, "the query failed: syntax error"),
    "": (InvalidInput, "the query is empty"),
    "select * from metrics where host = ?": (InvalidInput, "Values were not provided"),
}


@pytest.mark.parametrize("query", CASES)
def test_what_is_wrong_is_said(lake, query):
    kind, words = CASES[query]
    with pytest.raises(kind, match=words) as caught:
        lake.sql(query)
    assert "Error:" not in str(caught.value)
    assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 2}]


def test_nothing_is_served_after_a_query_whether_it_failed_or_not(lake):
    for query in (
        "select sum(value) from metrics",
        "select nothing from metrics",
        "select cast(host as int) from metrics",
    ):
        with pytest.raises(InvalidInput) if "sum" not in query else _fine():
            lake.sql(query)
        assert not lake._started().files._readers


def _fine():
    from contextlib import nullcontext

    return nullcontext()


def test_a_query_that_needs_more_memory_than_there_is_says_so(tmp_path):
    with windrow.connect(tmp_path, memory_limit="30MB", threads=1) as lake:
        with pytest.raises(InvalidInput, match="needs more memory than it may have.*memory_limit"):
            lake.sql("select list(range) from range(30000000)")
        assert lake.sql("select 1 as n").to_dict() == [{"n": 1}]


def test_rows_beyond_the_memory_are_put_on_disk(tmp_path):
    with windrow.connect(tmp_path, memory_limit="60MB", threads=1) as lake:
        query = "select count(*) as n from (select hash(range) as h from range(8000000) order by h) where h >= 0"
        assert lake.sql(query).to_dict() == [{"n": 8_000_000}]


@pytest.mark.parametrize("given", [{"threads": 0}, {"memory_limit": "much"}])
def test_settings_that_cannot_be_used_are_refused(tmp_path, given):
    with pytest.raises(ConfigError, match=next(iter(given))):
        windrow.connect(tmp_path, **given)


def test_a_table_that_another_process_made_or_dropped_is_noticed(lake, tmp_path):
    assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 2}]
    with windrow.connect(tmp_path / "lake") as other:
        other.create_table("newcomer", sort="metric_name|timestamp/V2", mirror=False).ingest(TABLE)
    query = "select count(*) as n from newcomer join metrics using (metric_name)"
    assert lake.sql(query).to_dict() == [{"n": 2}]


def test_rows_that_another_process_wrote_are_seen(lake, tmp_path):
    for rows in (2, 4, 6):
        assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": rows}]
        with windrow.connect(tmp_path / "lake") as other:
            other.table("metrics").ingest(TABLE)

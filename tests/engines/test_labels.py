"""Label values and series: as the rows have them, and without the rows where metadata is enough."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import windrow
from windrow.cache import CacheSettings
from windrow.errors import InvalidInput, NotFound

START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST_HALF = "timestamp < '2026-01-01 00:30:00'"


def points(draw, count, hosts):
    """Points within an hour; of some the host is not known."""
    times = [START + timedelta(seconds=draw.randrange(3600)) for _ in range(count)]
    return pa.table(
        {
            "metric_name": [draw.choice(["cpu", "memory"]) for _ in range(count)],
            "host": pa.array([draw.choice(hosts) for _ in range(count)], pa.string()),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "value": [float(draw.randrange(9)) for _ in range(count)],
        }
    )


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as opened:
        yield opened


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("where", [None, FIRST_HALF, "value > 4", "metric_name = 'cpu'", "length(host) > 1"])
def test_labels_and_series_are_those_of_the_rows(lake, seed, where):
    draw = random.Random(seed)
    table = lake.create_table("metrics", sort="metric_name|host|timeseries_id|timestamp/V2")
    for _ in range(2):
        table.ingest(points(draw, 200, draw.sample(["a", "b", "web-1", "web-2", "", "x" * 90, "o'hara", None], 4)))
    condition = f"host is not null and ({where or 'true'})"
    expected = lake.sql(f"select distinct host from metrics where {condition} order by host").to_arrow()["host"]
    assert [row.value for row in table.inspect.labels("host", where)] == expected.to_pylist()
    [counted] = lake.sql(f"select count(distinct timeseries_id) as n from metrics where {where or 'true'}").to_dict()
    assert table.inspect.series(where) == counted["n"]


def test_windows_of_one_host_each_need_no_data(lake, tmp_path):
    table = lake.create_table("metrics", sort="metric_name|host|timestamp/V2")
    for quarter, host in enumerate(["a", "b", "c", "d"]):
        times = [START + timedelta(minutes=15 * quarter, seconds=second) for second in range(60)]
        rows = {"metric_name": ["cpu"] * 60, "host": [host] * 60, "value": [1.0] * 60}
        table.ingest(pa.table(rows | {"timestamp": pa.array(times, pa.timestamp("us", "UTC"))}))
    for path in (tmp_path / "lake" / "metrics").glob("*/*/*.parquet"):
        path.unlink()
    assert [(row.value, row.known_by) for row in table.inspect.labels("host")] == [(h, "metadata") for h in "abcd"]
    assert [row.value for row in table.inspect.labels("host", FIRST_HALF)] == ["a", "b"]


@pytest.mark.parametrize("seed", range(2))
def test_labels_and_series_on_record_need_no_data(lake, tmp_path, seed):
    draw = random.Random(seed)
    table = lake.create_table("metrics", sort="metric_name|host|timeseries_id|timestamp/V2")
    for _ in range(2):
        table.ingest(points(draw, 200, draw.sample(["a", "b", "web-1", "web-2", "", "x" * 90, "o'hara", None], 4)))
    by_rows = [row.value for row in table.inspect.labels("host")], table.inspect.series()
    table.upkeep.analyze()
    for path in (tmp_path / "lake" / "metrics").glob("*/*/*.parquet"):
        path.unlink()
    found = table.inspect.labels("host")
    assert ([row.value for row in found], table.inspect.series()) == by_rows
    assert {row.known_by for row in found} == {"statistics"}


@pytest.mark.parametrize("seed", range(2))
def test_distinct_counts_of_sql_are_answered_by_statistics_that_have_them(lake, seed):
    draw = random.Random(seed)
    table = lake.create_table("metrics", sort="metric_name|host|timeseries_id|timestamp/V2")
    for _ in range(2):
        table.ingest(points(draw, 200, draw.sample(["a", "b", "web-1", "web-2", "", "x" * 90, "o'hara", None], 4)))
    query = "select count(distinct host) as h, count(*) as n, count(distinct timeseries_id) as s from metrics"
    assert "the answer" not in str(lake.explain(query))
    expected = lake.sql(query).to_arrow()
    table.upkeep.analyze()
    assert "nothing is read: statistics have the answer" in str(lake.explain(query))
    assert lake.sql(query).to_arrow().equals(expected)
    for other in ("count(distinct value)", "count(distinct host) filter (value > 4)", "count(distinct host || 'x')"):
        assert "the answer" not in str(lake.explain(f"select {other} from metrics"))
    where = "select count(distinct host) as h from metrics where value > 4"
    assert "the answer" not in str(lake.explain(where))
    table.ingest(points(draw, 20, ["new"]))
    counted = lake.sql("select count(distinct host) as h from metrics").to_dict()[0]["h"]
    assert counted == len(lake.sql("select distinct host from metrics where host is not null").to_arrow())


def test_rows_tell_of_splits_that_are_not_on_record(lake):
    table = lake.create_table("metrics", sort="metric_name|host|timeseries_id|timestamp/V2")
    table.ingest(points(random.Random(1), 50, ["a", "b"]))
    table.upkeep.analyze()
    assert {row.known_by for row in table.inspect.labels("host")} == {"statistics"}
    assert {row.known_by for row in table.inspect.labels("host", FIRST_HALF)} <= {"metadata", "rows"}
    table.ingest(points(random.Random(2), 50, ["c", "d"]))
    found = table.inspect.labels("host")
    assert [row.value for row in found] == ["a", "b", "c", "d"]
    assert {row.known_by for row in found} <= {"metadata", "rows"}
    assert table.inspect.series() == 8


def test_values_that_had_another_type_are_read(lake):
    table = lake.create_table("events", sort="host|timestamp/V2")
    times = pa.array([START + timedelta(seconds=second) for second in range(3)], pa.timestamp("us", "UTC"))
    table.ingest(pa.table({"host": ["a", "b", "c"], "timestamp": times, "code": [7, 8, 9]}))
    table.upkeep.analyze()
    table.retype.run("code", "string", old_values="cast")
    later = pa.table({"host": ["a", "b", "c"], "timestamp": times, "code": ["x", "y", "7"]})
    lake.table("events").ingest(later)
    lake.table("events").upkeep.analyze()
    assert [row.value for row in lake.table("events").inspect.labels("code")] == ["7", "8", "9", "x", "y"]
    assert {row.known_by for row in lake.table("events").inspect.labels("host")} == {"statistics"}


def test_an_older_version_has_its_own_labels(lake):
    table = lake.create_table("metrics", sort="metric_name|host|timestamp/V2")
    table.ingest(points(random.Random(1), 20, ["a"]))
    version = table.version()
    table.ingest(points(random.Random(2), 20, ["b"]))
    assert [row.value for row in table.at(version=version).inspect.labels("host")] == ["a"]
    assert [row.value for row in table.inspect.labels("host")] == ["a", "b"]
    # Without ids, a series is a metric with its tags.
    assert table.at(version=version).inspect.series() == 2


def test_what_is_no_label_is_refused(lake):
    table = lake.create_table("metrics", sort="metric_name|host|timestamp/V2")
    table.ingest(points(random.Random(1), 20, ["a"]))
    with pytest.raises(NotFound, match="no column 'nope'"):
        table.inspect.labels("nope")
    with pytest.raises(InvalidInput, match="no text"):
        table.inspect.labels("value")

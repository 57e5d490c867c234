"""From a version of a table to the bytes of a question: each step of the funnel leaves what it must, and counts."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import windrow
from windrow.cache import CacheSettings
from windrow.errors import InvalidInput
from windrow.lake import open_lake
from windrow.model.predicate import Comparison, Op
from windrow.planning.table_plans import time_range
from windrow.questions.where import parse_where

START = datetime(2026, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND = 1_000_000


def at(minutes):
    return (START + timedelta(minutes=minutes) - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND


RANGES = {
    "ts >= timestamp '2026-01-01 00:10:00'": (at(10), None),
    "ts < timestamp '2026-01-01 00:10:00'": (None, at(10) + 1),
    "ts = timestamp '2026-01-01 00:10:00'": (at(10), at(10) + 1),
    "ts between timestamp '2026-01-01 00:10:00' and timestamp '2026-01-01 00:20:00'": (at(10), at(20) + 1),
    "ts in (timestamp '2026-01-01 00:20:00', timestamp '2026-01-01 00:10:00')": (at(10), at(20) + 1),
    "ts >= date '2026-01-01' and metric = 'a' and ts <= timestamp '2026-01-01 00:20:00'": (at(0), at(20) + 1),
    "ts >= timestamp '2026-01-01 00:20:00' and ts < timestamp '2026-01-01 00:10:00'": (at(20), at(20)),
}


@pytest.mark.parametrize("condition", RANGES)
def test_times_that_a_row_must_lie_between(condition):
    low, high = time_range(parse_where(condition), "ts", None)
    wanted = RANGES[condition]
    assert (low if wanted[0] is not None else None, high if wanted[1] is not None else None) == wanted


@pytest.mark.parametrize(
    "condition", ["metric = 'a'", "ts >= date '2026-01-01' or metric = 'a'", "ts != date '2026-01-01'", "ts is null"]
)
def test_conditions_without_a_range_of_time(condition):
    assert time_range(parse_where(condition), "ts", None) is None
    assert time_range(None, "ts", None) is None


COUNTED = {
    ("ts >= 1767225600", "s"): (at(0), None),
    ("ts < 1767226200000", "ms"): (None, at(10) + 1),
    ("ts = 1767226200000000", "us"): (at(10), at(10) + 1),
    ("ts between 1767226200000000001 and 1767226800000000999", "ns"): (at(10), at(20) + 1),
    ("ts in (1767226800, 1767226200)", "s"): (at(10), at(20) + 1),
    ("ts > 1767226200.5", "s"): (at(10) + SECOND // 2, None),
    ("ts <= 1.7672262e9", "s"): (None, at(10) + 1),
    ("ts > -1 and ts < 1", "ns"): (-1, 1),
}


@pytest.mark.parametrize(("condition", "unit"), COUNTED)
def test_integers_are_times_in_the_unit_of_the_table(condition, unit):
    low, high = time_range(parse_where(condition), "ts", unit)
    wanted = COUNTED[condition, unit]
    assert (low if wanted[0] is not None else None, high if wanted[1] is not None else None) == wanted


@pytest.mark.parametrize("condition", ["ts >= 1767225600", "ts in (1, 2)", "ts between 1 and 2"])
def test_numbers_without_a_unit_are_no_times(condition):
    assert time_range(parse_where(condition), "ts", None) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1767225600"])
def test_values_that_count_nothing_are_no_times(value):
    assert time_range(Comparison("ts", Op.GREATER, value), "ts", "s") is None


@pytest.fixture
def table(tmp_path):
    numbers = itertools.count()
    clock = lambda: 1_800_000_000_000_000  # noqa: E731
    lake = open_lake(
        tmp_path / "lake", now=clock, new_id=lambda: f"id-{next(numbers):06d}", cache=CacheSettings(folder=tmp_path)
    )
    made = lake.create_table("metrics", sort="metric_name|timestamp/V2", window="15m")
    rows = [(f"metric_{n % 5}", START + timedelta(seconds=10 * n), float(n)) for n in range(720)]
    names, times, values = zip(*rows, strict=True)
    made.ingest(
        pa.table({"metric_name": names, "timestamp": pa.array(times, pa.timestamp("us", "UTC")), "value": values})
    )
    yield made
    lake.close()


def steps(plan):
    return {step.step: (step.asked, step.kept) for step in plan.steps}


def test_a_plan_says_what_each_step_left(table):
    found = steps(table.plan("metric_name = 'metric_3' and timestamp < timestamp '2026-01-01 00:20:00'"))
    assert found["time range"] == (8, 2)
    assert found["split times"] == (8, 2)
    assert found["zone maps"] == (2, 2)
    assert found["statistics and nulls"] == (2, 2)
    by_name = steps(table.plan("metric_name = 'metric_9'"))
    assert (by_name["time range"], by_name["split times"], by_name["zone maps"]) == ((8, 8), (8, 8), (8, 0))
    assert table.plan().rows == 720


def test_columns_bound_what_is_read(table):
    assert 0 < table.plan(columns=["value"]).bytes < table.plan().bytes


def test_an_older_version_is_planned_as_it_was(table):
    assert table.at(version=0).plan().rows == 0


def test_a_condition_that_metadata_cannot_answer_is_refused(table):
    with pytest.raises(InvalidInput, match="metadata cannot answer this"):
        table.plan("lower(metric_name) = 'x'")


COUNTS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
FIRST = 1_767_225_600


@pytest.fixture(params=COUNTS)
def counted(request, tmp_path):
    """A table whose times are integers, with a split in each of 20 windows."""
    ticks = COUNTS[request.param]
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as lake:
        made = lake.create_table("events", sort="name|ts/V2", timestamp="ts", timestamp_unit=request.param, window="1h")
        times = [(FIRST + 3600 * hour) * ticks for hour in range(20)]
        made.ingest(pa.table({"name": ["a"] * 20, "ts": pa.array(times, pa.int64()), "value": range(20)}))
        yield lake, made, ticks


def test_integer_times_leave_windows_out(counted):
    lake, table, ticks = counted
    where = f"ts >= {(FIRST + 7200) * ticks} and ts < {(FIRST + 9000) * ticks}"
    for plan in (table.plan(where), table.scan(where).plan()):
        found = steps(plan)
        assert (found["time range"], found["split times"], found["zone maps"]) == ((20, 1), (20, 1), (1, 1))
    (explained,) = lake.explain(f"select value from events where {where}").tables
    assert {(step.step, step.asked, step.kept) for step in explained.steps} >= {
        ("time range", 20, 1),
        ("split times", 20, 1),
    }
    assert lake.sql(f"select sum(value) as found from events where {where}").to_arrow()["found"].to_pylist() == [2]
    assert lake.sql(f"select count(*) as found from events where {where}").to_arrow()["found"].to_pylist() == [1]


def test_integer_times_are_compared_with_moments(counted):
    lake, _, ticks = counted
    word = {1: "epoch", 10**3: "epoch_ms", 10**6: "epoch_us", 10**9: "epoch_ns"}[ticks]
    where = f"ts >= {word}(timestamp '2026-01-01 18:00:00')"
    (explained,) = lake.explain(f"select value from events where {where}").tables
    assert {(step.step, step.asked, step.kept) for step in explained.steps} >= {("time range", 20, 2)}
    assert lake.sql(f"select sum(value) as found from events where {where}").to_arrow()["found"].to_pylist() == [37]


@pytest.mark.parametrize("spelled", ["{} >= {}", "{1} <= {0}"])
def test_times_that_are_made_of_integers_leave_windows_out(counted, spelled):
    lake, _, ticks = counted
    made = {1: "to_timestamp(ts)", 10**3: "epoch_ms(ts)", 10**6: "make_timestamp(ts)", 10**9: "make_timestamp_ns(ts)"}[
        ticks
    ]
    # What is made of nanoseconds is not read, and leaves nothing out.
    left = 20 if ticks == 10**9 else 2
    where = spelled.format(made, "timestamp '2026-01-01 18:00:00'")
    (explained,) = lake.explain(f"select value from events where {where}").tables
    assert {(step.step, step.asked, step.kept) for step in explained.steps} >= {("time range", 20, left)}
    assert lake.sql(f"select sum(value) as found from events where {where}").to_arrow()["found"].to_pylist() == [37]
    between = f"{made} between '2026-01-01 03:00' and '2026-01-01 04:00'"
    assert lake.sql(f"select sum(value) as found from events where {between}").to_arrow()["found"].to_pylist() == [7]
    assert lake.sql(f"select sum(value) as found from events where not {between}").to_arrow()["found"].to_pylist() == [
        183
    ]


def test_the_first_and_the_last_time_that_64_bits_count_are_within_open_ranges(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as lake:
        made = lake.create_table("events", sort="name|ts/V2", timestamp="ts", timestamp_unit="us", window="1h")
        last = 2**63 - 1
        times = pa.array([-last, 0, last], pa.int64())
        made.ingest(pa.table({"name": ["a"] * 3, "ts": times, "value": [1.0, 2.0, 4.0]}))
        found = lambda where: lake.sql(f"select sum(value) as v from events where {where}").to_arrow()["v"][0].as_py()  # noqa: E731
        assert [found("ts >= 0"), found("ts <= 0"), found(f"ts = {last}"), found("ts > 1e15")] == [6.0, 3.0, 4.0, 4.0]
        assert found(f"ts >= {10**30}") is None
        assert found(f"ts < {-(10**30)}") is None

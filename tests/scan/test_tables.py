"""From a version of a table to the bytes of a question: each step of the funnel leaves what it must, and counts."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import windrow
from windrow.cache import CacheSettings
from windrow.errors import InvalidInput
from windrow.scan.tables import time_range
from windrow.scan.where import parse_where

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
    low, high = time_range(parse_where(condition), "ts")
    wanted = RANGES[condition]
    assert (low if wanted[0] is not None else None, high if wanted[1] is not None else None) == wanted


@pytest.mark.parametrize(
    "condition", ["metric = 'a'", "ts >= date '2026-01-01' or metric = 'a'", "ts != date '2026-01-01'", "ts is null"]
)
def test_conditions_without_a_range_of_time(condition):
    assert time_range(parse_where(condition), "ts") is None
    assert time_range(None, "ts") is None


@pytest.fixture
def table(tmp_path):
    numbers = itertools.count()
    clock = lambda: 1_800_000_000_000_000  # noqa: E731
    lake = windrow.connect(
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
    assert found["zone maps"] == (8, 2)
    assert found["statistics and nulls"] == (2, 2)
    assert steps(table.plan("metric_name = 'metric_9'"))["zone maps"] == (8, 0)
    assert table.plan().rows == 720


def test_columns_bound_what_is_read(table):
    assert 0 < table.plan(columns=["value"]).bytes < table.plan().bytes


def test_an_older_version_is_planned_as_it_was(table):
    assert table.at(version=0).plan().rows == 0


def test_a_condition_that_metadata_cannot_answer_is_refused(table):
    with pytest.raises(InvalidInput, match="cannot be asked of metadata"):
        table.plan("lower(metric_name) = 'x'")

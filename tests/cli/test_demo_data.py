"""The points of the demo: as many as wanted, the same for the same seed, some of them late, some without a time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from windrow.cli.demo_data import SERIES, DemoPlan, series_points

PLAN = DemoPlan(points=30_000, seed=7, end=1_700_000_100)


def everything(plan):
    return pa.Table.from_batches([series_points(plan, series) for series in range(SERIES)])


@pytest.fixture(scope="module")
def points():
    return everything(PLAN)


@pytest.mark.parametrize("count", [1, SERIES - 1, SERIES, 1999])
def test_there_are_as_many_points_as_wanted(count):
    assert everything(DemoPlan(count, 7, PLAN.end)).num_rows == count


def test_the_same_plan_makes_the_same_points(points):
    assert everything(PLAN).equals(points)


def test_another_seed_makes_other_values_of_the_same_series(points):
    other = everything(DemoPlan(PLAN.points, 8, PLAN.end))
    assert other["host"].equals(points["host"])
    assert not other["value"].equals(points["value"])


def test_later_points_are_the_same_points_later(points):
    later = everything(DemoPlan(PLAN.points, 7, PLAN.end + 900))
    assert later["value"].equals(points["value"])
    assert set(pc.subtract(later["timestamp"].cast("int64"), points["timestamp"].cast("int64")).to_pylist()) == {
        900 * 10**6,
        None,
    }


def test_points_lie_in_two_hours_or_are_late_or_have_no_time(points):
    seconds = [time // 10**6 for time in points["timestamp"].cast("int64").to_pylist() if time is not None]
    late = [second for second in seconds if second < PLAN.start]
    assert max(seconds) < PLAN.end == PLAN.start + 7200
    assert min(late) >= PLAN.start - 3600
    assert 0.005 < len(late) / len(points) < 0.02
    assert 0.0005 < points["timestamp"].null_count / len(points) < 0.004


def test_a_fleet_has_services_environments_regions_and_hosts(points):
    distinct = {name: pc.count_distinct(points[name]).as_py() for name in points.column_names}
    assert (distinct["metric_name"], distinct["service"], distinct["host"]) == (6, 5, 100)
    assert (distinct["env"], distinct["region"], distinct["metric_type"]) == (2, 2, 2)


def test_gauges_walk_within_bounds_and_sums_are_counts(points):
    usage = points.filter(pc.field("metric_name") == "cpu.usage")["value"]
    assert pc.min(usage).as_py() >= 0
    assert pc.max(usage).as_py() <= 100
    requests = points.filter(pc.field("metric_name") == "http.requests")["value"]
    assert pc.all(pc.equal(requests, pc.floor(requests))).as_py()
    steps = pc.pairwise_diff(series_points(DemoPlan(60_000, 7, PLAN.end), 0)["value"])
    assert pc.max(pc.abs(steps)).as_py() < 5

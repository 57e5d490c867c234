"""Windows that a calendar does not close: points without a timestamp, and points from before 1970."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.lake import open_lake

DAY = 86_400 * 10**6
START = 1_700_000_000 * 10**6


class Clock:
    """Microseconds that pass when a test lets them."""

    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def slow_lake(tmp_path, clock):
    with open_lake(tmp_path / "lake", now=clock) as opened:
        yield opened


def events(number, rows=5, at=None):
    """A few events, without a timestamp unless a second is given."""
    times = pa.array([None if at is None else (at + row) * 10**6 for row in range(rows)], pa.timestamp("us", tz="UTC"))
    return pa.table({"host": [f"h{number}"] * rows, "timestamp": times, "value": [float(number)] * rows})


def seen(lake):
    return lake.sql("select * from events order by all").to_arrow()


@pytest.mark.parametrize("policy", ["stable-log", "constant-write-amplification"])
def test_a_slow_source_of_points_without_a_timestamp_is_compacted(slow_lake, clock, policy):
    table = slow_lake.create_table("events", sort="host|timestamp/V2", policy={"name": policy})
    for number in range(30):
        table.ingest(events(number))
        clock.now += 3 * DAY
    before = seen(slow_lake)
    table.compact.run(threads=1)
    clock.now += 3 * DAY
    table.compact.run(threads=1)
    (window,) = table.inspect.windows()
    assert (window.window, window.splits) == ("overflow/PT15M", 1)
    assert seen(slow_lake) == before


def test_windows_before_1970_are_merged_where_the_start_time_allows_it(slow_lake):
    table = slow_lake.create_table("events", sort="host|timestamp/V2")
    for number in range(4):
        table.ingest(events(number, at=-86_400))
    (reason,) = table.compact.plan().left
    assert "before the compaction start time 1970-01-01T00:00:00Z" in reason
    assert "compaction_start_time" in reason
    table.change.run(compaction_start_time=-86_400)
    assert table.compact.run(threads=1).done == 1
    assert [(row.start, row.splits) for row in table.inspect.windows()] == [(-86_400, 1)]


def test_a_window_before_1970_is_named_by_a_moment(slow_lake):
    table = slow_lake.create_table("events", sort="host|timestamp/V2", compaction_start_time=-(10**10))
    for number in range(4):
        table.ingest(events(number, at=-900))
        table.ingest(events(number, at=0))
    for moment in ("1969-12-31T23:59:59.5", "-1", "-900/0"):
        assert [each.window for each in table.compact.plan(window=moment).windows] == ["1969-12-31T23:45:00Z/PT15M"]

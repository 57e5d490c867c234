"""Queries leave behind which windows they asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import windrow
from windrow.errors import MetastoreError
from windrow.model.window import Window
from windrow.planning.heat import Heat

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
QUARTER = 900


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path) as lake:
        table = lake.create_table("metrics", sort="host|timestamp/V2", window="15m")
        for hour in range(3):
            times = [NOON + timedelta(hours=hour, seconds=second) for second in range(4)]
            for _ in range(2):
                table.ingest(pa.table({"host": ["a"] * 4, "timestamp": times}))
        yield lake


def start(hour):
    return int((NOON + timedelta(hours=hour)).timestamp())


def ask(lake, hour):
    low, high = (NOON + timedelta(hours=hour, minutes=minute) for minute in (0, 5))
    lake.sql(f"select count(*) from metrics where host >= 'a' and timestamp between '{low}' and '{high}'")


def order(lake):
    """The windows that would be merged, in the order of work."""
    return [decision.window.start for decision in lake.table("metrics").compact.plan().planner.merges()]


def test_windows_that_are_asked_for_are_merged_first(lake, tmp_path):
    newest_first = order(lake)
    assert newest_first == [start(2), start(1), start(0)]
    ask(lake, 0)
    ask(lake, 0)
    ask(lake, 1)
    lake.context.heat.close()
    with windrow.connect(tmp_path) as another:
        assert another.context.metastore.heat(another.table("metrics").record().table_id) == pytest.approx(
            {start(0): 2.0, start(1): 1.0}
        )
        asked_first = order(another)
        assert asked_first == [start(0), start(1), start(2)]


class Told:
    """What a metastore is told."""

    def __init__(self, error=None):
        self.told = []
        self.error = error

    def add_queries(self, table_id, queries):
        if self.error:
            raise self.error
        self.told.append((table_id, dict(queries)))


def test_the_metastore_is_told_now_and_then_and_not_of_files_without_a_window():
    metastore, now = Told(), [0.0]
    heat = Heat(metastore, lambda: now[0])
    heat.asked("t", [Window(0, QUARTER), Window(0, QUARTER), None, Window(QUARTER, QUARTER)])
    heat.asked("t", [Window(0, QUARTER)])
    assert metastore.told == []
    now[0] = 31.0
    heat.asked("t", [])
    assert metastore.told == [("t", {0: 2, QUARTER: 1})]
    heat.close()
    assert len(metastore.told) == 1


def test_a_count_that_cannot_be_kept_does_not_stop_a_query():
    now = [0.0]
    heat = Heat(Told(MetastoreError("gone")), lambda: now[0])
    now[0] = 60.0
    heat.asked("t", [Window(0, QUARTER)])
    heat.close()

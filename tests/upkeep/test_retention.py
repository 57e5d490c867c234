"""Whole windows leave when all of their points are too old; what has no place in time goes by its making."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from tests.proofs.worlds import NOON, compact, points, visible

from windrow.errors import Conflict, InvalidInput
from windrow.metastore import CommitKind

AT_NOON = int(NOON.timestamp() * 1e6)


def set_clock(world, minutes):
    world.clock.now = AT_NOON + int(minutes * 60_000_000)


def windows(table):
    return [split.window.start - AT_NOON // 10**6 for split in visible(table) if not split.window.overflow]


def test_windows_leave_whole(world, table):
    set_clock(world, 0)
    table.ingest(points(0, 1, 14, 15, 20, 30))
    assert windows(table) == [0, 900, 1800]
    for minutes, left in ((74, [0, 900, 1800]), (75, [900, 1800]), (104, [1800]), (105, [])):
        set_clock(world, minutes)
        version = table.version()
        plan = table.upkeep.expire.plan(retention="1h")
        assert table.version() == version
        result = table.upkeep.expire.run(retention="1h")
        assert (plan.splits, plan.rows) == (result.splits, result.rows)
        assert windows(table) == left


def test_points_without_a_timestamp_go_by_the_making_of_their_split(world, table):
    set_clock(world, 0)
    table.ingest(points(None))
    set_clock(world, 50)
    table.ingest(points(None, None))
    set_clock(world, 61)
    assert table.upkeep.expire.run(retention="1h").rows == 1
    set_clock(world, 111)
    assert table.upkeep.expire.run(retention="1h").rows == 2


def test_registered_files_go_by_their_registration(tmp_path, world):
    raw = tmp_path / "raw.parquet"
    pq.write_table(points(600, 601), raw)
    set_clock(world, 100)
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        table.register.run([str(raw)])
        set_clock(world, 160)
        assert table.upkeep.expire.run(retention="1h").splits == 0
        set_clock(world, 161)
        assert table.upkeep.expire.run(retention="1h").rows == 2


def test_a_window_of_another_duration_goes_by_its_own_end(world, table):
    set_clock(world, 0)
    table.ingest(points(0))
    table.change.run(window="1h")
    table.ingest(points(1))
    set_clock(world, 60 + 15)
    assert table.upkeep.expire.run(retention="1h").splits == 1
    set_clock(world, 60 + 60)
    assert table.upkeep.expire.run(retention="1h").splits == 1


def test_the_table_says_how_long_it_keeps_points(world, table):
    set_clock(world, 0)
    table.ingest(points(0))
    set_clock(world, 24 * 60 + 15)
    with pytest.raises(InvalidInput, match="'events' keeps its points for ever"):
        table.upkeep.expire.run()
    table.change.run(retention="1d")
    assert table.upkeep.expire.plan().splits == 1
    result = table.upkeep.expire.run()
    assert (result.rows, result.windows, result.version) == (1, 1, 2)


def test_nothing_to_do_makes_no_version(world, table):
    set_clock(world, 0)
    table.ingest(points(0))
    result = table.upkeep.expire.run(retention="1h")
    assert (result.version, result.commit_id, table.version()) == (None, None, 1)
    assert [commit.kind for commit in table.context.metastore.commits(table.record().table_id)] == [CommitKind.INGEST]


def test_a_merge_that_comes_first_is_judged_instead(world, table, monkeypatch):
    set_clock(world, 0)
    for _ in range(2):
        table.ingest(points(0))
    set_clock(world, 200)
    metastore = table.context.metastore
    publish, merged = metastore.publish, []

    def merge_first(commit_id, **arguments):
        if not merged and not arguments.get("add"):
            merged.append(True)
            compact(table, visible(table))
        return publish(commit_id, **arguments)

    monkeypatch.setattr(metastore, "publish", merge_first)
    result = table.upkeep.expire.run(retention="1h")
    assert (result.splits, result.rows) == (1, 2)
    assert visible(table) == []


def test_who_always_comes_second_says_so(world, table, monkeypatch):
    set_clock(world, 0)
    table.ingest(points(0))
    set_clock(world, 200)

    def lose(*_, **__):
        raise Conflict("another commit got there first")

    monkeypatch.setattr(table.context.metastore, "publish", lose)
    with pytest.raises(Conflict):
        table.upkeep.expire.run(retention="1h")
    assert len(visible(table)) == 1

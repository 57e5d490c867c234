"""A mirror that failed catches up, whoever wrote last; a commit never fails because of it."""

from __future__ import annotations

import json
import logging

import pytest
from tests.proofs.worlds import compact, points, visible

from windrow.mirror.follow import Mirror
from windrow.mirror.log import Log, live_paths
from windrow.testing import Fault, FaultKind, FaultyStore

LOG = "events/_delta_log/"


def create(lake):
    return lake.create_table("events", sort="host|timestamp/V2", window="15m")


def mirrored(world, table):
    """The mirror shows what is visible, as the version that it is, and every version has one entry."""
    log = Log(world.store, table.name)
    assert live_paths(log.entries()) == {split.key.removeprefix("events/") for split in visible(table)}
    versions = [entry.origin["version"] for entry in log.entries()]
    assert versions == list(range(table.version() + 1))


@pytest.mark.parametrize("kind", [FaultKind.ERROR, FaultKind.TORN, FaultKind.LOST])
@pytest.mark.parametrize("verb", ["put_if_absent", "list", "get"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_whatever_fails_the_commit_stands_and_the_mirror_catches_up(world, caplog, kind, verb, nth):
    with world.open() as lake:
        create(lake)
    faulty = FaultyStore(world.store, Fault(kind, nth, verb, keep=40))
    with world.open(lambda _: faulty) as lake:
        table = lake.table("events")
        with caplog.at_level(logging.ERROR):
            for minute in range(3):
                assert table.ingest(points(minute)).version == minute + 1
    with world.open() as lake:
        table = lake.table("events")
        table.ingest(points(10))
        mirrored(world, table)


def test_a_warning_says_that_the_mirror_is_behind(world, caplog):
    with world.open(lambda store: FaultyStore(store, Fault(FaultKind.ERROR, 1, "put_if_absent"))) as lake:
        create(lake).ingest(points(0))
    assert "is published; its Delta mirror is behind and catches up: " in caplog.text


def test_two_who_follow_at_once_write_each_version_once(world):
    with world.open() as lake:
        table = create(lake)
        table.change.run(mirror=False)
        for minute in range(5):
            table.ingest(points(minute))
        table.change.run(mirror=True)
        mirrors = [Mirror(lake.context.metastore, world.store) for _ in range(3)]
        for mirror in mirrors:
            assert mirror.version(table.record()) is None

        class Turns(FaultyStore):
            """Lets another one follow before each entry is written."""

            def put_if_absent(self, key, data):
                mirrors[1].follow(table.record())
                return super().put_if_absent(key, data)

        assert Mirror(lake.context.metastore, Turns(world.store)).follow(table.record()) == 5
        mirrored(world, table)
        assert [mirror.follow(table.record()) for mirror in mirrors] == [5, 5, 5]


def test_a_mirror_that_is_too_far_behind_begins_anew_from_what_is_visible(world):
    with world.open() as lake:
        table = create(lake)
        table.ingest(points(0))
        table.change.run(mirror=False)
        table.ingest(points(1))
        compact(table, visible(table))
        table.upkeep.gc.run(grace=0)
        table.change.run(mirror=True)
        table.ingest(points(2))
        log = Log(world.store, "events")
        assert live_paths(log.entries()) == {split.key.removeprefix("events/") for split in visible(table)}
        assert [entry.origin["version"] for entry in log.entries()] == [0, 1, 4]


def test_what_somebody_else_writes_into_the_log_is_set_right(world):
    with world.open() as lake:
        table = create(lake)
        table.ingest(points(0))
        stranger = {
            "add": {"path": "who.parquet", "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True}
        }
        world.store.put(f"{LOG}{2:020d}.json", (json.dumps(stranger) + "\n").encode())
        table.ingest(points(1))
        log = Log(world.store, "events")
        assert live_paths(log.entries()) == {split.key.removeprefix("events/") for split in visible(table)}


def test_garbage_collection_keeps_what_the_mirror_shows(world):
    with world.open() as lake:
        table = create(lake)
        table.ingest(points(0))
        table.ingest(points(1))
        shown = {split.key for split in visible(table)}
    broken = FaultyStore(world.store, Fault(FaultKind.ERROR, 1, "put_if_absent", onwards=True))
    with world.open(lambda _: broken) as lake:
        table = lake.table("events")
        compact(table, visible(table))
        result = table.upkeep.gc.run(grace=0)
        assert "the Delta mirror is behind" in result.problems[0]
        assert result.oldest_version == 2
        assert shown <= world.stored()
    with world.open() as lake:
        table = lake.table("events")
        assert table.upkeep.gc.plan(grace=0).held_by == ("the Delta mirror, at version 2, until it has caught up",)
        assert table.upkeep.gc.run(grace=0).oldest_version == 3
        assert world.stored().isdisjoint(shown)
        mirrored(world, table)

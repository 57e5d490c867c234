"""All 70 orders of two transactions with four phases each: nothing is lost, doubled, or deleted while it lives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.proofs.interleavings import Actor, Stopping, orders, walk
from tests.proofs.worlds import NOON, World, compact, points, rows_of, visible

from windrow.errors import Conflict, LeaseExpired, SnapshotExpired
from windrow.metastore import CommitKind
from windrow.mirror.follow import Mirror
from windrow.mirror.log import Log, live_paths
from windrow.model.split import SplitMetadata
from windrow.table import Table
from windrow.upkeep.gc import GarbageCollection
from windrow.upkeep.retention import Retention

START = [-600, 1, 2, 3]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Three splits of one window, one that is too old, and two that a merge has retired."""
    world = World(tmp_path_factory.mktemp("prepared"))
    world.clock.now = int(NOON.timestamp() * 1e6)
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        for minute in START:
            table.ingest(points(minute))
        compact(table, in_window(table)[:2])
    return world


def in_window(table):
    return [split for split in visible(table) if split.window.start >= NOON.timestamp()]


def stopping(lake, calls, pause, store_calls=()):
    """The table, through a metastore and a store that stop before some calls."""
    metastore = Stopping(lake.context.metastore, calls, pause)
    seen = replace(lake.context, metastore=metastore, store=Stopping(lake.context.store, store_calls, pause))
    return Table(seen, "events")


def compacting(lake, world):
    def run(pause):
        table = stopping(lake, ["open_commit", "publish"], pause, ["put"])
        compact(table, in_window(table))

    return Actor(run)


def ingesting(lake, world, lease=120.0):
    def run(pause):
        table = Table(lake.context, "events")
        commit, record = world.new_id(), table.record()
        pause()
        lake.context.metastore.open_commit(record.table_id, CommitKind.INGEST, commit_id=commit, lease=lease)
        pause()
        split = written(table, commit)
        pause()
        lake.context.metastore.publish(commit, add=[split], columns=["host", "timestamp", "value"])

    return Actor(run)


def written(table, commit):
    """Write the split of a point, as a task would."""
    from windrow.ingest.late import ArrivalRule
    from windrow.ingest.write_task import WriteTask

    record, context = table.record(), table.context
    columns = context.metastore.reserve_columns(record.table_id, points(4).schema)
    rule = ArrivalRule(context.now())
    settings = (context.url, "events", record.table_id, record.settings, commit, 1, "default", 0)
    task = WriteTask(*settings, rule, columns)
    return next(each for each in task.run(points(4).to_batches(), 0) if isinstance(each, SplitMetadata))


def expiring(lake, world):
    def run(pause):
        table = stopping(lake, ["table", "open_commit", "publish"], pause)
        return Retention(table.context, "events").run(retention="2h")

    return Actor(run)


def collecting(lake, world, later=0):
    def run(pause):
        world.clock.advance(later)
        table = stopping(lake, ["drop_versions", "claim", "orphans"], pause)
        return GarbageCollection(table.context, "events", threads=1).run(grace=0)

    return Actor(run)


def reading(lake, world):
    """A reader that holds the version before the merge: pin, list, read, read again."""

    def run(pause):
        metastore, table_id = lake.context.metastore, lake.table("events").record().table_id
        pin = metastore.pin(table_id, 4, pin_id="p", owner="a reader", seconds=600)
        pause()
        splits = [split for page in metastore.splits(table_id, pin) for split in page]
        pause()
        first = world.read(splits)
        pause()
        return first, world.read(splits)

    return Actor(run)


def mirroring(lake, world):
    def run(pause):
        store = Stopping(lake.context.store, ["list", "get", "put_if_absent"], pause)
        return Mirror(lake.context.metastore, store).follow(lake.table("events").record())

    return Actor(run)


def expected(*minutes):
    return rows_of(points(minute) for minute in minutes)


def whole(world, lake, *minutes):
    """The table has these rows, is sound, and stays so when garbage is collected."""
    table = lake.table("events")
    assert world.rows(table) == expected(*minutes)
    world.clock.advance(1000)
    table.upkeep.gc.run(grace=0)
    assert world.rows(table) == expected(*minutes)
    result = table.upkeep.check()
    assert result.sound, result.findings


def no_merge_twice(world, lake, a, b):
    assert sorted(type(each.error) for each in (a, b) if each.error) in ([], [Conflict])
    whole(world, lake, *START)


def both(world, lake, a, b):
    assert (a.error, b.error) == (None, None)
    whole(world, lake, *START, 4)


def expired(world, lake, a, b):
    assert b.error is None
    assert a.error is None or isinstance(a.error, Conflict)
    whole(world, lake, *START[1:])


def published_or_not(world, lake, a, b):
    assert b.error is None
    assert a.error is None or isinstance(a.error, LeaseExpired)
    whole(world, lake, *START, *([] if a.error else [4]))


def read_or_refused(world, lake, a, b):
    assert b.error is None
    if a.error is None:
        assert a.result == (expected(*START), expected(*START))
    else:
        assert isinstance(a.error, SnapshotExpired)
    whole(world, lake, *START)


def mirrored(world, lake, a, b):
    assert (a.error, b.error) == (None, None)
    table = lake.table("events")
    assert live_paths(Log(world.store, "events").entries()) == {
        split.key.removeprefix("events/") for split in visible(table)
    }
    versions = [entry.origin["version"] for entry in Log(world.store, "events").entries()]
    assert versions == list(range(table.version() + 1))
    whole(world, lake, *START, 4)


PAIRS = {
    "compact against compact": (compacting, compacting, no_merge_twice),
    "compact against ingest": (compacting, ingesting, both),
    "compact against expire": (compacting, expiring, expired),
    "gc against a slow writer whose lease runs out": (
        lambda lake, world: ingesting(lake, world, lease=10),
        lambda lake, world: collecting(lake, world, later=20),
        published_or_not,
    ),
    "gc against a reader holding an old version": (reading, collecting, read_or_refused),
    "mirror against publish": (mirroring, ingesting, mirrored),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_every_order_ends_well(folder, prepared, pair):
    make_a, make_b, check = PAIRS[pair]
    walked = 0
    for number, order in enumerate(orders()):
        place = folder / str(number)
        place.mkdir()
        world = prepared.copy(place)
        with world.open() as lake:
            a, b = make_a(lake, world), make_b(lake, world)
            walk(order, a, b)
            check(world, lake, a, b)
        walked += 1
    assert walked == 70

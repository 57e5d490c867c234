"""Whichever operation fails, and however: nothing is lost, nothing is doubled, no live file is deleted."""

from __future__ import annotations

import dataclasses
import os

import pyarrow as pa
import pytest
from tests.proofs.fault_loop import Scenario, every_fault
from tests.proofs.worlds import NOON, compact, points, rows_of, visible

from windrow.errors import NotFound

STRIDE = 60
"""Of a database's operations, in this suite's small size, every so many-th fails."""


def prepare(world):
    """Three splits of a window, one of the overflow, one that is too old, and a failed run's files."""
    world.clock.now = int(NOON.timestamp() * 1e6)
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        table.ingest(points(-600))
        for minute in (1, 2, 3):
            table.ingest(points(minute))
        table.ingest(points(None))
        compact(table, [split for split in visible(table) if split.window.start >= NOON.timestamp()][:2])


def rows_now(world, lake):
    return world.rows(lake.table("events"))


def expected(*minutes):
    return rows_of(points(minute) for minute in minutes)


def sound(lake):
    result = lake.table("events").upkeep.check(data=True)
    assert [each for each in result.findings if each.kind != "mirror"] == []


def one_of(*choices):
    """The table holds one of these sets of rows, and is whole."""

    def check(world, lake):
        assert rows_now(world, lake) in [expected(*minutes) for minutes in choices]
        sound(lake)

    return check


def exactly(*minutes):
    """The table holds these rows, its mirror has caught up, and garbage collection leaves all of it."""

    def check(world, lake):
        assert rows_now(world, lake) == expected(*minutes)
        world.clock.advance(1)
        lake.table("events").upkeep.gc.run(grace=0)
        assert rows_now(world, lake) == expected(*minutes)
        result = lake.table("events").upkeep.check(data=True)
        assert result.sound, result.findings
        kept = {key for split in visible(lake.table("events")) for key in (split.key, split.sidecar.key)}
        assert {key for key in world.stored() if "_delta_log" not in key} == kept | {"events/_clock"}

    return check


BEFORE = (-600, 1, 2, 3, None)


def ingest(lake):
    """A batch of a stream, so that doing it twice is doing it once."""
    from windrow.ingest.batch import StreamBatch
    from windrow.ingest.run import Ingest
    from windrow.ingest.settings import IngestSettings
    from windrow.ingest.sources import source_of

    Ingest.of(lake.context, "events", IngestSettings(), StreamBatch("q", 0)).run(source_of(points(4)))


def merge(lake):
    table = lake.table("events")
    window = [split for split in visible(table) if split.window.start >= NOON.timestamp()]
    if len(window) > 1:
        compact(table, window)


def expire(lake):
    lake.table("events").upkeep.expire.run(retention="2h")


def collect(lake):
    lake.table("events").upkeep.gc.run(grace=0)


def mirror(lake):
    from windrow.mirror.follow import Mirror

    Mirror(lake.context.metastore, lake.context.store).follow(lake.table("events").record())


def unmirrored(world):
    """A table whose mirror is six versions behind."""
    prepare(world)
    for key in [key for key in world.stored() if "_delta_log" in key]:
        world.store.delete(key)


def repair(lake):
    lake.table("events").upkeep.check(repair=True)


def without_sidecars(world):
    prepare(world)
    for key in [key for key in world.stored() if key.endswith(".pm")][:2]:
        world.store.delete(key)


def rebuild(lake):
    if not list(lake.tables()):
        lake.rebuild_table("events")


def without_metastore(world):
    prepare(world)
    world.lose_metastore()


def nothing_or_all(world, lake):
    if list(lake.tables()):
        one_of(BEFORE)(world, lake)
    else:
        with pytest.raises(NotFound):
            lake.table("events")


def rows_only(*minutes):
    def check(world, lake):
        assert rows_now(world, lake) == expected(*minutes)

    return check


COLD = (-600, -590, -500, -70, 1, None)


def with_closed_windows(world):
    """Windows of which some are closed, one of them gathered, and a point that came late."""
    world.clock.now = int(NOON.timestamp() * 1e6)
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", cold_window="2h")
        table.ingest(pa.concat_tables([points(minute) for minute in (-600, -590, -70, 1, None)]))
        table.compact.run(threads=1)
        table.ingest(points(-500))
        world.clock.advance(7200)


def gather(lake):
    dataclasses.replace(lake.table("events").compact, sleep=lambda _: None).run(threads=1)


def gathered(world, lake):
    exactly(*COLD)(world, lake)
    windows = {split.window for split in visible(lake.table("events")) if not split.window.overflow}
    assert sorted(window.duration for window in windows) == [900, 900, 7200]


SCENARIOS = [
    Scenario("gather", with_closed_windows, gather, one_of(COLD), gathered),
    Scenario("ingest", prepare, ingest, one_of(BEFORE, (*BEFORE, 4)), exactly(*BEFORE, 4)),
    Scenario("compact", prepare, merge, one_of(BEFORE), exactly(*BEFORE)),
    Scenario("expire", prepare, expire, one_of(BEFORE, BEFORE[1:]), exactly(*BEFORE[1:])),
    Scenario("gc", prepare, collect, one_of(BEFORE), exactly(*BEFORE)),
    Scenario("mirror", unmirrored, mirror, one_of(BEFORE), exactly(*BEFORE)),
    Scenario("repair", without_sidecars, repair, rows_only(*BEFORE), exactly(*BEFORE)),
    Scenario("rebuild", without_metastore, rebuild, nothing_or_all, exactly(*BEFORE)),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
@pytest.mark.parametrize("stride", [STRIDE, pytest.param(1, marks=pytest.mark.long)], ids=["some", "all"])
def test_every_fault_leaves_the_table_whole(folder, scenario, stride, record_property):
    faults = every_fault(scenario, folder, stride=stride)
    record_property("faults", faults.total())
    print(f"{scenario.name}: {faults.total()} faults")
    assert faults.total() > 10


LOCAL = {"compact": {"read_each"}, "gc": {"unfinished", "remove_unfinished"}, "repair": set()}
"""Scenarios that use local files as such, and by which verbs."""


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.name in LOCAL], ids=lambda each: each.name)
def test_every_fault_of_a_folder_leaves_the_table_whole(folder, scenario, record_property):
    faults = every_fault(dataclasses.replace(scenario, prepare=left_behind(scenario.prepare)), folder, local=True)
    record_property("faults", dict(faults))
    print(f"{scenario.name} in a folder: {dict(faults)} faults")
    assert all(faults[verb] for verb in LOCAL[scenario.name])
    assert faults.total() > 10


def left_behind(prepare):
    """The same lake, in which a writer that was stopped has left a hidden file."""

    def with_hidden_file(world):
        prepare(world)
        hidden = world.store.root / "events" / ".windrow-1-1-part.tmp"
        hidden.write_bytes(b"0123")
        os.utime(hidden, (0, 0))

    return with_hidden_file

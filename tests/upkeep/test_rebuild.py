"""A metastore that was lost is made again from the mirror and the files; what the mirror does not know stays away."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest
from deltalake import DeltaTable
from tests.proofs.worlds import NOON, World, compact, points, visible

import windrow
from windrow.errors import AlreadyExists, Damaged, NotFound, StorageError
from windrow.mirror import follow
from windrow.mirror.actions import entry_of
from windrow.testing import Fault, FaultKind, FaultyStore

LOG = "events/_delta_log/"


def random_operations(world, lake, draw, count):
    """Ingest, merge, expire and collect at random; return the rows of every version."""
    table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
    world.clock.now = int(NOON.timestamp() * 1e6)
    history = {0: world.rows(table)}
    for _ in range(count):
        world.clock.advance(draw.choice((1, 60)))
        windows = {split.window for split in visible(table)}
        act = draw.random()
        if act < 0.15 and windows:
            window = draw.choice(sorted(windows))
            compact(table, [split for split in visible(table) if split.window == window][:4])
        elif act < 0.2:
            table.upkeep.expire.run(retention=draw.choice((3600, 7200)))
        elif act < 0.25:
            table.upkeep.gc.run(grace=draw.choice((0, 600)))
        elif act < 0.3:
            table.change.run(window=draw.choice(("5m", "15m")))
        else:
            now = (world.clock.now - int(NOON.timestamp() * 1e6)) / 60e6
            table.ingest(points(*draw.choices((None, now, now - 50, now + 10), k=2), host=draw.choice("ab")))
        history[table.version()] = world.rows(table)
    return history


def rebuilt(world):
    """A lake that has lost its metastore, and what came back of a table: what the plan says, which changes nothing."""
    lake = world.open()
    before = world.stored(), lake.tables()
    planned = lake.rebuild_table.plan("events")
    assert (world.stored(), lake.tables()) == before
    result = lake.rebuild_table("events")
    assert result == planned
    return lake, result


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 40), (2, 40), pytest.param(3, 500, marks=pytest.mark.long)], ids=["one", "two", "long"]
)
def test_the_same_rows_come_back_at_the_same_version(folder, seed, count):
    world, draw = World(folder), random.Random(seed)
    with world.open() as lake:
        history = random_operations(world, lake, draw, count)
        table = lake.table("events")
        before, splits = table.record(), visible(table)
        columns = lake.context.metastore.columns(before.table_id)
    world.lose_metastore()
    lake, result = rebuilt(world)
    with lake:
        table = lake.table("events")
        assert (result.version, result.missing_files, result.log_ends) == (before.version, (), None)
        assert visible(table) == splits
        assert world.rows(table) == history[before.version]
        assert table.record().settings == before.settings
        assert lake.context.metastore.columns(before.table_id) == columns
        assert table.upkeep.check(data=True).sound
        # It goes on from there, and what was retired is collected as what failed commits left.
        world.clock.advance(10)
        table.ingest(points(1))
        table.upkeep.gc.run(grace=0)
        assert table.upkeep.check(data=True).sound
        assert sum(world.rows(table).values()) == sum(history[before.version].values()) + 1
        kept = {key for split in visible(table) for key in (split.key, split.sidecar.key)}
        assert {key for key in world.stored() if "/_delta_log/" not in key} == kept | {"events/_clock"}


@pytest.mark.parametrize("seed", range(6))
def test_a_mirror_that_was_cut_off_brings_back_the_version_where_it_ends(folder, seed):
    world, draw = World(folder), random.Random(seed)
    with world.open() as lake:
        history = random_operations(world, lake, draw, 25)
        newest = lake.table("events").version()
    entries = sorted(key for key in world.stored() if key.startswith(LOG) and key.endswith(".json"))
    cut = draw.randrange(1, len(entries))
    how = draw.choice(("end lost", "torn", "gap"))
    for key in entries[cut:] if how == "end lost" else entries[cut : cut + 1]:
        world.store.delete(key)
    if how == "torn":
        world.store.put(entries[cut], b'{"commitInfo": {')
    world.lose_metastore()
    lake, result = rebuilt(world)
    with lake:
        table = lake.table("events")
        assert (result.version, table.version()) == (cut - 1, cut - 1)
        missing = history[cut - 1] - world.rows(table)
        assert not world.rows(table) - history[cut - 1], "nothing that was retired or never published came back"
        assert sum(missing.values()) == result.missing_rows
        assert bool(result.log_ends) == (how != "end lost" and not (how == "gap" and cut == newest))
        assert table.upkeep.check(data=True).sound
        table.ingest(points(3))
        assert table.upkeep.check(data=True).sound
    world.lose_metastore()
    lake, again = rebuilt(world)
    with lake:
        assert (again.version, again.log_ends, again.missing_rows) == (cut, None, 0)


def test_what_was_written_and_never_published_stays_away(world):
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        table.ingest(points(0))
    # The mirror fails, so that it knows nothing of the second commit; the third is never published.
    broken = FaultyStore(world.store, Fault(FaultKind.ERROR, 1, "put_if_absent", onwards=True))
    with world.open(lambda _: broken) as lake:
        lake.table("events").ingest(points(1))
    world.lose_metastore()
    lake, result = rebuilt(world)
    with lake:
        assert (result.version, result.rows, result.unknown_files) == (1, 1, 2)
        assert any("Delta log" in sentence for sentence in result.cannot_know)
        world.clock.advance(10**6)
        assert lake.table("events").upkeep.gc.run(grace=0).unknown_files == 2


def test_a_stream_goes_on_where_it_was(world):
    from windrow.ingest.batch import StreamBatch
    from windrow.ingest.run import Ingest
    from windrow.ingest.settings import IngestSettings
    from windrow.ingest.sources import source_of

    def batch(lake, number):
        run = Ingest.of(lake.context, "events", IngestSettings(), StreamBatch("q", number))
        return run.run(source_of(points(number)))

    with world.open() as lake:
        lake.create_table("events", sort="host|timestamp/V2")
        for number in range(3):
            batch(lake, number)
    world.lose_metastore()
    lake, _ = rebuilt(world)
    with lake:
        assert batch(lake, 2).replayed
        assert not batch(lake, 3).replayed
        assert sum(world.rows(lake.table("events")).values()) == 4


def test_a_store_that_fails_brings_back_nothing_rather_than_less(world):
    with world.open() as lake:
        lake.create_table("events", sort="host|timestamp/V2").ingest(points(0, 20, 40))
    world.lose_metastore()
    with world.open(lambda store: FaultyStore(store, Fault(FaultKind.ERROR, 2, "head"))) as lake:
        with pytest.raises(StorageError):
            lake.rebuild_table("events")
        assert list(lake.tables()) == []
    lake, result = rebuilt(world)
    lake.close()
    assert (result.rows, result.missing_files) == (3, ())


def test_a_table_that_is_known_is_left_alone_and_one_without_a_log_is_not_found(world):
    with world.open() as lake:
        lake.create_table("events", sort="host|timestamp/V2").ingest(points(0))
        with pytest.raises(AlreadyExists, match="nothing to rebuild"):
            lake.rebuild_table("events")
        with pytest.raises(NotFound, match="no Delta log"):
            lake.rebuild_table("others")


def key(number):
    return f"{LOG}{number:020d}.json"


def a_log(world, count=6):
    """Ingest some rows, each in a version of its own, and lose the metastore."""
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        for number in range(count):
            table.ingest(points(number))
    world.lose_metastore()


@pytest.mark.parametrize("damage", ["gone", "torn"])
def test_entries_behind_a_lost_one_are_never_overwritten(world, damage):
    a_log(world)
    if damage == "gone":
        world.store.delete(key(3))
    else:
        world.store.put(key(3), world.store.get(key(3))[:-7])
    intact = {number: world.store.get(key(number)) for number in (0, 1, 2, 4, 5, 6)}
    lake, result = rebuilt(world)
    with lake:
        assert (result.version, result.rows) == (2, 2)
        assert "entry 3 of the Delta log" in result.log_ends
        assert len(result.lost_entries) == 1
        assert {number: world.store.get(key(number)) for number in intact} == intact
        table = lake.table("events")
        assert table.upkeep.check(data=True).sound
        table.ingest(points(30))
        assert table.upkeep.check(data=True).sound
    world.lose_metastore()
    lake, again = rebuilt(world)
    with lake:
        assert (again.version, again.rows, again.log_ends, again.lost_entries) == (3, 3, None, ())


def test_what_follows_a_lost_entry_counts_from_the_next_one_that_says_all(world):
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        for number in range(3):
            table.ingest(points(number))
        table.change.run(mirror=False)
        table.ingest(points(3))
        table.upkeep.gc.run(grace=0)
        table.change.run(mirror=True)
        table.ingest(points(4))
        rows = world.rows(table)
    world.store.delete(key(1))
    world.lose_metastore()
    lake, result = rebuilt(world)
    with lake:
        assert (result.version, result.log_ends) == (5, None)
        assert len(result.lost_entries) == 1
        assert world.rows(lake.table("events")) == rows
        assert lake.table("events").upkeep.check(data=True).sound


@pytest.mark.parametrize("lost", [(1,), (0, 3), (4,)])
def test_what_follows_a_lost_entry_counts_from_the_next_checkpoint(tmp_path, monkeypatch, lost):
    monkeypatch.setattr(follow, "CHECKPOINT_EVERY", 4)
    with windrow.connect(tmp_path) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        for number in range(6):
            table.ingest(points(number))
        rows = sorted(lake.sql("select * from events").to_arrow().to_pylist(), key=str)
    for number in lost:
        (tmp_path / key(number)).unlink()
    (tmp_path / "windrow.db").unlink()
    with windrow.connect(tmp_path, accept="repair") as lake:
        result = lake.rebuild_table("events")
        assert (result.version, result.rows, result.log_ends, len(result.lost_entries)) == (6, 6, None, len(lost))
        assert sorted(lake.sql("select * from events").to_arrow().to_pylist(), key=str) == rows
        assert lake.table("events").upkeep.check(data=True).sound
    assert DeltaTable(tmp_path / "events").to_pyarrow_table().num_rows == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda action: action["commitInfo"]["windrow"].update(version=2**62),
        lambda action: action["commitInfo"]["windrow"].update(kind=7),
        lambda action: action["commitInfo"]["windrow"].pop("published_at"),
        lambda action: action["metaData"]["configuration"].pop("windrow.settings"),
        lambda action: action["metaData"]["configuration"].update({"windrow.settings": "{}"}),
        lambda action: action["metaData"]["configuration"].update({"windrow.columns": '[["a", 1, "AAAA"]]'}),
        lambda action: action["metaData"]["configuration"].update({"windrow.columns": "[1]"}),
        lambda action: action["metaData"]["configuration"].update({"windrow.created_at": "now"}),
        lambda action: action["metaData"].update(configuration=[]),
    ],
)
def test_a_log_that_cannot_be_true_is_damaged(world, change):
    """An old log carries no digest; what is odd in it is named, and nothing is made of it."""
    a_log(world, 1)
    for number in range(2):
        actions = [json.loads(line) for line in world.store.get(key(number)).splitlines()]
        for action in actions:
            action.get("commitInfo", {}).get("windrow", {}).pop("digest", None)
            with suppress(KeyError):
                change(action)
        world.store.put(key(number), entry_of(number, actions))
    with world.open() as lake:
        with pytest.raises(Damaged, match="events/_delta_log"):
            lake.rebuild_table("events")
        assert list(lake.tables()) == []


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "a/../../x.parquet", "%2e%2e/x.parquet"])
def test_a_path_that_leads_out_of_the_table_is_not_followed(world, path):
    a_log(world, 2)
    actions = [json.loads(line) for line in world.store.get(key(2)).splitlines()]
    next(action for action in actions if "add" in action)["add"]["path"] = path
    world.store.put(key(2), entry_of(2, actions))
    lake, result = rebuilt(world)
    with lake:
        assert (result.version, result.rows) == (1, 1)
        assert "entry 2 of the Delta log cannot be used" in result.log_ends
        assert lake.table("events").upkeep.check(data=True).sound

"""Every guard is needed: with any one taken away, a proof that passes with it fails."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import func, select
from tests.proofs.worlds import NOON, World, compact, points, visible

from windrow.compaction.planner import Planner
from windrow.errors import InvariantViolation
from windrow.merging.inputs import open_inputs
from windrow.merging.merge import Merge, MergeOptions
from windrow.merging.readback import ReadBack
from windrow.merging.splits import merge_splits
from windrow.merging.verify import verify_all
from windrow.metastore import CommitKind, Orphans, SqlMetastore, collecting, commits, guards
from windrow.metastore.collecting import Collecting
from windrow.model import invariants
from windrow.model.window import Window
from windrow.splits.writer import SplitName
from windrow.testing.metastore_cases.collecting import CollectingCases
from windrow.testing.metastore_cases.commits import CommitCases
from windrow.testing.metastore_cases.epochs import EpochCases
from windrow.testing.metastore_cases.samples import TABLE, FakeClock, a_split, a_table, add, begin
from windrow.upkeep.gc import GarbageCollection


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def on_metastore(case):
    """A case of the conformance suite, as a proof."""

    def proof(world):
        clock = FakeClock()
        with SqlMetastore(world.url, clock=clock) as metastore:
            case(metastore, clock, lambda: metastore)

    return proof


def merge_of(first, second, **change):
    """Merging two splits of different ingests is refused with an invariant."""

    def proof(world):
        with world.open() as lake:
            table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
            table.ingest(points(*first))
            table.ingest(points(*second), source=change.get("source", "default"))
            name = SplitName("events", "m", "m", 0)
            with pytest.raises(InvariantViolation) as refused:
                merge_splits(world.store, visible(table), table.settings(), lambda _: name)
            assert refused.value.invariant == change["invariant"]

    return proof


def a_merge_that_loses_a_row_is_refused(world):
    with SqlMetastore(world.url) as metastore:
        a_table(metastore)
        add(metastore, "c1", a_split("s1", "c1", rows=7))
        begin(metastore, "c2", CommitKind.COMPACT)
        with pytest.raises(InvariantViolation, match="MC-1"):
            metastore.publish("c2", add=[a_split("m", "c2", rows=6)], replace=["s1"])


def a_merge_that_changes_a_value_is_refused(world):
    """All rows of an output are compared with those of the inputs by sums of their contents."""
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        table.ingest(points(0, 1))
        sink = pa.BufferOutputStream()
        changed = points(1, 0).set_column(2, "value", pa.array([7, 0]))
        pq.write_table(changed, sink)
        inputs = open_inputs(world.store, [visible(table)[0].key], None)
        merge = Merge.of(inputs, table.settings().sort, MergeOptions(sums=True))
        merge.run()
        merge.close()
        back = ReadBack(merge.columns, merge.schema, merge.sums.copied, 1000)
        with pytest.raises(InvariantViolation, match="MC-2"):
            verify_all([memoryview(sink.getvalue())], merge.sums, back, merge.file_schema.arrow.names)


def a_gathering_takes_from_inside(world):
    """Points of the window beside it are not for a cold window."""
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", cold_window="2h")
        for minute in (0, 110, 130):
            table.ingest(points(minute))
        name, cold = SplitName("events", "m", "m", 0), Window.of(int(NOON.timestamp()), 7200)
        with pytest.raises(InvariantViolation) as refused:
            merge_splits(world.store, visible(table), table.settings(), lambda _: name, gather_into=cold)
        assert refused.value.invariant == "CW-2"


def open_windows_are_not_gathered(world):
    with world.open() as lake:
        world.clock.now = int(NOON.timestamp() * 1e6) + 2 * 3_600_000_000
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", cold_window="2h")
        for minute in (0, 110):
            table.ingest(points(minute))
        assert table.compact.run(threads=1).done == 0
        world.clock.advance(3600)
        assert table.compact.run(threads=1).done == 1


def old_windows_are_left_alone(world):
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", policy={"merge_factor": 2})
        for _ in range(2):
            table.ingest(points(0))
        table.change.run(compaction_start_time=2_000_000_000)
        assert table.compact.run(threads=1).done == 0


def a_commit_that_is_published_while_it_is_judged_keeps_its_files(world):
    with SqlMetastore(world.url) as metastore:
        a_table(metastore)
        begin(metastore, "c1")
        asked = []

        def then_publish(inner):
            def call(*args, **kwargs):
                found = inner(*args, **kwargs)
                if not asked:
                    asked.append(True)
                    metastore.publish("c1", add=[a_split("c1-1-0", "c1")])
                return found

            return call

        metastore._states, metastore.recorded_splits = map(then_publish, (metastore._states, metastore.recorded_splits))
        assert metastore.orphans(TABLE, ["c1-1-0"]).dead == frozenset()


def a_file_that_was_just_written_is_too_young(world):
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", mirror=False)
        table.ingest(points(0))
        commit = table.context.new_id()
        metastore = table.context.metastore
        metastore.open_commit(table.record().table_id, CommitKind.INGEST, commit_id=commit, lease=60)
        metastore.abort(commit)
        world.store.put(f"events/partition_id=0/window_start=0/{commit}-1-0-0.parquet", b"new")
        assert table.upkeep.gc.run(grace=3600).orphan_files == 0


def what_is_visible_survives_collection(world):
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", mirror=False)
        for _ in range(2):
            table.ingest(points(0))
        compact(table, visible(table))
        pin = table.context.metastore.pin(table.record().table_id, 2, pin_id="p", owner="a reader", seconds=60)
        table.upkeep.gc.run(grace=0)
        splits = [split for page in table.context.metastore.splits(table.record().table_id, pin) for split in page]
        assert sum(world.read(splits).values()) == 2


def silenced(*names):
    """Take rules out of the registry."""

    def remove(patch):
        for name in names:
            deaf = replace(invariants.INVARIANTS[name], check=lambda **_: None)
            patch.setitem(invariants._registry, name, deaf)

    return remove


def horizon_without(what):
    def horizon(self, connection, table, grace, upto):
        began = self.database.now(connection) - (0 if what == "grace" else int(grace * 1e6))
        settled = select(func.max(commits.commits.c.version)).where(
            commits.commits.c.table_key == table.table_key,
            commits.commits.c.published_at <= began,
        )
        return max(table.oldest_version, connection.execute(settled).scalar_one() or 0)

    return lambda patch: patch.setattr(Collecting, "_horizon", horizon)


def no_lease(patch):
    patch.setattr(commits, "check_lease", lambda *_: None)


def any_epoch(patch):
    patch.setattr(guards, "check_epoch", lambda *_: None)


def no_compare_and_set(patch):
    splits = collecting.splits.c
    patch.setattr(
        collecting,
        "_beyond",
        lambda table: (splits.table_key == table.table_key, splits.removed_version.is_not(None)),
    )


def splits_first(patch):
    def orphans(self, table_id, split_ids, *, ended=()):
        known = self.recorded_splits(table_id, split_ids)
        states = self._states(table_id, {name: collecting._writers(name) for name in split_ids})
        rest = [name for name in split_ids if name not in known]
        return Orphans(frozenset(name for name in rest if states[name] and "open" not in states[name]), frozenset())

    patch.setattr(Collecting, "orphans", orphans)


def unknown_are_dead(patch):
    inner = Collecting.orphans

    def orphans(self, table_id, split_ids, *, ended=()):
        judged = inner(self, table_id, split_ids, ended=ended)
        return Orphans(judged.dead | judged.unknown, frozenset())

    patch.setattr(Collecting, "orphans", orphans)


def any_age(patch):
    inner = GarbageCollection._orphans
    patch.setattr(
        GarbageCollection,
        "_orphans",
        lambda self, table, before, sweep, ended=(): inner(self, table, before.replace(year=9999), sweep, ended),
    )


def gathered_at_once(patch):
    silenced("CW-3")(patch)
    patch.setattr(Planner, "closed_before", 2**40)


def no_start_time(patch):
    silenced("CS-3")(patch)
    patch.setattr(Planner, "_settled", lambda self, group: None)


def case(name):
    return getattr(CollectingCases(), name)


GUARDS = {
    "scope": (silenced("CS-1"), merge_of((0,), (1,), source="other", invariant="CS-1")),
    "window": (silenced("CS-2"), merge_of((0,), (20,), invariant="CS-2")),
    "inside of a cold window": (silenced("CW-2"), a_gathering_takes_from_inside),
    "closed cold windows": (gathered_at_once, open_windows_are_not_gathered),
    "start time": (no_start_time, old_windows_are_left_alone),
    "exact counts": (silenced("MC-1"), a_merge_that_loses_a_row_is_refused),
    "row hash": (silenced("MC-2"), a_merge_that_changes_a_value_is_refused),
    "lease": (
        no_lease,
        on_metastore(lambda m, clock, _: CommitCases().test_a_lease_that_ran_out_ends_the_commit(m, clock)),
    ),
    "schema epoch": (
        any_epoch,
        on_metastore(lambda m, *_: EpochCases().test_what_was_written_in_an_earlier_epoch_is_not_published_any_more(m)),
    ),
    "pin": (
        horizon_without("pin"),
        on_metastore(lambda m, clock, _: case("test_a_pin_keeps_its_version_until_it_runs_out")(m, clock)),
    ),
    "pin, by its files": (horizon_without("pin"), what_is_visible_survives_collection),
    "grace period": (
        horizon_without("grace"),
        on_metastore(
            lambda m, clock, _: case("test_versions_are_kept_that_were_the_newest_within_the_grace_period")(
                m, clock, 1, 2
            )
        ),
    ),
    "compare-and-set": (
        no_compare_and_set,
        on_metastore(case("test_splits_that_no_kept_version_shows_are_marked_and_forgotten")),
    ),
    "compare-and-set, by its files": (no_compare_and_set, what_is_visible_survives_collection),
    "commits before splits": (splits_first, a_commit_that_is_published_while_it_is_judged_keeps_its_files),
    "unknown commits": (
        unknown_are_dead,
        on_metastore(lambda m, clock, _: case("test_an_orphan_is_no_split_and_its_commit_has_ended")(m)),
    ),
    "age of orphans": (any_age, a_file_that_was_just_written_is_too_young),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_with_the_guard_the_proof_passes(world, guard):
    GUARDS[guard][1](world)


@pytest.mark.parametrize("guard", GUARDS)
def test_without_the_guard_the_proof_fails(world, monkeypatch, guard):
    remove, proof = GUARDS[guard]
    remove(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, LookupError)):
        proof(world)
    print(f"caught: {guard}")

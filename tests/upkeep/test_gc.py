"""Garbage collection takes what nobody can need, and nothing else."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.proofs.worlds import NOON, compact, points, visible

import windrow
from windrow.errors import InvalidInput, SnapshotExpired, StorageError
from windrow.ingest.batch import StreamBatch
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.metastore import CommitState
from windrow.storage import LocalStore
from windrow.storage.local import Unfinished
from windrow.testing import Fault, FaultKind, FaultyStore
from windrow.upkeep.gc import GarbageCollection
from windrow.upkeep.pace import Pace

DAY = 86_400


def an_attempt(table, batch=0):
    """Begin a batch of a stream and write its files: a window and the overflow, each with its sidecar."""
    run = Ingest.of(table.context, table.name, IngestSettings(), StreamBatch("q", batch))
    rows = points(0, None)
    opened = run.open(rows.schema)
    return run, opened, list(opened.task.report(rows.to_batches(), 0))


def merged(table):
    """Merge three small splits of a window into one; return the files that nobody needs now."""
    for minute in (1, 2, 3):
        table.ingest(points(minute))
    old = visible(table)
    compact(table, old)
    return {key for split in old for key in (split.key, split.sidecar.key)}


class TestRetired:
    def test_files_go_once_no_kept_version_shows_them(self, world, table):
        old = merged(table)
        rows, before = world.rows(table), world.stored()
        assert old < before
        world.clock.advance(DAY)
        result = table.upkeep.gc.run()
        assert (result.retired_splits, result.orphan_files, result.failed_files) == (3, 0, 0)
        assert world.stored() == before - old | {"events/_clock"}
        assert world.rows(table) == rows
        assert result.oldest_version == 4
        assert table.upkeep.gc.run().retired_splits == 0

    def test_within_the_grace_period_nothing_goes(self, world, table):
        merged(table)
        before = world.stored()
        world.clock.advance(DAY - 1)
        assert table.upkeep.gc.run().retired_splits == 0
        assert world.stored() == before | {"events/_clock"}
        assert world.rows(table.at(version=3)) == world.rows(table)

    def test_a_pin_keeps_the_files_of_its_version(self, world, table):
        merged(table)
        pin = table.context.metastore.pin(table.record().table_id, 2, pin_id="p", owner="a report", seconds=2 * DAY)
        world.clock.advance(DAY)
        plan = table.upkeep.gc.plan()
        assert (plan.oldest_version_then, plan.held_by) == (2, ("pin of a report on version 2",))
        table.upkeep.gc.run()
        assert sum(world.rows(table.at(version=2)).values()) == 2
        table.context.metastore.release(pin)
        assert table.upkeep.gc.run().retired_splits == 3

    def test_a_version_whose_files_are_gone_is_expired_not_a_missing_file(self, world, table):
        merged(table)
        table.upkeep.gc.run(grace=0)
        with pytest.raises(SnapshotExpired, match="version 3 of table 'events' is no longer kept"):
            world.rows(table.at(version=3))

    def test_a_plan_tells_what_a_run_would_do_and_changes_nothing(self, world, table):
        merged(table)
        run, opened, _ = an_attempt(table)
        run.give_up(opened.commit.attempt)
        world.clock.advance(DAY + 1)
        before, record = world.stored(), table.record()
        plan = table.upkeep.gc.plan()
        assert (world.stored(), table.record()) == (before, record)
        result = table.upkeep.gc.run()
        shared = plan.to_dict().keys() & result.to_dict().keys() - {"oldest_version"}
        assert {name: plan.to_dict()[name] for name in shared} == {name: result.to_dict()[name] for name in shared}
        assert (plan.retired_splits, plan.orphan_files, plan.oldest_version_then) == (3, 4, result.oldest_version)

    def test_pages_and_limits_take_the_same_in_the_end(self, world, table):
        old = merged(table)
        gc = GarbageCollection(table.context, table.name, page=1)
        assert [gc.run(grace=0, limit=limit).retired_splits for limit in (0, 1, 2, None)] == [0, 1, 2, 0]
        assert world.stored().isdisjoint(old)

    def test_a_store_that_holds_on_to_a_file_is_asked_again_next_time(self, world, table):
        old = merged(table)
        stuck = world.open(lambda store: FaultyStore(store, Fault(FaultKind.ERROR, 1, "delete")))
        result = stuck.table("events").upkeep.gc.run(grace=0)
        assert (result.retired_splits, result.failed_files) == (2, 1)
        assert "planned fault" in result.problems[0]
        assert len(world.stored() & old) == 1
        again = table.upkeep.gc.run(grace=0)
        assert (again.retired_splits, again.failed_files) == (1, 0)
        assert world.stored().isdisjoint(old)

    def test_without_the_clock_of_the_store_nothing_is_deleted(self, world, table):
        merged(table)
        before = world.stored() | {"events/_clock"}
        broken = world.open(lambda store: FaultyStore(store, Fault(FaultKind.ERROR, 1, "head")))
        with pytest.raises(StorageError):
            broken.table("events").upkeep.gc.run(grace=0)
        assert world.stored() == before

    def test_deletions_keep_to_their_pace(self, world, table):
        merged(table)
        waits = []
        pace = Pace(10, clock=lambda: 0.0, sleep=waits.append)
        GarbageCollection(table.context, table.name, threads=1).run(grace=0, pace=pace)
        assert waits == pytest.approx([0.1 * number for number in range(1, 6)])


class TestOrphans:
    def test_a_writer_that_may_yet_publish_loses_nothing(self, world, table):
        run, opened, reports = an_attempt(table)
        world.clock.advance(100)
        assert table.upkeep.gc.run(grace=0).orphan_files == 0
        run.publish(opened.commit.attempt, reports)
        assert table.upkeep.gc.run(grace=0).orphan_files == 0
        assert sum(world.rows(table).values()) == 2

    def test_a_writer_whose_lease_ran_out_is_ended_before_its_files_go(self, world, table):
        run, opened, reports = an_attempt(table)
        world.clock.advance(121)
        assert table.upkeep.gc.plan(grace=0).orphan_files == 4
        result = table.upkeep.gc.run(grace=0)
        assert (result.ended_commits, result.orphan_files) == ((run.commit_id,), 4)
        world.clock.advance(-100)
        with pytest.raises(windrow.errors.LeaseExpired, match="aborted"):
            run.publish(opened.commit.attempt, reports)
        assert table.context.metastore.commit(run.commit_id).state == CommitState.ABORTED

    def test_files_of_a_run_that_was_given_up_go_after_the_grace_period(self, world, table):
        run, opened, _ = an_attempt(table)
        run.give_up(opened.commit.attempt)
        assert (table.upkeep.gc.run(grace=60).orphan_files, table.upkeep.gc.run(grace=60).young_files) == (0, 4)
        world.clock.advance(61)
        assert table.upkeep.gc.run(grace=60).orphan_files == 4
        assert world.stored() == {"events/_clock"}

    def test_files_of_an_attempt_that_was_taken_over_wait_for_its_successor(self, world, table):
        an_attempt(table)
        run, opened, reports = an_attempt(table)
        world.clock.advance(1)
        assert table.upkeep.gc.run(grace=0).orphan_files == 0
        run.publish(opened.commit.attempt, reports)
        assert table.upkeep.gc.run(grace=0).orphan_files == 4
        assert sum(world.rows(table).values()) == 2

    def test_what_a_commit_leaves_that_nobody_knows_stays(self, world, table):
        table.ingest(points(0))
        folder = "events/partition_id=0/window_start=0"
        names = [f"{folder}/who-1-0-0.parquet", f"{folder}/_who-1-0-0.pm", f"{folder}/notes.txt", "events/a.parquet"]
        for key in names:
            world.store.put(key, b"mine")
        world.clock.advance(10 * DAY)
        result = table.upkeep.gc.run(grace=0)
        assert (result.orphan_files, result.unknown_files) == (0, 2)
        assert world.stored().issuperset(names)

    def test_what_is_written_while_it_runs_is_too_young(self, world, table):
        """A commit that opens, writes and fails after the store's clock was read is left for the next run."""
        written = []

        class Interrupted(FaultyStore):
            def list(self, prefix="", *, after=None):
                if not written:
                    run, opened, _ = an_attempt(table)
                    run.give_up(opened.commit.attempt)
                    written.append(run)
                return super().list(prefix, after=after)

        table.ingest(points(0))
        result = world.open(Interrupted).table("events").upkeep.gc.run(grace=0)
        assert (result.orphan_files, result.young_files) == (0, 4)
        world.clock.advance(1)
        assert table.upkeep.gc.run(grace=0).orphan_files == 4

    def test_other_tables_are_left_alone(self, world, lake, table):
        other = lake.create_table("others", sort="host|timestamp/V2", mirror=False)
        other.ingest(points(0))
        run, opened, _ = an_attempt(other)
        run.give_up(opened.commit.attempt)
        world.clock.advance(DAY)
        before = world.stored("others")
        table.upkeep.gc.run(grace=0)
        assert world.stored("others") == before


def test_a_registered_file_is_its_owners_and_only_its_sidecar_goes(tmp_path):
    raw = tmp_path / "raw.parquet"
    pq.write_table(points(0), raw)
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", mirror=False)
        table.register.run([str(raw)])
        assert len(list((tmp_path / "lake").rglob("*.pm"))) == 1
        table.unregister.run([str(raw)])
        assert table.upkeep.gc.run(grace=0).retired_splits == 1
        assert raw.exists()
        assert list((tmp_path / "lake").rglob("*.pm")) == []


class TestUnfinished:
    """Hidden files on a local disk, which writers fill before they give them their names."""

    @pytest.fixture
    def local(self, world, tmp_path):
        world.store = LocalStore(tmp_path / "lake")
        world.clock.now = int(datetime.now(UTC).timestamp() * 1e6)
        with world.open() as lake:
            yield lake

    @pytest.fixture
    def table(self, local):
        return local.create_table("events", sort="host|timestamp/V2", mirror=False)

    def half(self, world, key, age=0):
        """What a writer of an object has on the disk before it is done."""
        path = world.store.root / key
        hidden = path.parent / f".windrow-1-1-{path.name}.tmp"
        hidden.parent.mkdir(parents=True, exist_ok=True)
        hidden.write_bytes(b"half")
        moment = datetime.now(UTC).timestamp() - age
        os.utime(hidden, (moment, moment))
        return hidden

    def test_a_writer_names_its_hidden_file_by_what_it_becomes(self, world, table, monkeypatch):
        seen = []
        monkeypatch.setattr(os, "fsync", lambda _: seen.extend(world.store.unfinished("events")))
        world.store.put("events/partition_id=0/a.parquet", b"1")
        assert {each.key for each in seen} == {"events/partition_id=0/a.parquet"}

    def test_those_of_an_open_commit_stay_however_old_they_are(self, world, table):
        an_attempt(table)
        hidden = self.half(world, min(world.stored("events")), age=40 * DAY)
        assert table.upkeep.gc.run(grace=0).unfinished_files == 0
        assert hidden.exists()

    def test_those_of_a_commit_that_ended_go_after_the_grace_period(self, world, table):
        run, opened, _ = an_attempt(table)
        run.give_up(opened.commit.attempt)
        hidden = self.half(world, min(world.stored("events")), age=100)
        letter = self.half(world, f"events/_dead_letter/{run.commit_id}-1-0.parquet", age=100)
        assert table.upkeep.gc.run(grace=200).unfinished_files == 0
        assert table.upkeep.gc.run(grace=60).unfinished_files == 2
        assert not hidden.exists()
        assert not letter.exists()

    def test_those_that_no_commit_writes_go_after_a_day(self, world, table):
        young = self.half(world, "events/_delta_log/00000000000000000001.json", age=DAY - 100)
        self.half(world, "events/_clock", age=DAY + 100)
        assert table.upkeep.gc.run(grace=0).unfinished_files == 1
        assert young.exists()

    def test_those_of_a_commit_that_nobody_knows_stay(self, world, table):
        hidden = self.half(world, "events/partition_id=0/window_start=0/who-1-0-0.parquet", age=40 * DAY)
        assert table.upkeep.gc.run(grace=0).unfinished_files == 0
        assert hidden.exists()

    def test_those_of_other_tables_and_of_the_lake_are_none_of_its_business(self, world, local, table):
        others = [self.half(world, "eventsx/_clock", age=40 * DAY), self.half(world, "x.json", age=40 * DAY)]
        assert table.upkeep.gc.run(grace=0).unfinished_files == 0
        assert all(path.exists() for path in others)

    def test_one_that_vanishes_under_the_sweep_is_no_error(self, world, table, monkeypatch):
        gone, left = (self.half(world, f"events/{name}", age=2 * DAY) for name in ("a", "b"))
        lstat = Path.lstat

        def finished_meanwhile(path):
            gone.unlink(missing_ok=True)
            return lstat(path)

        monkeypatch.setattr(Path, "lstat", finished_meanwhile)
        assert table.upkeep.gc.run(grace=0).unfinished_files == 1
        assert not left.exists()
        assert [world.store.remove_unfinished(Unfinished(left, None, NOON))] == [False]


def test_age_is_that_of_the_store_and_not_of_this_machine(world, tmp_path):
    """A machine whose clock is a day ahead must not take what was just written."""
    world.clock.now = int((datetime.now(UTC) + timedelta(days=1)).timestamp() * 1e6)
    world.store = LocalStore(tmp_path / "lake")
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", mirror=False)
        run, opened, _ = an_attempt(table)
        run.give_up(opened.commit.attempt)
        result = table.upkeep.gc.run(grace=3600)
        assert (result.orphan_files, result.young_files) == (0, 4)


@pytest.mark.parametrize("arguments", [{"grace": "soon"}, {"grace": -1}, {"limit": -1}])
def test_bad_arguments_are_refused(table, arguments):
    with pytest.raises(InvalidInput):
        table.upkeep.gc.run(**arguments)

"""A run of compaction in this process: what it publishes, what it leaves, and what it says of failures."""

from __future__ import annotations

import contextlib
import dataclasses
import threading

import pyarrow.parquet as pq
import pytest

import windrow
from windrow.compaction import run as run_module
from windrow.compaction.compactor import Bounds
from windrow.compaction.execution import in_process
from windrow.compaction.outcomes import Outcome
from windrow.compaction.planner import Planner
from windrow.errors import InvalidInput, MetastoreError
from windrow.metastore import CommitKind, CommitState, RunRecord, RunState, SqlMetastore
from windrow.model.split import sidecar_key
from windrow.runners.leases import Leases
from windrow.testing import Fault, FaultKind, FaultyStore

from .conftest import POINTS_SORT, answers, points, rows_of


def quick(table, **parts):
    """The noun, without waiting between attempts."""
    return dataclasses.replace(table.compact, sleep=lambda _: None, **parts)


def test_every_window_becomes_one_file_and_no_answer_changes(lake):
    table = lake.table("metrics")
    before, questions = rows_of(lake), answers(lake)
    plan = table.compact.plan()
    heard = []
    result = table.compact.run(on_merge=heard.append)
    assert (result.state, result.planned, result.done, result.failed, result.skipped) == ("done", plan.merges, 5, 0, 0)
    assert rows_of(lake) == before
    assert answers(lake) == questions
    assert [row.splits for row in table.inspect.windows()] == [1] * 5
    assert {outcome.window for outcome in heard} == {row.window for row in table.inspect.windows()}
    assert (result.splits_in, result.splits_out) == (plan.forecast.files_before, plan.forecast.files_after) == (30, 5)
    assert result.write_amplification == result.bytes_out / result.bytes_in


def test_a_second_run_finds_nothing_to_do(lake):
    table = lake.table("metrics")
    table.compact.run()
    version = table.version()
    assert table.compact.run().planned == 0
    assert table.version() == version


def test_older_versions_stay_readable(lake):
    table = lake.table("metrics")
    before = table.version()
    table.compact.run()
    assert sum(row.splits for row in table.at(version=before).inspect.windows()) == 30


def test_late_splits_join_what_is_compacted(lake):
    table = lake.table("metrics")
    table.compact.run()
    # Fewer would wait for company before so much is rewritten for them.
    table.ingest(points(99, rows=1000))
    expected = rows_of(lake)
    assert table.compact.run().done == 4
    overflow, *timed = table.inspect.windows()
    assert [(row.splits, row.generation) for row in timed] == [(1, 2)] * 4
    # a window without an end waits for company of the same generation
    assert (overflow.start, overflow.splits, overflow.generation) == (None, 2, 1)
    assert rows_of(lake) == expected


def test_only_the_window_that_is_asked_for(lake):
    table = lake.table("metrics")
    assert table.compact.run(window="2023-11-14T22:20").done == 1
    assert sorted(row.splits for row in table.inspect.windows()) == [1, 6, 6, 6, 6]
    assert table.compact.run(window="overflow").done == 1
    assert table.compact.run(window="2023-11-14T22:00/2023-11-14T22:45").done == 2


def test_a_run_leaves_a_row_and_merges_leave_commits(lake):
    table = lake.table("metrics")
    result = table.compact.run()
    (row,) = lake.context.metastore.runs(table.record().table_id)
    assert (row.run_id, row.state, row.planned, row.done) == (result.run_id, RunState.DONE, 5, 5)
    assert (row.bytes_in, row.bytes_out, row.bytes_new) == (result.bytes_in, result.bytes_out, result.bytes_in)
    merges = table.inspect.merges()
    assert {merge.run for merge in merges} == {result.run_id}
    assert sum(merge.bytes_in for merge in merges) == result.bytes_in
    assert table.inspect.runs()[0].write_amplification == result.write_amplification


@pytest.mark.parametrize(
    ("policy", "bound"),
    [({"name": "constant-write-amplification", "max_merge_ops": 2}, 2), ({"rewrite_budget": 3}, 3), ({}, 8)],
)
def test_a_run_shows_how_often_rows_were_rewritten_and_the_bound(empty_lake, policy, bound):
    table = empty_lake.create_table("metrics", sort=POINTS_SORT, policy=policy, late_data_acceptance_window=0)
    for seed in range(5):
        table.ingest(points(seed, rows=20, windows=1))
        table.ingest(points(seed, rows=20, windows=1))
        table.compact.run(threads=1)
    rows = table.inspect.runs()
    assert {row.rewrites_bound for row in rows} == {bound}
    assert max(row.rewrites for row in rows) == min(bound, 5)
    assert max(row.generation for row in table.inspect.windows()) == min(bound, 5)


def test_runs_of_former_days_show_no_bound(lake):
    table = lake.table("metrics")
    run = RunRecord("former", RunState.DONE, started_at=1, ended_at=2)
    lake.context.metastore.record_run(table.record().table_id, run)
    (row,) = table.inspect.runs()
    assert (row.rewrites, row.rewrites_bound) == (None, None)


class TestPoisonedInputs:
    def poison(self, lake, table, window=1):
        start = sorted(row.start for row in table.inspect.windows() if row.start)[window]
        return next(row for row in table.inspect.splits() if f"window_start={start}" in row.key)

    def check(self, lake, table, split, message):
        result = quick(table).run()
        assert (result.planned, result.done, result.failed) == (5, 4, 1)
        (problem,) = result.problems
        assert (problem.outcome, problem.splits_in) == (Outcome.FAILED, 6)
        assert message in problem.why
        assert f"in quarantine now: {split.split_id}" in problem.why
        (kept_away,) = table.compact.quarantined()
        assert kept_away.split_id == split.split_id
        # Without it, the rest of its window goes on.
        again = quick(table).run()
        assert (again.planned, again.done, again.failed) == (1, 1, 0)
        assert sorted(row.splits for row in table.inspect.windows()) == [1, 1, 1, 1, 2]
        assert quick(table).run().planned == 0
        assert table.compact.plan().left[f"it is in quarantine: {kept_away.reason}"] == 1

    def test_a_file_that_is_gone(self, lake, tmp_path):
        table = lake.table("metrics")
        split = self.poison(lake, table)
        (tmp_path / "lake" / split.key).unlink()
        self.check(lake, table, split, split.key)

    def test_a_file_that_was_cut_short(self, lake, tmp_path):
        table = lake.table("metrics")
        split = self.poison(lake, table)
        path = tmp_path / "lake" / split.key
        path.write_bytes(path.read_bytes()[:-100])
        self.check(lake, table, split, split.key)

    def test_a_file_with_other_bytes_inside(self, lake, tmp_path):
        table = lake.table("metrics")
        split = self.poison(lake, table)
        path = tmp_path / "lake" / split.key
        data = bytearray(path.read_bytes())
        data[4:400] = b"\xff" * 396
        path.write_bytes(data)
        self.check(lake, table, split, "")

    def test_a_page_that_is_not_what_was_written(self, lake, tmp_path):
        table = lake.table("metrics")
        split = self.poison(lake, table)
        path = tmp_path / "lake" / split.key
        data = bytearray(path.read_bytes())
        chunk = pq.ParquetFile(path).metadata.row_group(0).column(5)
        assert chunk.path_in_schema == "value"
        # the last byte of the column's last page
        data[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 4
        path.write_bytes(data)
        self.check(lake, table, split, f"{split.key}, row group 0, column 'value'")
        (kept_away,) = table.compact.quarantined()
        assert f"{split.key}, row group 0, column 'value'" in kept_away.reason

    def test_the_file_of_another_split(self, lake, tmp_path):
        table = lake.table("metrics")
        split, other = self.poison(lake, table), self.poison(lake, table, 2)
        (tmp_path / "lake" / split.key).write_bytes((tmp_path / "lake" / other.key).read_bytes())
        self.check(lake, table, split, split.key)

    def test_a_sidecar_that_describes_another_file(self, lake, tmp_path):
        table = lake.table("metrics")
        split, other = self.poison(lake, table), self.poison(lake, table, 2)
        folder = tmp_path / "lake"
        data = (folder / sidecar_key(other.key)).read_bytes()
        length = (folder / sidecar_key(split.key)).stat().st_size
        (folder / sidecar_key(split.key)).write_bytes(data.ljust(length, b"\0"))
        self.check(lake, table, split, f"its sidecar {sidecar_key(split.key)} describes another file")

    def test_a_sidecar_that_was_cut_short(self, lake, tmp_path):
        table = lake.table("metrics")
        split = self.poison(lake, table)
        path = tmp_path / "lake" / sidecar_key(split.key)
        path.write_bytes(path.read_bytes()[:-100])
        self.check(lake, table, split, sidecar_key(split.key))

    def test_a_repaired_split_is_pardoned(self, lake, tmp_path):
        table = lake.table("metrics")
        expected = rows_of(lake)
        split = self.poison(lake, table)
        path = tmp_path / "lake" / split.key
        data = path.read_bytes()
        path.unlink()
        quick(table).run()
        path.write_bytes(data)
        assert table.compact.pardon() == 1
        assert quick(table).run().done == 1
        assert [row.splits for row in table.inspect.windows()] == [1] * 5
        assert rows_of(lake) == expected


class TestTwoCompactors:
    def test_the_second_to_publish_discards_its_merges(self, lake, tmp_path):
        table = lake.table("metrics")
        before = rows_of(lake)
        mine = list(Planner(lake.context.metastore, table.record(), lake.context.now()).merges())
        assert table.compact.run().done == 5
        result = compaction_of(table).run(mine)
        assert (result.planned, result.done, result.skipped, result.failed) == (5, 0, 5, 0)
        assert "no longer visible" in result.problems[0].why
        assert rows_of(lake) == before

    def test_both_at_once_lose_nothing_and_merge_nothing_twice(self, lake, tmp_path):
        table = lake.table("metrics")
        before = rows_of(lake)
        with windrow.connect(tmp_path / "lake") as second:
            results = []
            others = [
                threading.Thread(target=lambda t=t: results.append(quick(t).run()))
                for t in (table, second.table("metrics"))
            ]
            for other in others:
                other.start()
            for other in others:
                other.join()
        assert sum(result.done for result in results) == 5
        assert all(result.failed == 0 for result in results)
        assert [row.splits for row in table.inspect.windows()] == [1] * 5
        assert rows_of(lake) == before

    def test_inputs_that_were_replaced_and_collected_are_no_poison(self, lake, tmp_path):
        table = lake.table("metrics")
        mine = list(Planner(lake.context.metastore, table.record(), lake.context.now()).merges())
        keys = [split.key for merge in mine for split in merge.inputs]
        table.compact.run()
        for key in keys:
            (tmp_path / "lake" / key).unlink()
        result = compaction_of(table).run(mine)
        assert (result.skipped, result.failed) == (5, 0)
        assert table.compact.quarantined() == []


@contextlib.contextmanager
def losing(lake, tmp_path, at_step):
    """The table behind a metastore that is lost at a step of publishing."""
    with SqlMetastore(f"sqlite:///{tmp_path}/lake/windrow.db", at_step=at_step, sleep=lambda _: None) as metastore:
        yield windrow.Lake(dataclasses.replace(lake.context, metastore=metastore)).table("metrics")


def compaction_of(table, **parts):
    record = table.record()
    noun = quick(table)
    made = noun._run(record, None, Bounds.of(2**27, 1), "full", threading.Event())
    return dataclasses.replace(made, **parts)


class TestFailuresOfOthers:
    def test_a_task_that_is_lost_is_tried_again(self, lake):
        table = lake.table("metrics")
        lost = []

        def execute(jobs, task, on_report):
            jobs = list(jobs)
            if not lost:
                lost.append(jobs.pop())
            in_process(threads=1)(jobs, task, on_report)

        result = compaction_of(table, execute=execute).run(merges_of(table))
        assert (result.done, result.failed, len(lost)) == (5, 0, 1)

    def test_a_task_that_is_always_lost_is_reported_and_leaves_no_open_commit(self, lake):
        table = lake.table("metrics")

        def execute(jobs, task, on_report):
            first, *rest = jobs
            in_process(threads=1)(rest if first.attempt == 1 else [], task, on_report)

        result = compaction_of(table, execute=execute).run(merges_of(table))
        assert (result.done, result.failed) == (4, 1)
        assert "the worker was lost" in result.problems[0].why
        assert {row.state for row in table.inspect.commits()} == {"published", "aborted"}
        assert quick(table).run().done == 1

    def test_a_report_that_comes_twice_counts_once(self, lake):
        table = lake.table("metrics")
        before = rows_of(lake)

        def execute(jobs, task, on_report):
            for job in jobs:
                for attempt in (1, 2):
                    for report in task.report([job], attempt):
                        on_report(report)

        result = compaction_of(table, execute=execute).run(merges_of(table))
        assert (result.done, result.skipped, result.failed) == (5, 0, 0)
        assert rows_of(lake) == before

    def test_the_report_of_an_attempt_that_was_taken_over_is_not_published(self, lake):
        table = lake.table("metrics")
        before = rows_of(lake)
        old = []

        def execute(jobs, task, on_report):
            jobs = list(jobs)
            reports = [report for job in jobs for report in task.report([job], 0)]
            if not old:
                old.extend(reports)
                return
            for report in [*old, *reports]:
                on_report(report)

        result = compaction_of(table, execute=execute).run(merges_of(table))
        assert result.done == 5
        splits = [row.split_id for row in table.inspect.splits()]
        assert all(split.split("-")[1] == "2" for split in splits)
        assert rows_of(lake) == before

    def test_a_store_that_fails_is_tried_again_then_reported_and_nobody_is_blamed(self, lake):
        table = lake.table("metrics")
        window = next(merges_of(table)).window
        waits = []

        def execute(jobs, task, on_report):
            for job in jobs:
                fault = [Fault(FaultKind.ERROR, verb="put", onwards=True)] if job.merge.window == window else []
                on_report(task.run(FaultyStore(lake.context.store, fault), job, 0).to_text())

        result = compaction_of(table, execute=execute, sleep=waits.append).run(merges_of(table))
        assert (result.done, result.failed, len(waits)) == (4, 1, 2)
        assert "planned fault" in result.problems[0].why
        assert table.compact.quarantined() == []
        assert {row.state for row in table.inspect.commits()} == {"published", "aborted"}
        assert quick(table).run().done == 1

    @pytest.mark.parametrize("step", ["begun", "added", "committing", "committed"])
    def test_a_metastore_that_is_lost_while_it_publishes(self, lake, tmp_path, step):
        losses = []

        def lose(name):
            if name == step and not losses:
                losses.append(name)
                raise MetastoreError("the metastore did not answer", retryable=True)

        before = rows_of(lake)
        with losing(lake, tmp_path, lose) as table:
            result = quick(table).run(threads=1)
        assert losses == [step]
        assert (result.done, result.failed) == (5, 0)
        assert rows_of(lake) == before

    def test_a_metastore_that_stays_away_is_reported(self, lake, tmp_path):
        away = threading.Event()

        def lose(name):
            if away.is_set() and name == "begun":
                raise MetastoreError("the metastore did not answer", retryable=True)

        before = rows_of(lake)
        with losing(lake, tmp_path, lose) as table:
            away.set()
            result = quick(table).run()
            assert (result.done, result.failed) == (0, 5)
            assert "did not answer" in result.problems[0].why
            away.clear()
            assert rows_of(lake) == before
            assert quick(table).run().done == 5

    def test_a_lease_that_ran_out_is_taken_anew(self, lake):
        table = lake.table("metrics")
        metastore, seen = lake.context.metastore, []

        def execute(jobs, task, on_report):
            for job in jobs:
                if not seen:
                    seen.append(job)
                    metastore.abort(job.commit_id)
                for report in task.report([job], 0):
                    on_report(report)

        result = compaction_of(table, execute=execute).run(merges_of(table))
        assert (result.done, result.failed) == (5, 0)


def merges_of(table):
    return Planner(table.context.metastore, table.record(), table.context.now()).merges()


class TestCancelling:
    def test_what_runs_is_finished_and_nothing_else_begins(self, lake):
        table = lake.table("metrics")
        before = rows_of(lake)
        cancelled = threading.Event()
        result = quick(table).run(threads=1, cancelled=cancelled, on_merge=lambda _: cancelled.set())
        assert result.state == "cancelled"
        assert 1 <= result.done < 5
        assert result.done + result.skipped == result.planned == 5
        assert "cancelled" in result.problems[0].why
        assert rows_of(lake) == before
        assert quick(table).run().done == 5 - result.done

    def test_a_comparison_that_does_not_exist_is_refused(self, lake):
        with pytest.raises(InvalidInput, match="verify: 'half' is none of full, sample"):
            lake.table("metrics").compact.run(verify="half")

    def test_an_interrupt_aborts_what_is_open(self, lake):
        table = lake.table("metrics")

        def execute(jobs, task, on_report):
            next(iter(jobs))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            compaction_of(table, execute=execute).run(merges_of(table))
        assert {row.state for row in table.inspect.commits()} == {"published", "aborted"}
        assert table.inspect.runs()[0].state == "cancelled"

    def test_watching_ends_when_it_is_told(self, lake):
        table = lake.table("metrics")
        cancelled = threading.Event()
        results = []
        for result in table.compact.watch(every=0.01, cancelled=cancelled):
            results.append(result)
            if len(results) == 1:
                # Fewer would wait for company before so much is rewritten for them.
                table.ingest(points(50, rows=1000))
            else:
                cancelled.set()
        assert [result.done for result in results] == [5, 4]


def test_a_run_in_which_nothing_goes_through_stops(lake, monkeypatch):
    monkeypatch.setattr(run_module, "_WAVE", 2)
    table = lake.table("metrics")
    result = compaction_of(table, execute=lambda jobs, task, on_report: list(jobs)).run(merges_of(table))
    assert (result.state, result.planned, result.failed) == ("failed", 2, 2)


def test_columns_of_different_age_are_united(empty_lake):
    lake = empty_lake
    table = lake.create_table("metrics", sort=POINTS_SORT, policy={"merge_factor": 2})
    table.ingest(points(0))
    table.ingest(points(1).append_column("zone", [["z"] * 600]))
    before = rows_of(lake)
    assert table.compact.run(verify="full").done == 5
    assert rows_of(lake) == before


def test_large_windows_become_several_files(empty_lake):
    lake = empty_lake
    table = lake.create_table("metrics", sort=POINTS_SORT, target_split_size="1MiB")
    for seed in range(6):
        rows = points(seed, rows=60_000, windows=1)
        table.ingest(rows.set_column(4, "value", [[float(n) ** 1.5 for n in range(rows.num_rows)]]))
    before = rows_of(lake)
    assert table.compact.run().failed == 0
    (timed,) = [row for row in table.inspect.windows() if row.start is not None]
    assert 1 < timed.splits < 6
    assert rows_of(lake) == before


def test_leases_are_prolonged_while_they_are_held(lake):
    table = lake.table("metrics")
    metastore = lake.context.metastore
    opened = metastore.open_commit(table.record().table_id, CommitKind.COMPACT, commit_id="c", lease=600)
    beaten = threading.Event()

    class Heard:
        def heartbeat(self, commit_id, *, attempt, lease):
            metastore.heartbeat(commit_id, attempt=attempt, lease=lease)
            beaten.set()

    with Leases(Heard(), 0.03) as leases:
        leases.hold("c", opened.attempt)
        assert beaten.wait(20)
        leases.drop("c")
    assert metastore.commit("c").state is CommitState.OPEN
    assert metastore.commit("c").lease_expires_at < opened.lease_expires_at

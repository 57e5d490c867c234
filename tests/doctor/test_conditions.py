"""Each condition is named where a table is in it, with its figure and a command, and not where it is not."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.proofs.worlds import NOON, points, visible

from windrow.cli.main import cli
from windrow.errors import InvalidInput, NotFound, StorageError
from windrow.metastore import CommitKind, RunRecord, RunState
from windrow.storage.wrapping import StoreWrapper

HOUR, DAY = 3600, 86_400


class WithoutLog(StoreWrapper):
    """A store that refuses new entries of a Delta log."""

    def around(self, call, act):
        if call.verb == "put_if_absent" and "_delta_log" in call.key:
            raise StorageError(f"{call.key}: permission denied")
        return act()

    def around_list(self, call, found):
        return found


def minute_of(world):
    """The minute of the clock, counted as `points` does."""
    return world.clock() / 60e6 - NOON.timestamp() / 60


def found(lake, **how):
    return {each.condition: each for each in lake.doctor(**how)}


def test_a_table_that_is_well_has_no_findings(lake, table):
    assert not lake.doctor()
    table.ingest(points(1))
    table.compact.run()
    assert not lake.doctor()


class TestBehind:
    @pytest.fixture
    def waiting(self, table, world):
        """Two splits of a window that closed; the clock stands an hour and eleven minutes after they came."""
        for minute in (1, 2):
            table.ingest(points(minute))
        world.clock.advance(2 * DAY)

    def test_closed_windows_that_wait_too_long(self, lake, waiting):
        finding = found(lake)["compaction is behind"]
        assert finding.figure.startswith("1 closed window, the oldest for ")
        assert finding.command == "windrow compact events --dry-run"

    def test_a_merge_ends_it(self, lake, table, waiting):
        table.compact.run()
        assert not lake.doctor()

    def test_what_has_just_come_is_not_late(self, lake, table, waiting):
        table.ingest(points(3))
        assert not found(lake)

    def test_how_soon_is_the_users_choice(self, lake, waiting):
        assert not found(lake, lag="52w")
        assert found(lake, lag="1m")

    def test_a_window_that_still_grows_is_not_late(self, lake, table, world):
        for _ in range(3):
            table.ingest(points(minute_of(world)))
        world.clock.advance(HOUR // 2)
        assert not found(lake, lag=0)


def test_few_rows_in_many_files(lake, table):
    table.ingest(points(*(15 * number for number in range(250))))
    finding = found(lake)["small files"]
    assert finding.figure == "250 files of 1 rows each"
    assert 'Set cold_window="1w"' in finding.cause


class TestHeldBack:
    @pytest.fixture
    def old_version(self, table, world):
        """A version that a merge replaced, and that is two days old."""
        for minute in (1, 2):
            table.ingest(points(minute))
        version = table.version()
        table.compact.run()
        world.clock.advance(2 * DAY)
        return version

    def pin(self, table, version, seconds=HOUR):
        record = table.record()
        table.context.metastore.pin(record.table_id, version, pin_id="p", owner="a dashboard", seconds=seconds)

    def test_a_reader_of_an_old_version(self, lake, table, world, old_version):
        self.pin(table, old_version)
        finding = found(lake)["a reader holds old files"]
        assert finding.figure.startswith(f"version {old_version} of {table.version()}, 2d old")
        assert "a dashboard" in finding.cause

    def test_a_reader_of_the_newest_version_holds_nothing(self, lake, table, old_version):
        self.pin(table, table.version())
        assert "a reader holds old files" not in found(lake)

    def test_a_pin_that_ran_out_holds_nothing(self, lake, table, world, old_version):
        self.pin(table, old_version)
        world.clock.advance(2 * HOUR)
        assert "a reader holds old files" not in found(lake)

    def test_commits_of_writers_that_died(self, lake, table, world):
        table.ingest(points(1))
        record = table.record()
        lake.context.metastore.open_commit(record.table_id, CommitKind.INGEST, commit_id="c", lease=60)
        assert "commits were left open" not in found(lake)
        world.clock.advance(HOUR)
        finding = found(lake)["commits were left open"]
        assert finding.figure == "1 commit, the oldest ran out 59m ago"


def test_splits_in_quarantine(lake, table):
    table.ingest(points(1))
    record, (split,) = table.record(), visible(table)
    lake.context.metastore.quarantine(record.table_id, {split.split_id: "page 3 is damaged"})
    finding = found(lake)["splits in quarantine"]
    assert (finding.figure, finding.cause) == ("1 split", "page 3 is damaged")
    assert finding.command == "windrow check events --data"


def test_rows_that_were_dropped_are_counted_by_source(lake, table, world):
    now = minute_of(world)
    table.ingest(points(1), source="good")
    table.ingest(points(now - 600, now - 1, now), source="slow", drop_late=True)
    (finding,) = [each for each in lake.doctor() if each.condition == "rows were dropped"]
    assert finding.figure == "1 late beside 2 rows of source 'slow'"
    assert "late_data_acceptance_window" in finding.cause


def test_a_mirror_that_could_not_be_written(world):
    with world.open() as lake:
        lake.create_table("events", sort="host|timestamp/V2", window="15m").ingest(points(1))
    with world.open(WithoutLog) as lake:
        lake.table("events").ingest(points(2))
    with world.open() as lake:
        finding = found(lake)["the Delta mirror is behind"]
        assert finding.figure == "it shows version 1, the table has version 2"
        lake.table("events").ingest(points(3))
        assert "the Delta mirror is behind" not in found(lake)


def test_rows_rewritten_beyond_the_bound(lake, table):
    for minute in (1, 2):
        table.ingest(points(minute))
    record, splits = table.record(), visible(table)
    metastore = lake.context.metastore
    opened = metastore.open_commit(record.table_id, CommitKind.COMPACT, commit_id="c", lease=60)
    merged = replace(splits[0], split_id="c-1-0-0", row_count=2, commit_id="c", replaces=())
    metastore.publish(
        "c",
        attempt=opened.attempt,
        add=[merged],
        replace=[split.split_id for split in splits],
        summary={"rewrites": 9, "rewrites_bound": 8},
    )
    finding = found(lake)["rows are rewritten too often"]
    assert finding.figure == "9 times, where stable-log allows 8"


def test_merges_that_fail(lake, table):
    table.ingest(points(1))
    record = table.record()
    run = RunRecord("r", RunState.DONE, 1, 2, planned=3, failed=2, problems=("the disk is full",))
    lake.context.metastore.record_run(record.table_id, run)
    finding = found(lake)["merges fail"]
    assert (finding.figure, finding.cause) == ("2 of 3 in the newest run", "the disk is full")
    lake.context.metastore.record_run(record.table_id, RunRecord("s", RunState.DONE, 3, 4, planned=3, done=3))
    assert "merges fail" not in found(lake)


def test_batches_of_few_rows(lake, table):
    for number in range(20):
        assert "batches are small" not in found(lake)
        table.ingest(points(number / 10))
    finding = found(lake)["batches are small"]
    assert finding.figure == "1 rows in 1 files, by the median of the last 20"


def test_clocks_apart(lake, table, world):
    table.ingest(points(1))
    context = replace(lake.context, now=lambda: world.clock() + 90 * 10**6)
    from windrow.doctor import examine_lake

    (finding,) = examine_lake(context)
    assert (finding.condition, finding.figure) == ("clocks are apart", "the store is 90s behind")


def test_a_label_that_explodes(lake, table):
    for day in range(4):
        rows = 40 * (day + 1)
        times = [NOON + timedelta(days=day, seconds=number) for number in range(rows)]
        hosts = [f"pod-{day}-{number}" for number in range(rows)]
        table.ingest(pa.table({"host": hosts, "timestamp": pa.array(times, pa.timestamp("us", "UTC"))}))
    assert "the cardinality of a column explodes" not in found(lake)
    table.upkeep.analyze()
    finding = found(lake)["the cardinality of a column explodes"]
    assert finding.figure.startswith("host: about 400 values")


def test_one_table_of_several(lake, table):
    lake.create_table("other", sort="host|timestamp/V2")
    record = table.record()
    table.ingest(points(1))
    lake.context.metastore.quarantine(record.table_id, {visible(table)[0].split_id: "damaged"})
    assert {each.table for each in lake.doctor()} == {"events"}
    assert not lake.doctor("other")
    with pytest.raises(NotFound, match="other"):
        lake.doctor("others")


def test_a_lag_that_is_no_duration(lake):
    with pytest.raises(InvalidInput, match="lag: 'soon'"):
        lake.doctor(lag="soon")


def test_every_command_that_is_recommended_exists(lake, table, tmp_path):
    from windrow.doctor import conditions

    commands = set(re.findall(r'f"(windrow [a-z ]+) \{', Path(conditions.__file__).read_text()))
    assert len(commands) >= 6
    for command in commands:
        _, *words = command.split()
        assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0, command

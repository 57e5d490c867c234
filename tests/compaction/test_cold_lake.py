"""Cold windows in a lake: what is written, merged, read, dropped and made again, beside windows of an hour and less."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from threading import Event

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.proofs.worlds import NOON, World, points, rows_of, visible

from windrow.compaction.compactor import Bounds
from windrow.errors import InvalidInput

MIDNIGHT = NOON.replace(hour=0)
SORT = "host|timestamp/V2"
MANY = range(-300, 300, 30)
"""Minutes of enough windows for a batch to go to cold ones."""


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.clock.now = int((NOON + timedelta(days=2)).timestamp() * 1e6)
    return made


def rows(*minutes, host="a"):
    """Points of one host, whose values are the minutes after noon."""
    table = points(*minutes, host=host)
    return table.set_column(2, "value", pa.array([-1 if each is None else int(each) for each in minutes], pa.int64()))


def durations(table):
    return [(split.window.start - int(MIDNIGHT.timestamp()), split.window.duration) for split in visible(table)]


def create(lake, **given):
    return lake.create_table("events", sort=SORT, **{"window": "15m", "cold_window": "1d", "mirror": False, **given})


class TestIngest:
    def test_a_batch_of_old_rows_is_written_into_cold_windows_at_once(self, world):
        with world.open() as lake:
            table = create(lake)
            table.ingest(rows(*range(-720, 720, 10), None))
            overflow, cold = visible(table)
            assert overflow.window.overflow
            assert (cold.window.duration, cold.row_count) == (86_400, 144)
            assert cold.scope.window_duration == 86_400
            assert cold.generation == 0

    def test_rows_of_one_window_go_to_it(self, world):
        with world.open() as lake:
            table = create(lake)
            table.ingest(rows(0, 1, 14))
            assert durations(table) == [(12 * 3600, 900)]

    def test_rows_for_which_late_points_are_accepted_go_to_their_windows(self, world):
        world.clock.now = int((MIDNIGHT + timedelta(days=1, minutes=59)).timestamp() * 1e6)
        with world.open() as lake:
            table = create(lake)
            table.ingest(rows(0, 30))
            assert durations(table) == [(12 * 3600, 900), (12 * 3600 + 1800, 900)]
            table.ingest(rows(*MANY))
            world.clock.advance(60)
            table.ingest(rows(*MANY))
            assert [each for each in durations(table) if each[1] > 900] == [(0, 86_400)]

    def test_a_batch_of_few_windows_goes_to_these(self, world):
        with world.open() as lake:
            table = create(lake)
            table.ingest(rows(*range(0, 120, 15)))
            assert {each for _, each in durations(table)} == {900}
            table.ingest(rows(*range(0, 135, 15)))
            assert durations(table)[8:] == [(0, 86_400)]

    def test_tenants_have_cold_windows_of_their_own(self, world):
        with world.open() as lake:
            table = create(lake, partition_by=["host"])
            both = [rows(*MANY), rows(*MANY, host="b"), rows(60, host="c")]
            table.ingest(pa.concat_tables(both))
            assert sorted(each for _, each in durations(table)) == [900, 86_400, 86_400]
            assert len({split.scope.partition_id for split in visible(table)}) == 3

    def test_windows_that_the_start_time_of_compaction_cuts_are_not_gathered(self, world):
        with world.open() as lake:
            table = create(lake, compaction_start_time=int(NOON.timestamp()))
            table.ingest(rows(-60, 60, *(each - 1440 for each in MANY)))
            assert sorted(each for _, each in durations(table)) == [900, 900, 86_400]

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_times_before_1970_and_nanoseconds(self, world, unit):
        with world.open() as lake:
            table = create(lake, timestamp_precision="ns" if unit == "ns" else "us")
            per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
            times = [-1, -3600, -86_400, -86_401, -86_400 - 7200, 0, *range(-40_000, -20_000, 2000)]
            stamps = pa.array([each * per_second for each in times], pa.timestamp(unit, "UTC"))
            table.ingest(pa.table({"host": ["a"] * 16, "timestamp": stamps, "value": range(16)}))
            starts = [(split.window.start, split.window.duration, split.row_count) for split in visible(table)]
            assert starts == [(0, 900, 1), (-2 * 86_400, 86_400, 2), (-86_400, 86_400, 13)]
            assert table.upkeep.check(data=True).findings == ()

    def test_times_at_the_ends_of_64_bits(self, world):
        with world.open() as lake:
            table = create(lake, timestamp_unit="s", window="1h")
            ends = [*range(-(2**43), -(2**43) + 20 * 3600, 3600), 2**43, 2**43 + 3600]
            table.ingest(pa.table({"host": ["a"] * len(ends), "timestamp": pa.array(ends, pa.int64())}))
            assert {each for _, each in durations(table)} == {3600, 86_400}
            assert table.upkeep.check(data=True).findings == ()


class TestGathering:
    def test_windows_become_one_and_late_points_join(self, world):
        with world.open() as lake:
            table = create(lake)
            for minute in range(-720, 720, 60):
                table.ingest(rows(minute))
            before, version = world.rows(table), table.version()
            result = table.compact.run(threads=1)
            assert (result.done, result.splits_in, result.splits_out) == (1, 24, 1)
            assert durations(table) == [(0, 86_400)]
            assert world.rows(table) == before
            assert world.rows(table.at(version=version)) == before
            table.ingest(rows(7))
            assert table.compact.run(threads=1).done == 1
            (split,) = visible(table)
            assert (split.generation, split.row_count, split.window.duration) == (2, 25, 86_400)
            (newest, first) = table.inspect.runs()
            assert (first.rewrites, newest.rewrites, newest.rewrites_bound) == (1, 2, 8)
            assert table.compact.plan().merges == 0

    def test_the_bound_of_rewrites_holds_for_late_points_without_end(self, world):
        with world.open() as lake:
            table = create(lake, policy={"rewrite_budget": 3})
            for minute in range(-720, 720, 200):
                table.ingest(rows(minute))
                world.clock.advance(2 * 86_400)
                table.compact.run(threads=1)
            assert max(split.generation for split in visible(table)) == 3
            assert {row.rewrites_bound for row in table.inspect.runs() if row.done} == {3}
            assert world.rows(table) == rows_of([rows(minute) for minute in range(-720, 720, 200)])

    def test_another_run_that_was_faster_discards_a_gathering(self, world):
        with world.open() as lake:
            table = create(lake)
            for minute in (0, 60, 120):
                table.ingest(rows(minute))
            noun = table.compact
            planned = list(noun._planner(noun._record(), None).merges())
            table.compact.run(threads=1, window=None)
            version = table.version()
            result = noun._run(noun._record(), None, Bounds.of(None, 1), None, Event()).run(planned)
            assert (result.skipped, result.done, result.failed) == (1, 0, 0)
            assert table.version() == version

    def test_an_input_that_is_damaged_goes_to_quarantine_and_the_others_are_gathered(self, world):
        with world.open() as lake:
            table = create(lake)
            for minute in (0, 60, 120):
                table.ingest(rows(minute))
            torn = visible(table)[1]
            world.store.put(torn.key, b"PAR1")
            noun = dataclasses.replace(table.compact, sleep=lambda _: None)
            assert noun.run(threads=1).failed == 1
            assert [each.split_id for each in noun.quarantined()] == [torn.split_id]
            assert noun.run(threads=1).done == 1
            assert sorted(each for _, each in durations(table)) == [900, 86_400]

    def test_splits_of_two_schema_epochs_stay_apart(self, world):
        with world.open() as lake:
            table = create(lake)
            for minute in (0, 60):
                table.ingest(rows(minute))
            table.retype.run("value", "string", old_values="cast")
            for minute in (120, 180):
                late = rows(minute)
                table.ingest(late.set_column(2, "value", late["value"].cast(pa.string())))
            assert table.compact.run(threads=1).done == 2
            assert {split.scope.doc_mapping_uid for split in visible(table)} == {0, 1}
            assert sum(world.rows(table).values()) == 4

    def test_registered_files_and_points_without_a_timestamp_stay(self, world, tmp_path):
        import pyarrow.parquet as pq

        pq.write_table(rows(1, 700, None), tmp_path / "own.parquet")
        with world.open() as lake:
            table = create(lake)
            table.register.run(tmp_path / "own.parquet")
            for minute in (0, 60, None):
                table.ingest(rows(minute))
            table.compact.run(threads=1)
            kinds = [(split.window is None, bool(split.window and split.window.overflow)) for split in visible(table)]
            assert sorted(kinds) == [(False, False), (False, True), (True, False)]


class TestUpkeep:
    def test_a_cold_window_leaves_when_all_of_it_is_too_old(self, world):
        with world.open() as lake:
            table = create(lake)
            table.ingest(rows(*MANY))
            table.ingest(rows(60 * 13 + 1440))
            end = int((MIDNIGHT + timedelta(days=1)).timestamp() * 1e6)
            keep = (world.clock.now - end) // 10**6
            assert table.upkeep.expire.run(retention=keep + 1).splits == 0
            assert table.upkeep.expire.run(retention=keep).splits == 1
            assert world.rows(table) == rows_of([rows(60 * 13 + 1440)])

    def test_a_lost_metastore_is_made_again_with_both(self, world):
        with world.open() as lake:
            table = create(lake, mirror=True)
            table.ingest(rows(*MANY))
            table.ingest(rows(5))
            before, places = world.rows(table), durations(table)
        world.lose_metastore()
        with world.open() as lake:
            lake.rebuild_table("events")
            table = lake.table("events")
            assert (world.rows(table), durations(table)) == (before, places)
            assert table.settings().cold_window == 86_400
            assert table.compact.run(threads=1).done == 1
            assert table.upkeep.check(data=True).sound

    def test_a_change_of_the_setting_is_checked_and_holds_for_what_comes(self, world):
        with world.open() as lake:
            table = create(lake)
            with pytest.raises(InvalidInput, match="whole number of hours from 2 to 168"):
                table.change.run(cold_window="90m")
            assert [each.after for each in table.change.run(cold_window="off").changes] == [None]
            table.ingest(rows(0, 60))
            assert table.compact.run(threads=1).done == 0
            table.change.run(cold_window="12h")
            assert table.compact.run(threads=1).done == 1
            assert durations(table) == [(12 * 3600, 12 * 3600)]

    def test_a_day_of_sparse_rows_is_warned_of_by_the_files_that_it_will_have(self, world):
        with world.open() as lake:
            sparse = rows(*range(-5000, -300, 16))
            assert create(lake).ingest.plan(sparse).predicted_files < 10
            lake.drop_table.run("events")
            plan = create(lake, cold_window="off").ingest.plan(sparse)
            assert plan.predicted_files > 200
            assert 'Set cold_window="1w"' in plan.warnings[0]


@pytest.mark.parametrize("span", ["1h", "12h", "1d"])
def test_a_question_about_a_time_reads_no_window_of_either_duration_that_lies_elsewhere(world, span):
    with world.open() as lake:
        table = create(lake, window="1h")
        table.ingest(rows(*range(-720 - 5 * 1440, 720, 60)))
        for minute in (30, 90):
            table.ingest(rows(minute + 1440))
        hours = {"1h": 1, "12h": 12, "1d": 24}[span]
        for back in range(0, 24 * 7, 13):
            low = datetime(2023, 11, 15, 14, tzinfo=UTC) - timedelta(hours=back)
            high = low + timedelta(hours=hours)
            where = f"timestamp >= '{low.isoformat()}' and timestamp < '{high.isoformat()}'"
            listed = [split for split in visible(table) if split.window.start < high.timestamp()]
            touched = [split for split in listed if split.window.end > low.timestamp()]
            assert min(step.kept for step in table.plan(where=where).steps if step.units == "splits") <= len(touched)
            found = table.scan(where=where).to_arrow().num_rows
            assert found == sum(low <= each.as_py() < high for each in table.scan().to_arrow()["timestamp"])


minutes = st.one_of(st.none(), st.integers(-4000, 2900))
batches = st.lists(st.lists(st.tuples(minutes, st.sampled_from("ab")), min_size=1, max_size=8), min_size=1, max_size=3)
QUESTIONS = (
    "select * from events order by all",
    "select host, count(*) n, max(value) most from events group by all order by all",
    "select count(*) n from events where timestamp >= '2023-11-13' and timestamp < '2023-11-14 06:00'",
    "select * from events where host = 'a' and timestamp > '2023-11-14 12:00' order by all",
    "select count(*) n from events where timestamp is null",
    "select max(timestamp) newest, min(timestamp) oldest from events",
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=4)
@given(batches, st.sampled_from(["2h", "6h", "1d", "7d"]), st.sampled_from(["5m", "15m", "1h"]))
def test_answers_are_the_same_with_cold_windows_and_without(tmp_path_factory, drawn, cold, window):
    answers = []
    for setting in (cold, "off"):
        world = World(tmp_path_factory.mktemp("w"), local=True)
        world.clock.now = int((NOON + timedelta(days=2)).timestamp() * 1e6)
        with world.open() as lake:
            table = create(lake, cold_window=setting, window=window)
            told = []
            for batch in drawn:
                table.ingest(pa.concat_tables([rows(minute, host=host) for minute, host in batch]))
                told += [lake.sql(question).to_arrow().to_pylist() for question in QUESTIONS]
                table.compact.run(threads=1)
            told += [lake.sql(question).to_arrow().to_pylist() for question in QUESTIONS]
            answers.append(told)
    assert answers[0] == answers[1]

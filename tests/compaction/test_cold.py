"""Which closed windows are gathered into a longer one, and which are left as they are."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow.compaction.compaction_plan import make_plan
from windrow.compaction.forecast import Rates
from windrow.compaction.planner import PlannedMerge, Planner
from windrow.compaction.windows import wanted_windows
from windrow.metastore import SqlMetastore
from windrow.model.window import Window

COLD = Window(0, 7200)
QUARTERS = [Window(start, 900) for start in range(0, 7200, 900)]
CLOSED = (7200 + 3600) * 10**6
"""When the first two hours are closed."""


@pytest.fixture
def shelf(metastore, shelf_of):
    return shelf_of(metastore, cold_window="2h", policy={"merge_factor": 2, "max_merge_factor": 3})


def decided(shelf, now=CLOSED, **options):
    decisions = list(Planner(shelf.metastore, shelf.record, now, **options).decisions())
    merges = [each for each in decisions if isinstance(each, PlannedMerge)]
    return merges, [each for each in decisions if not isinstance(each, PlannedMerge)]


def ids(merges):
    return [sorted(merge.split_ids) for merge in merges]


def test_one_merge_takes_every_split_of_the_windows_inside(shelf):
    shelf.publish([shelf.split(f"{window.start:04}{n}", window=window) for window in QUARTERS for n in "ab"])
    (merge,), left = decided(shelf)
    assert (merge.window, merge.count, merge.outputs, left) == (COLD, 16, 1, [])
    assert merge.scope == shelf.scope(window_duration=7200)
    assert merge.places == set(QUARTERS)
    assert [split.window for split in merge.splits()] == list(merge.windows)
    assert [split.scope for split in merge.splits()] == [shelf.scope()] * 16
    assert merge.why == "gathered: 16 splits of 8 windows become 1"


def test_nothing_is_gathered_while_late_points_are_accepted(shelf):
    shelf.publish([shelf.split(f"s{window.start}", window=window) for window in QUARTERS])
    assert decided(shelf, CLOSED - 1)[0] == []
    assert len(decided(shelf, CLOSED)[0]) == 1


def test_windows_of_all_durations_are_gathered(shelf):
    windows = [Window(0, 300), Window(900, 900), Window(3600, 3600)]
    shelf.publish([shelf.split(f"s{window.duration}", window=window) for window in windows])
    (merge,), _ = decided(shelf)
    assert merge.places == set(windows)


@pytest.mark.parametrize(
    "part", [{"source_id": "other"}, {"partition_id": 7}, {"sort_schema": "host|timestamp+/V2"}], ids=str
)
def test_no_gathering_crosses_another_part_of_the_scope(shelf, part):
    mine = [shelf.split(name, window=QUARTERS[n]) for n, name in enumerate("ab")]
    theirs = [shelf.split(name, window=QUARTERS[n], scope=shelf.scope(**part)) for n, name in enumerate("cd")]
    shelf.publish([*mine, *theirs])
    assert sorted(ids(decided(shelf)[0])) == [["a", "b"], ["c", "d"]]


def test_points_without_a_timestamp_and_registered_files_are_not_gathered(shelf):
    registered = shelf.split("r", window=None, scope=shelf.scope(sort_schema="", window_duration=0))
    shelf.publish([registered, shelf.split("o", window=Window.overflow_of(900)), shelf.split("a")])
    assert decided(shelf)[0] == []


def test_a_window_alone_in_a_cold_one_is_merged_within_itself(shelf):
    shelf.publish([shelf.split(name) for name in "ab"])
    (merge,), _ = decided(shelf)
    assert (merge.window, merge.windows) == (Window(0, 900), ())


def test_late_points_join_what_was_gathered_after_waiting_for_company(shelf):
    late = shelf.split("late", 10, window=QUARTERS[3], created_at=CLOSED)
    shelf.publish([shelf.split("cold", 10**6, window=COLD, generation=1), late])
    merges, (left,) = decided(shelf, CLOSED)
    assert (merges, left.count) == ([], 2)
    assert "waits for company, at most 2h" in left.why
    (merge,), _ = decided(shelf, CLOSED + 7200 * 10**6)
    assert merge.windows == tuple({"cold": COLD, "late": QUARTERS[3]}[name] for name in merge.split_ids)


def test_splits_of_a_cold_window_are_merged_as_those_of_any_closed_one(shelf):
    shelf.publish([shelf.split(name, window=COLD) for name in "ab"])
    (merge,), _ = decided(shelf)
    assert (merge.window, merge.windows, ids([merge])) == (COLD, (), [["a", "b"]])


def test_rows_that_were_rewritten_as_often_as_is_allowed_are_left(metastore, shelf_of):
    shelf = shelf_of(metastore, cold_window="2h", policy={"rewrite_budget": 2})
    splits = [shelf.split(f"s{n}", window=QUARTERS[n], generation=n) for n in range(4)]
    shelf.publish([*splits, shelf.split("cold", window=COLD, generation=2)])
    merges, left = decided(shelf)
    assert ids(merges) == [["s0", "s1"]]
    assert sorted(name for each in left for name in each.split_ids) == ["cold", "s2", "s3"]
    assert all("the bound of stable-log" in each.why for each in left)


def test_splits_in_quarantine_are_left(shelf):
    shelf.publish([shelf.split(f"s{n}", window=QUARTERS[n]) for n in range(3)])
    shelf.metastore.quarantine(shelf.table_id, {"s1": "it is torn"})
    merges, (left,) = decided(shelf)
    assert (ids(merges), left.split_ids) == ([["s0", "s2"]], ("s1",))


def test_large_windows_are_not_gathered(metastore, shelf_of):
    shelf = shelf_of(metastore, cold_window="2h", target_split_size=2**20)
    shelf.publish([shelf.split(f"s{n}", 3 * 2**20, window=QUARTERS[n], rows=1000) for n in range(8)])
    merges, left = decided(shelf)
    assert merges == []
    assert {each.window for each in left} == set(QUARTERS)


def test_a_gathering_above_the_target_size_has_several_outputs(metastore, shelf_of):
    shelf = shelf_of(metastore, cold_window="2h", target_split_size=2**20)
    shelf.publish([shelf.split(f"s{n}", 2**19, window=QUARTERS[n], rows=1000) for n in range(8)])
    (merge,), _ = decided(shelf)
    assert (merge.count, merge.outputs) == (8, 4)


def test_more_splits_than_a_merge_takes_are_gathered_by_several(shelf):
    shelf.publish([shelf.split(f"s{n:04}", window=QUARTERS[n % 8]) for n in range(600)])
    merges, left = decided(shelf)
    assert (sum(merge.count for merge in merges), left) == (600, [])
    assert len(merges) == 2
    assert all(merge.window == COLD and merge.windows for merge in merges)


@pytest.mark.parametrize("setting", ["off", "5h"])
def test_after_a_change_of_the_setting_cold_windows_stay(shelf, setting):
    shelf.publish([shelf.split("cold", window=COLD), shelf.split("a"), shelf.split("b", window=QUARTERS[1])])
    shelf.metastore.change_settings(shelf.table_id, shelf.record.settings.changed(cold_window=setting))
    merges, _ = decided(shelf, 20 * 3600 * 10**6)
    assert ids(merges) == ([] if setting == "off" else [["a", "b"]])


def test_a_longer_setting_gathers_cold_windows_that_lie_in_it(shelf):
    shelf.publish([shelf.split("cold", window=COLD), shelf.split("a", window=Window(7200, 900))])
    shelf.metastore.change_settings(shelf.table_id, shelf.record.settings.changed(cold_window="4h"))
    (merge,), _ = decided(shelf, 20 * 3600 * 10**6)
    assert (merge.window, merge.places) == (Window(0, 4 * 3600), {COLD, Window(7200, 900)})


@pytest.mark.parametrize(("start", "gathered"), [(0, 1), (900, 0), (7200, 0)])
def test_what_is_before_the_compaction_start_time_is_not_gathered(metastore, shelf_of, start, gathered):
    shelf = shelf_of(metastore, cold_window="2h", compaction_start_time=start)
    shelf.publish([shelf.split(f"s{window.start}", window=window) for window in QUARTERS])
    assert len(decided(shelf)[0]) == gathered


@pytest.mark.parametrize(
    ("wanted", "gathered"), [(None, 1), ("4000", 1), ("0/100", 1), ("900/7200", 0), ("7200", 0), ("overflow", 0)]
)
def test_a_run_over_some_windows_gathers_all_of_a_cold_one_or_nothing(shelf, wanted, gathered):
    shelf.publish([shelf.split(f"s{window.start}", window=window) for window in QUARTERS])
    merges, _ = decided(shelf, wanted=wanted_windows(wanted))
    assert [merge.count for merge in merges] == [8] * gathered


def test_the_forecast_and_what_stays_apart_know_of_cold_windows(shelf):
    shelf.publish([shelf.split(f"s{window.start}", window=window) for window in QUARTERS])
    shelf.publish([shelf.split("cold", window=COLD)])
    shelf.publish([shelf.split("later", window=Window(7200, 300))])
    plan = make_plan(Planner(shelf.metastore, shelf.record, CLOSED), Rates())
    assert (plan.forecast.files_before, plan.forecast.files_after, plan.apart) == (10, 2, ())
    shelf.metastore.change_settings(shelf.table_id, shelf.record.settings.changed(cold_window="off"))
    apart = make_plan(Planner(shelf.metastore, shelf.record, CLOSED), Rates()).apart
    assert [(each.then, each.splits) for each in apart] == [("2h", 1), ("5m", 1)]


places = st.sampled_from([*QUARTERS, *(Window(each.start + 7200, 900) for each in QUARTERS), Window(0, 300), COLD])
drawn = st.lists(st.tuples(places, st.sampled_from("ab"), st.integers(0, 9)), min_size=1, max_size=60)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(drawn, st.sampled_from([CLOSED - 1, CLOSED, 3 * CLOSED]), st.sampled_from(["off", "2h", "4h"]))
def test_every_split_is_decided_about_once_and_every_merge_keeps_the_rules(
    shelf_of, tmp_path_factory, drawn, now, cold
):
    with SqlMetastore(f"sqlite:///{tmp_path_factory.mktemp('m')}/windrow.db") as metastore:
        shelf = shelf_of(metastore, cold_window=cold)
        for number, (window, source, generation) in enumerate(drawn):
            where = shelf.scope(source_id=source, window_duration=window.duration)
            split = shelf.split(f"s{number}", 10 * number, window=window, scope=where, generation=generation)
            shelf.publish([split])
        for chunk in (20_000, 8):
            merges, left = decided(shelf, now, chunk=chunk)
            named = Counter(name for each in [*merges, *left] for name in each.split_ids)
            alone = sum(each.count for each in left if not each.split_ids)
            assert set(named.values()) <= {1}
            assert len(named) + alone == len(drawn)
            for merge in merges:
                own = [drawn[int(name[1:])] for name in merge.split_ids]
                assert {source for _, source, _ in own} == {merge.scope.source_id}
                assert all(merge.window.holds(window) and generation < 8 for window, _, generation in own)
                assert (len({window for window, _, _ in own} | {merge.window}) > 1) == bool(merge.windows)
                assert not merge.windows or merge.window.duration == shelf.record.settings.cold_window

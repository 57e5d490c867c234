"""What is merged with whom, and why the rest is left alone."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow.compaction.planner import Left, PlannedMerge, Planner
from windrow.compaction.policies import Choice
from windrow.errors import InvariantViolation
from windrow.metastore import CommitKind, SqlMetastore
from windrow.model.window import Window

FIRST, SECOND = Window(0, 900), Window(900, 900)
OPEN = 100 * 10**6
"""While the first window is open."""
CLOSED = 10**10


def planned(shelf, now=OPEN, **options):
    decisions = list(Planner(shelf.metastore, shelf.record, now, **options).decisions())
    merges = [each for each in decisions if isinstance(each, PlannedMerge)]
    return merges, [each for each in decisions if isinstance(each, Left)]


def ids(merges):
    return [sorted(split.split_id for split in merge.inputs) for merge in merges]


def test_splits_of_one_scope_and_window_are_merged(shelf):
    shelf.publish([shelf.split("a"), shelf.split("b")])
    (merge,), left = planned(shelf)
    assert (ids([merge]), left) == ([["a", "b"]], [])
    assert (merge.scope, merge.window, merge.outputs, merge.size_bytes) == (shelf.scope(), FIRST, 1, 2000)
    assert merge.why == "2 splits of about the same size, 2.0 KiB"


@pytest.mark.parametrize(
    "part",
    [
        {"source_id": "other"},
        {"partition_id": 7},
        {"doc_mapping_uid": 1},
        {"sort_schema": "host|timestamp+/V2"},
        {"window_duration": 300},
    ],
    ids=lambda part: next(iter(part)),
)
def test_no_merge_crosses_a_part_of_the_scope(shelf, part):
    other = shelf.scope(**part)
    window = Window(0, other.window_duration)
    mine, theirs = (
        [shelf.split(name) for name in "ab"],
        [shelf.split(name, scope=other, window=window) for name in "cd"],
    )
    shelf.publish([*mine, shelf.split("lonely", scope=shelf.scope(source_id="third"))])
    if other.doc_mapping_uid:
        shelf.retype()
    shelf.publish(theirs)
    merges, left = planned(shelf)
    assert sorted(ids(merges)) == [["a", "b"], ["c", "d"]]
    assert [(each.count, each.why) for each in left] == [(1, "it is alone in its window")]


def test_no_merge_crosses_a_window(shelf):
    shelf.publish(
        [shelf.split(name, window=window) for window in (FIRST, SECOND) for name in (f"a{window}", f"b{window}")]
    )
    merges, _ = planned(shelf)
    assert [merge.window for merge in merges] == [SECOND, FIRST]
    assert all(merge.window == Window(merge.window.start, 900) for merge in merges)


@pytest.mark.parametrize("now", [OPEN, CLOSED])
def test_points_without_a_timestamp_are_merged_on_their_own(shelf, now):
    overflow = Window.overflow_of(900)
    shelf.publish([shelf.split(f"t{n}") for n in range(2)] + [shelf.split(f"o{n}", window=overflow) for n in range(2)])
    merges, _ = planned(shelf, now)
    assert sorted(ids(merges)) == [["o0", "o1"], ["t0", "t1"]]


def test_no_start_time_keeps_points_without_a_timestamp_from_being_merged(metastore, shelf_of):
    shelf = shelf_of(metastore, compaction_start_time=900, policy={"merge_factor": 2})
    shelf.publish([shelf.split(f"o{n}", window=Window.overflow_of(900)) for n in range(2)])
    assert ids(planned(shelf)[0]) == [["o0", "o1"]]


def test_windows_before_the_start_time_are_left(metastore, shelf_of):
    shelf = shelf_of(metastore, compaction_start_time=900, policy={"merge_factor": 2})
    shelf.publish([shelf.split(f"{n}{window.start}", window=window) for n in "ab" for window in (FIRST, SECOND)])
    merges, left = planned(shelf, CLOSED)
    assert [merge.window for merge in merges] == [SECOND]
    assert [(each.window, each.count) for each in left] == [(FIRST, 2)]
    assert "before the compaction start time 1970-01-01T00:15:00Z" in left[0].why


def test_registered_files_are_left(shelf):
    scope = shelf.scope(sort_schema="", window_duration=0)
    shelf.publish([shelf.split(name, window=None, scope=scope) for name in "ab"])
    merges, left = planned(shelf, CLOSED)
    assert (merges, left[0].count) == ([], 2)
    assert "no window" in left[0].why


def test_splits_in_quarantine_are_left_with_their_reason(shelf):
    shelf.publish([shelf.split(name) for name in "abc"])
    shelf.metastore.quarantine(shelf.table_id, {"b": "it is torn"})
    merges, left = planned(shelf)
    assert ids(merges) == [["a", "c"]]
    assert [(each.split_ids, each.why) for each in left] == [(("b",), "it is in quarantine: it is torn")]


@pytest.mark.parametrize("now", [OPEN, CLOSED])
@pytest.mark.parametrize(
    ("policy", "bound"),
    [
        ({"name": "constant-write-amplification", "max_merge_ops": 1}, 1),
        ({"name": "constant-write-amplification", "max_merge_ops": 3, "rewrite_budget": 2}, 3),
        ({"name": "stable-log", "rewrite_budget": 2}, 2),
    ],
)
def test_no_row_is_rewritten_more_often_than_the_bound_of_the_policy(metastore, shelf_of, policy, bound, now):
    shelf = shelf_of(metastore, policy={"merge_factor": 2, **policy})
    shelf.publish([shelf.split(f"{n}-{name}", generation=n) for n in range(10) for name in "abc"])
    merges, left = planned(shelf, now)
    merged = [split.generation for merge in merges for split in merge.inputs]
    assert max(merged) == bound - 1
    spent = [each for each in left if f"rewritten {bound} times or more" in each.why]
    assert sum(each.count for each in spent) == 3 * (10 - bound)


def test_a_policy_of_ones_own_is_held_to_the_bound_too(metastore, shelf_of):
    shelf = shelf_of(metastore, policy={"rewrite_budget": 2})
    shelf.publish([shelf.split(name, generation=n) for n, name in enumerate("abcd")])
    merges, left = planned(shelf, policy=lambda splits, at: Choice([(tuple(splits), "all")]))
    assert ids(merges) == [["a", "b"]]
    assert sum(each.count for each in left) == 2


def test_a_closed_window_is_brought_to_the_fewest_files(shelf):
    shelf.publish([shelf.split(f"s{n}") for n in range(20)])
    assert [len(merge.inputs) for merge in planned(shelf, CLOSED)[0]] == [20]
    assert {len(merge.inputs) for merge in planned(shelf, OPEN)[0]} == {2, 3}


@pytest.mark.parametrize(("seconds", "closed"), [(900, False), (4499, False), (4500, True), (10**7, True)])
def test_a_window_closes_when_late_points_are_no_longer_accepted(shelf, seconds, closed):
    assert Planner(shelf.metastore, shelf.record, seconds * 10**6).closed(FIRST) == closed


def test_the_most_queried_windows_come_first_then_the_newest(shelf):
    windows = [Window(900 * n, 900) for n in range(4)]
    shelf.publish([shelf.split(f"{n}{window.start}", window=window) for n in "ab" for window in windows])
    heat = {windows[1].start: 5.0}
    merges, _ = planned(shelf, heat=lambda window: heat.get(window.start, 0))
    assert [merge.window.start // 900 for merge in merges] == [1, 3, 2, 0]


def test_only_wanted_windows_are_looked_at(shelf):
    shelf.publish([shelf.split(f"{n}{window.start}", window=window) for n in "ab" for window in (FIRST, SECOND)])
    merges, left = planned(shelf, wanted=lambda window: window == SECOND)
    assert ([merge.window for merge in merges], left) == ([SECOND], [])


def test_a_group_larger_than_a_chunk_is_decided_piece_by_piece(shelf):
    shelf.publish([shelf.split(f"s{n:03d}") for n in range(200)])
    whole, none_left = planned(shelf)
    pieces, left = planned(shelf, chunk=17)
    assert sum(len(merge.inputs) for merge in pieces) + sum(each.count for each in left) == 200
    assert len(pieces) == len(whole)
    assert sum(each.count for each in left) == sum(each.count for each in none_left) == 0


def test_a_closed_group_larger_than_a_chunk_gives_full_merges_only(shelf):
    shelf.publish([shelf.split(f"s{n:04d}", size=10 * 2**20) for n in range(300)])
    merges, left = planned(shelf, CLOSED, chunk=100)
    assert all(merge.size_bytes >= 256 * 2**20 for merge in merges[:-1])
    assert sum(len(merge.inputs) for merge in merges) + sum(each.count for each in left) == 300


@pytest.mark.parametrize(
    ("policy", "invariant", "message"),
    [
        (lambda splits, at: Choice([(tuple(splits), "")], [(splits[0], "")]), "MC-1", "2 times, not once"),
        (lambda splits, at: Choice([(tuple(splits[1:]), "")]), "MC-1", "0 times, not once"),
        (lambda splits, at: Choice([((splits[0],), ""), (tuple(splits[1:]), "")]), "MC-1", "single split"),
        (
            lambda splits, at: Choice([((*splits, splits[0]._replace(split_id="elsewhere")), "")]),
            "CS-1",
            "split elsewhere, which is none of",
        ),
    ],
    ids=["twice", "forgotten", "alone", "stranger"],
)
def test_a_policy_that_makes_things_up_is_refused(shelf, policy, invariant, message):
    shelf.publish([shelf.split(name) for name in "abc"])
    with pytest.raises(InvariantViolation, match=message) as raised:
        planned(shelf, policy=policy)
    assert raised.value.invariant == invariant


everything = st.lists(
    st.tuples(
        st.sampled_from(["default", "other"]),
        st.sampled_from([None, "overflow", 0, 900, 1800]),
        st.integers(1, 2**29),
        st.integers(0, 3),
    ),
    max_size=40,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=everything, now=st.integers(0, 10**12), chunk=st.integers(2, 50), random=st.randoms(use_true_random=False))
def test_every_visible_split_is_in_one_merge_or_left_for_a_reason(tmp_path_factory, shelf_of, rows, now, chunk, random):
    with SqlMetastore(f"sqlite:///{tmp_path_factory.mktemp('m')}/windrow.db") as metastore:
        shelf = shelf_of(metastore, policy={"merge_factor": 3})
        splits = []
        for number, (source, start, size, generation) in enumerate(rows):
            window = None if start is None else Window.overflow_of(900) if start == "overflow" else Window(start, 900)
            parts = {"sort_schema": "", "window_duration": 0} if window is None else {}
            scope = shelf.scope(source_id=source, **parts)
            splits.append(shelf.split(f"s{number}", size, window=window, scope=scope, generation=generation))
        if splits:
            shelf.publish(random.sample(splits, len(splits)))
        merges, left = planned(shelf, now, chunk=chunk)
    assert sum(len(merge.inputs) for merge in merges) + sum(each.count for each in left) == len(splits)
    places = {split.split_id: (split.scope, split.window) for split in splits}
    assert all({places[split.split_id] for split in merge.inputs} == {(merge.scope, merge.window)} for merge in merges)
    named = Counter(split.split_id for merge in merges for split in merge.inputs)
    named.update(one for each in left for one in each.split_ids)
    assert all(count == 1 for count in named.values())
    assert all(each.why for each in [*merges, *left])


def test_what_a_merge_left_is_planned_anew(shelf):
    shelf.publish([shelf.split(name) for name in "ab"])
    (merge,), _ = planned(shelf)
    output = shelf.split("ab", size=1500, rows=20, generation=1)
    shelf.publish([output], replace=[split.split_id for split in merge.inputs], kind=CommitKind.COMPACT)
    assert planned(shelf)[0] == []

"""What compaction asks of a metastore: groups, candidates, splits in quarantine, runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest

from windrow.errors import AlreadyExists, InvalidInput, NotFound
from windrow.metastore import Candidate, CommitKind, GroupSummary, Metastore, RunRecord, RunState
from windrow.model.split import SidecarLocation, SplitMetadata
from windrow.model.window import Window
from windrow.testing.metastore_cases.samples import (
    MINUTES_15,
    TABLE,
    FakeClock,
    a_split,
    a_table,
    add,
    begin,
    scope,
)

__all__ = ["CompactionCases"]

_FIRST = Window(0, MINUTES_15)


def _ids(metastore: Metastore, window: Window = _FIRST, page_size: int = 1000) -> list[tuple[str, list[str]]]:
    pieces = metastore.candidates(TABLE, window, page_size=page_size)
    by_source = groupby(pieces, key=lambda piece: piece[0].source_id)
    return [(source, [split.split_id for _, page in pages for split in page]) for source, pages in by_source]


def _in_window(split_id: str, window: Window) -> SplitMetadata:
    place = {"time_min": window.start * 10**6, "time_max": window.end * 10**6 - 1}
    return a_split(split_id, "c1", window=window, scope=scope(duration=window.duration), **place)


class CompactionCases:
    """Groups, candidates, quarantine and runs."""

    def test_queries_are_counted_by_window_and_count_less_after_a_while(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        a_table(metastore)
        a_table(metastore, name="other", table_id="other")
        metastore.add_queries(TABLE, {0: 4, 900: 1})
        metastore.add_queries(TABLE, {900: 2})
        assert metastore.heat(TABLE) == {0: 4.0, 900: 3.0}
        assert metastore.heat("other") == {}
        settable_clock.advance(7 * 86_400)
        assert metastore.heat(TABLE) == pytest.approx({0: 2.0, 900: 1.5})
        metastore.add_queries(TABLE, {0: 1})
        assert metastore.heat(TABLE) == pytest.approx({0: 3.0, 900: 1.5})
        settable_clock.advance(200 * 86_400)
        metastore.add_queries(TABLE, {1800: 1})
        assert metastore.heat(TABLE) == {1800: 1.0}

    def test_groups_share_scope_and_window(self, metastore: Metastore) -> None:
        a_table(metastore)
        other = scope(source_id="other")
        splits = [
            a_split("a", "c1", rows=10),
            a_split("b", "c1", rows=20),
            a_split("c", "c1", scope=other, rows=30),
            a_split("d", "c1", 900, rows=40),
        ]
        add(metastore, "c1", *splits)
        assert sorted(metastore.groups(TABLE), key=lambda group: group.size_bytes) == [
            GroupSummary(other, _FIRST, 1, 30, 1030),
            GroupSummary(scope(), Window(900, MINUTES_15), 1, 40, 1040),
            GroupSummary(scope(), _FIRST, 2, 30, 2030),
        ]

    def test_only_what_is_visible_now_is_in_a_group(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1", a_split("a", "c1"), a_split("b", "c1"))
        begin(metastore, "c2", CommitKind.COMPACT)
        metastore.publish("c2", add=[a_split("ab", "c2", rows=20)], replace=["a", "b"])
        assert [group.splits for group in metastore.groups(TABLE)] == [1]
        assert _ids(metastore) == [("default", ["ab"])]

    def test_windows_without_timestamps_and_without_a_window_are_groups_of_their_own(
        self, metastore: Metastore
    ) -> None:
        a_table(metastore)
        overflow = Window.overflow_of(MINUTES_15)
        registered = a_split(
            "r", "c1", window=None, zones=(), scope=scope(duration=0, sort_schema=""), time_min=None, time_max=None
        )
        add(
            metastore,
            "c1",
            a_split("a", "c1"),
            a_split("o", "c1", window=overflow, time_min=None, time_max=None),
            registered,
        )
        assert [group.window for group in metastore.groups(TABLE)] == [None, overflow, _FIRST]
        assert _ids(metastore) == [("default", ["a"])]
        assert _ids(metastore, overflow) == [("default", ["o"])]

    def test_groups_come_by_the_start_of_their_windows_whatever_these_last(self, metastore: Metastore) -> None:
        a_table(metastore)
        windows = [Window(-86_400, 86_400), Window(-900, 900), Window(0, 900), Window(0, 7200), Window(3600, 900)]
        add(metastore, "c1", *(_in_window(f"s{number}", window) for number, window in enumerate(windows[::-1])))
        assert [group.window for group in metastore.groups(TABLE)] == windows

    def test_candidates_of_a_cold_window_are_apart_and_of_one_scope_where_one_is_given(
        self, metastore: Metastore
    ) -> None:
        a_table(metastore)
        cold, other = Window(0, 7200), scope(source_id="other")
        add(metastore, "c1", a_split("a", "c1"), a_split("k", "c1", scope=other), _in_window("c", cold))
        assert sorted(_ids(metastore)) == [("default", ["a"]), ("other", ["k"])]
        assert _ids(metastore, cold) == [("default", ["c"])]
        for where, expected in ((scope(), ["a"]), (other, ["k"]), (scope(source_id="ghost"), [])):
            pieces = metastore.candidates(TABLE, _FIRST, scope=where)
            assert [split.split_id for _, page in pieces for split in page] == expected

    @pytest.mark.parametrize("page_size", [1, 2, 3, 7, 1000])
    def test_candidates_come_by_scope_and_id_whatever_the_page(self, metastore: Metastore, page_size: int) -> None:
        a_table(metastore)
        add(metastore, "c1", *(a_split(f"x{n}", "c1", scope=scope(source_id=f"s{n % 3}")) for n in range(7)))
        found = dict(_ids(metastore, page_size=page_size))
        assert found == {"s0": ["x0", "x3", "x6"], "s1": ["x1", "x4"], "s2": ["x2", "x5"]}
        assert len(_ids(metastore, page_size=page_size)) == 3

    def test_a_candidate_is_what_a_merge_needs(self, metastore: Metastore) -> None:
        a_table(metastore)
        place = SidecarLocation("metrics/_a.pm", 8, 100)
        split = a_split("a", "c1", generation=3, replaces=("x", "y"), etag="e", sidecar=place, digest="crc32:0")
        add(metastore, "c1", split)
        expected = Candidate(
            "a", split.key, split.size_bytes, split.row_count, 3, split.created_at, "e", place.key, 8, 100, "crc32:0"
        )
        assert expected.sidecar == place
        assert list(metastore.candidates(TABLE, _FIRST)) == [(scope(), [expected])]

    def test_a_page_of_candidates_holds_something(self, metastore: Metastore) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="page_size"):
            next(metastore.candidates(TABLE, _FIRST, page_size=0))

    def test_a_table_without_splits_has_no_groups(self, metastore: Metastore) -> None:
        a_table(metastore)
        assert list(metastore.groups(TABLE)) == []
        assert list(metastore.candidates(TABLE, _FIRST)) == []

    def test_a_split_is_kept_away_from_merging_and_pardoned(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        a_table(metastore)
        metastore.quarantine(TABLE, {"b": "it is torn", "a": "it is gone"})
        since = settable_clock()
        settable_clock.advance(10)
        metastore.quarantine(TABLE, {"b": "another reason", "c": "it is odd"})
        found = [(each.split_id, each.reason, each.since - since) for each in metastore.quarantined(TABLE)]
        assert found == [("a", "it is gone", 0), ("b", "it is torn", 0), ("c", "it is odd", 10_000_000)]
        assert metastore.pardon(TABLE, ["a", "c", "unknown"]) == 2
        assert [each.split_id for each in metastore.quarantined(TABLE)] == ["b"]

    def test_a_run_is_written_down_as_it_goes(self, metastore: Metastore) -> None:
        a_table(metastore)
        run = RunRecord("r1", RunState.RUNNING, started_at=5, planned=3)
        metastore.record_run(TABLE, run)
        metastore.record_run(TABLE, RunRecord("r2", RunState.RUNNING, started_at=6))
        ended = replace(
            run, state=RunState.DONE, ended_at=9, done=2, failed=1, bytes_out=20, bytes_new=10, problems=("a", "ü")
        )
        metastore.record_run(TABLE, ended)
        assert metastore.runs(TABLE)[1] == ended
        assert [each.run_id for each in metastore.runs(TABLE)] == ["r2", "r1"]
        assert [each.run_id for each in metastore.runs(TABLE, limit=1)] == ["r2"]
        assert (ended.write_amplification, run.write_amplification) == (2.0, None)

    def test_the_run_of_another_table_is_not_touched(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, "others", "table-2")
        metastore.record_run(TABLE, RunRecord("r1", RunState.RUNNING, started_at=5))
        with pytest.raises(AlreadyExists, match="run id r1"):
            metastore.record_run("table-2", RunRecord("r1", RunState.DONE, started_at=6))
        assert metastore.runs("table-2") == []

    def test_a_table_that_is_not_there_has_nothing_to_merge(self, metastore: Metastore) -> None:
        for ask in (metastore.groups, metastore.quarantined, metastore.runs):
            with pytest.raises(NotFound):
                list(ask("nobody"))

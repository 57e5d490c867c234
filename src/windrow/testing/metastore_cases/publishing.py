"""Publishing: all of a commit as one new version, or nothing of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from windrow.errors import Conflict, InvalidInput, InvariantViolation, Outcome, WindrowError
from windrow.metastore import Checkpoint, CommitKind, Metastore
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.testing.metastore_cases.samples import (
    TABLE,
    OpenAgain,
    a_split,
    a_table,
    add,
    begin,
    everything,
    ids,
    scope,
    zone,
)

__all__ = ["CheckpointCases", "PublishCases", "RefusalCases"]

OVERFLOW = Window.overflow_of(900)


def compact(metastore: Metastore, commit_id: str, replaced: list[str], *added: SplitMetadata) -> int:
    """Publish a merge; return its version."""
    begin(metastore, commit_id, CommitKind.COMPACT)
    return metastore.publish(commit_id, add=added, replace=replaced).version


class PublishCases:
    """What a publish does."""

    def test_each_publish_makes_the_next_version(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        clients = [metastore, open_again()]
        for number in range(1, 7):
            commit_id = f"c{number}"
            assert add(clients[number % 2], commit_id).version == number
            assert [client.table("metrics").version for client in clients] == [number, number]

    def test_a_refused_publish_leaves_no_gap(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1")
        begin(metastore, "c2")
        with pytest.raises(Conflict):
            metastore.publish("c2", replace=["ghost"])
        assert add(metastore, "c3").version == 2

    def test_the_result_counts_what_came_and_went(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1", a_split("s1", "c1", rows=3), a_split("s2", "c1", rows=4))
        begin(metastore, "c2", CommitKind.EXPIRE)
        result = metastore.publish("c2", add=[a_split("s3", "c2", rows=50)], replace={"s1", "s2"})
        assert (result.commit_id, result.version) == ("c2", 2)
        assert (result.added, result.removed, result.rows_added, result.rows_removed) == (1, 2, 50, 7)

    def test_a_split_comes_back_as_it_was_published(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        rich = a_split("s1", "c1", generation=3, replaces=("r1", "r2"), etag=None)
        bare = a_split("s2", "c1", sidecar=None, zones=(zone(None, None, 10),) * 3)
        floats = a_split("s3", "c1", zones=ODD_FLOATS)
        wide = (zone(-(2**63), 2**64 - 1), zone("", "\U0010ffff"), zone("a", "b", 3, "[ab]"))
        large = a_split("s4", "c1", zones=wide)
        add(metastore, "c1", rich, bare, floats, large)
        (page,) = open_again().splits(TABLE, 1)
        assert page == [rich, bare, floats, large]

    def test_an_empty_publish_is_a_version_too(self, metastore: Metastore) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        assert metastore.publish("c1").version == 1
        assert ids(metastore, 1) == []

    def test_many_splits_at_once(self, metastore: Metastore) -> None:
        a_table(metastore)
        names = [f"s{number:04d}" for number in range(2345)]
        add(metastore, "c1", *(a_split(name, "c1") for name in names))
        begin(metastore, "c2", CommitKind.EXPIRE)
        result = metastore.publish("c2", replace=names[5:])
        assert (result.removed, result.rows_removed) == (2340, 23400)
        assert (ids(metastore, 1), ids(metastore, 2)) == (names, names[:5])

    def test_the_same_commit_again_returns_the_first_result(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        first = add(metastore, "c1")
        add(metastore, "c2")
        before = everything(metastore)
        other = a_split("other", "c1", rows=99)
        assert metastore.publish("c1", add=[a_split("c1", "c1")]) == first
        assert open_again().publish("c1", add=[other], replace=["c2"], summary={"n": 1}) == first
        assert metastore.publish("c1", attempt=7, checkpoint=Checkpoint("kafka", "9", "8")) == first
        assert metastore.publish("c1", add=[replace(other, row_count=0)], columns=("ghost",)) == first
        assert everything(metastore) == before

    def test_a_merge_keeps_the_rows_of_every_window_of_every_scope(self, metastore: Metastore) -> None:
        a_table(metastore)
        other = scope(source_id="kafka")
        add(
            metastore,
            "c1",
            a_split("a1", "c1", 0, 3),
            a_split("a2", "c1", 0, 4),
            a_split("b1", "c1", 900, 5),
            a_split("k1", "c1", 0, 6, scope=other),
            a_split("o1", "c1", 0, 7, window=OVERFLOW, time_min=None, time_max=None),
        )
        merged = [
            a_split("a", "c2", 0, 6),
            a_split("A", "c2", 0, 1),
            a_split("b", "c2", 900, 5),
            a_split("k", "c2", 0, 6, scope=other),
            a_split("o", "c2", 0, 7, window=OVERFLOW, time_min=None, time_max=None),
        ]
        assert compact(metastore, "c2", ["a1", "a2", "b1", "k1", "o1"], *merged) == 2
        assert sorted(ids(metastore, 2)) == ["A", "a", "b", "k", "o"]

    def test_a_gathering_moves_rows_into_the_cold_window_that_holds_theirs(self, metastore: Metastore) -> None:
        _with_two_windows(metastore)
        assert compact(metastore, "c3", ["a", "b"], _cold("c", "c3", 8)) == 3
        assert ids(metastore, 3) == ["c"]
        assert ids(metastore, 2) == ["a", "b"]

    @pytest.mark.parametrize(
        ("fields", "invariant"),
        [
            ({"rows": 7}, "MC-1"),
            ({"start": -7200}, "CW-2"),
            ({"source_id": "kafka"}, "CW-2"),
            ({"partition_id": 7}, "CW-2"),
            ({"sort_schema": "host|timestamp&region|zone/V2"}, "CW-2"),
        ],
        ids=str,
    )
    def test_any_other_gathering_is_refused(self, metastore: Metastore, fields: dict[str, Any], invariant: str) -> None:
        _with_two_windows(metastore)
        with pytest.raises(InvariantViolation) as refused:
            compact(metastore, "c3", ["a", "b"], _cold("c", "c3", **{"rows": 8, **fields}))
        assert refused.value.invariant == invariant
        assert ids(metastore, 2) == ["a", "b"]

    def test_a_gathering_that_leaves_a_window_out_loses_nothing_of_it(self, metastore: Metastore) -> None:
        _with_two_windows(metastore)
        with pytest.raises(InvariantViolation, match="MC-1"):
            compact(metastore, "c3", ["a", "b"], _cold("c", "c3", 5))
        assert compact(metastore, "c4", ["a"], _cold("c", "c4", 3)) == 3
        assert ids(metastore, 3) == ["b", "c"]

    def test_an_expiry_may_drop_rows(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1")
        begin(metastore, "c2", CommitKind.EXPIRE)
        assert metastore.publish("c2", replace=["c1"]).rows_removed == 10


ODD_FLOATS = (zone(float("-inf"), float("inf")), zone(-0.0, 5e-324), zone(0.1, 1.7976931348623157e308))


def _with_two_windows(metastore: Metastore) -> None:
    """A table with windows of 15 minutes and of an hour, and one of another scope."""
    a_table(metastore)
    hour = Window(3600, 3600)
    place = {"time_min": hour.start * 10**6, "time_max": hour.end * 10**6 - 1}
    add(metastore, "c1", a_split("a", "c1", 0, 3))
    add(metastore, "c2", a_split("b", "c2", rows=5, window=hour, scope=scope(duration=3600), **place))


def _cold(split_id: str, commit_id: str, rows: int, start: int = 0, **parts: Any) -> SplitMetadata:
    """A split of the two hours from a second on."""
    window = Window(start, 7200)
    place: dict[str, Any] = {"time_min": window.start * 10**6, "time_max": window.end * 10**6 - 1}
    if "sort_schema" in parts:
        place["zones"] = (zone(1, 2),) * 4
    return a_split(split_id, commit_id, rows=rows, window=window, scope=scope(duration=7200, **parts), **place)


class CheckpointCases:
    """A checkpoint moves with the data, from where the source stands, or nothing moves."""

    def test_a_checkpoint_continues(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        assert metastore.checkpoint(TABLE, "kafka") is None
        for number, previous in enumerate((None, "p0", "p1")):
            add(metastore, f"c{number}", checkpoint=Checkpoint("kafka", f"p{number}", previous))
            assert open_again().checkpoint(TABLE, "kafka") == f"p{number}"

    def test_a_checkpoint_that_does_not_continue_is_a_conflict(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1", checkpoint=Checkpoint("kafka", "p1"))
        for number, previous in enumerate((None, "p0", "P1", "")):
            begin(metastore, f"d{number}")
            before = everything(metastore)
            with pytest.raises(Conflict, match="source 'kafka' stands at 'p1', not at") as refused:
                metastore.publish(
                    f"d{number}", add=[a_split("s", f"d{number}")], checkpoint=Checkpoint("kafka", "p2", previous)
                )
            assert refused.value.outcome is Outcome.NOT_COMMITTED
            assert everything(metastore) == before

    def test_a_source_that_was_never_read_stands_nowhere(self, metastore: Metastore) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        with pytest.raises(Conflict, match="'kafka' stands at None, not at 'p7'"):
            metastore.publish("c1", checkpoint=Checkpoint("kafka", "p8", "p7"))

    def test_sources_and_tables_have_checkpoints_of_their_own(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        add(metastore, "c1", checkpoint=Checkpoint("kafka", "p1"))
        add(metastore, "c2", checkpoint=Checkpoint("default", "q1"))
        assert [metastore.checkpoint(TABLE, source) for source in ("kafka", "default")] == ["p1", "q1"]
        assert metastore.checkpoint("table-2", "kafka") is None


Case = tuple[str, type[WindrowError], str, dict[str, Any]]


def _new(**fields: Any) -> dict[str, Any]:
    return {"add": [a_split("new", "c9", **fields)]}


def _same(split_id: str) -> dict[str, Any]:
    return {"add": [a_split(split_id, "c9")]}


def _merge(*added: SplitMetadata) -> dict[str, Any]:
    return {"add": list(added), "replace": ["a1", "a2"]}


def _overflow(rows: int) -> SplitMetadata:
    return a_split("new", "c9", 0, rows, window=OVERFLOW, time_min=None, time_max=None)


def _registered(rows: int) -> SplitMetadata:
    return a_split("new", "c9", 0, rows, window=None, zones=(), scope=scope(duration=0, sort_schema=""))


REFUSED: tuple[Case, ...] = (
    ("added twice", InvalidInput, "split new is added twice", {"add": [a_split("new", "c9")] * 2}),
    ("of another commit", InvalidInput, "written by commit c1, not by c9", {"add": [a_split("new", "c1")]}),
    ("without rows", InvalidInput, "has no rows", _new(rows=0)),
    ("fewer than no rows", InvalidInput, "has no rows", _new(rows=-1)),
    ("without an id", InvalidInput, "split id ''", {"add": [a_split("", "c9")]}),
    ("a long id", InvalidInput, "1 to 128", {"add": [a_split("x" * 129, "c9")]}),
    ("an unprintable id", InvalidInput, "printable", {"add": [a_split("a\nb", "c9")]}),
    ("times turned round", InvalidInput, "time bounds 9 and 3", _new(time_min=9, time_max=3)),
    ("before its window", InvariantViolation, "TW-1", _new(time_min=-1, time_max=0)),
    ("after its window", InvariantViolation, "TW-1", _new(time_min=0, time_max=900_000_000)),
    ("a time in overflow", InvariantViolation, "TW-1", _new(window=OVERFLOW)),
    ("another duration", InvariantViolation, "CS-1", _new(window=Window(0, 3600))),
    ("of another table", InvariantViolation, "CS-1.*table-2", _new(scope=scope("table-2"))),
    ("too few zones", InvalidInput, "2 zone maps for the 3 columns", _new(zones=(zone(1, 2),) * 2)),
    ("a schema in other words", InvalidInput, "not canonical", _new(scope=scope(sort_schema="host+|ts/V2"))),
    ("no schema", InvalidInput, "sort schema", _new(scope=scope(sort_schema="nonsense"))),
    ("no window, but sorted", InvalidInput, "has no window, but", _new(window=None)),
    ("an id that is visible", Conflict, "in the metastore already", {"add": [a_split("a1", "c9")]}),
    ("an id that was visible", Conflict, "in the metastore already", {"add": [a_split("gone", "c9")]}),
    ("an id of another table", Conflict, "in the metastore already", {"add": [a_split("e1", "c9")]}),
    ("replaced twice", InvalidInput, "named twice", {"replace": ["a1", "a1"]}),
    ("replaced by itself", InvalidInput, "a1 cannot be added and", {**_same("a1"), "replace": ["a1"]}),
    ("replaced before", Conflict, "1 of 1 .*gone", {"replace": ["gone"]}),
    ("half replaced before", Conflict, r"1 of 3 .*gone", {"replace": ["a1", "gone", "a2"]}),
    ("never there", Conflict, "1 of 2 .*ghost", {**_new(), "replace": ["a1", "ghost"]}),
    ("of another table, replaced", Conflict, "1 of 2 .*e1", {"replace": ["a1", "e1"]}),
    ("a summary that is no JSON", InvalidInput, "summary: JSON", {**_new(), "summary": {"x": object()}}),
)

UNMERGED: tuple[Case, ...] = (
    ("rows lost", InvariantViolation, "MC-1.*20 rows went in, 19", _merge(a_split("new", "c9", 0, 19))),
    ("rows made up", InvariantViolation, "MC-1.*20 rows went in, 21", _merge(a_split("new", "c9", 0, 21))),
    ("all rows lost", InvariantViolation, "MC-1.*20 rows went in, 0", _merge()),
    ("to another window", InvariantViolation, "CS-2", _merge(a_split("new", "c9", 900, 20))),
    ("to overflow", InvariantViolation, "CS-2", _merge(_overflow(20))),
    ("to another tenant", InvariantViolation, "CS-2", _merge(a_split("new", "c9", 0, 20, scope=scope(partition_id=1)))),
    ("to no window", InvariantViolation, "CS-1.*no window", _merge(_registered(20))),
    ("out of nothing", InvariantViolation, "CS-2", {"add": [a_split("new", "c9", 0, 1)]}),
    (
        "between windows",
        InvariantViolation,
        "MC-1",
        {
            "add": [a_split("new", "c9", 0, 11), a_split("new2", "c9", 900, 9)],
            "replace": ["a1", "b1"],
        },
    ),
)


class RefusalCases:
    """What a publish refuses, and that nothing is half done then."""

    @pytest.mark.parametrize(("_", "error", "words", "parts"), REFUSED, ids=[case[0] for case in REFUSED])
    def test_a_publish_is_refused(
        self, metastore: Metastore, _: str, error: type[WindrowError], words: str, parts: dict[str, Any]
    ) -> None:
        self._refuse(metastore, CommitKind.INGEST, error, words, parts)

    @pytest.mark.parametrize(("_", "error", "words", "parts"), UNMERGED, ids=[case[0] for case in UNMERGED])
    def test_a_merge_is_refused(
        self, metastore: Metastore, _: str, error: type[WindrowError], words: str, parts: dict[str, Any]
    ) -> None:
        self._refuse(metastore, CommitKind.COMPACT, error, words, parts)

    def _refuse(
        self, metastore: Metastore, kind: CommitKind, error: type[WindrowError], words: str, parts: dict[str, Any]
    ) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        begin(metastore, "e", table_id="table-2")
        metastore.publish("e", add=[a_split("e1", "e", scope=scope("table-2"))])
        add(metastore, "c1", *(a_split(name, "c1") for name in ("a1", "a2", "gone")), a_split("b1", "c1", 900))
        begin(metastore, "c2", CommitKind.EXPIRE)
        metastore.publish("c2", replace=["gone"])
        begin(metastore, "c9", kind)
        before = everything(metastore)
        with pytest.raises(error, match=words) as refused:
            metastore.publish("c9", checkpoint=Checkpoint("kafka", "1"), **parts)
        assert refused.value.outcome in {None, Outcome.NOT_COMMITTED}
        assert everything(metastore) == before
        assert metastore.publish("c9", replace=["a1", "a2"], add=[a_split("ok", "c9", 0, 20)]).version == 3

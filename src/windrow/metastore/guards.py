"""What a commit must satisfy before its splits may become visible; a violation refuses to publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from windrow.bounded import memo
from windrow.errors import Conflict, InvalidInput, InvariantViolation
from windrow.metastore.records import CommitKind
from windrow.model.invariants import require
from windrow.model.scope import CompactionScope
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.window import Window

__all__ = ["check_added", "check_conserved", "check_epoch", "check_id", "check_replaced", "check_table", "microseconds"]

_LONGEST_ID = 64
_LONGEST_SPLIT_ID = 128
_CENTURY = 100 * 366 * 86_400

_Group = tuple[CompactionScope, Window | None]


def check_id(what: str, value: str, longest: int = _LONGEST_ID) -> None:
    """An id is some printable characters: it stands in file names and in messages."""
    if not value or len(value) > longest or not value.isprintable():
        raise InvalidInput(f"{what} id {value[:200]!r}: expected 1 to {longest} printable characters")


def microseconds(what: str, seconds: float) -> int:
    """Return a time span as the metastore counts it."""
    if not 0 < seconds <= _CENTURY:
        raise InvalidInput(f"{what}: expected seconds above 0 and below a century, found {seconds!r}")
    return int(seconds * 1_000_000)


def check_added(commit_id: str, add: Sequence[SplitMetadata]) -> None:
    """Each added split is named once, belongs to the commit, has rows and lies in its own window."""
    ids = {split.split_id for split in add}
    if len(ids) != len(add):
        twice = Counter(split.split_id for split in add).most_common(1)[0][0]
        raise InvalidInput(f"split {twice} is added twice in one commit")
    for split in add:
        check_id("split", split.split_id, _LONGEST_SPLIT_ID)
        if split.commit_id != commit_id:
            raise InvalidInput(f"split {split.split_id} was written by commit {split.commit_id}, not by {commit_id}")
        if split.row_count <= 0:
            raise InvalidInput(f"split {split.split_id} has no rows; an empty file is not a split")
        if split.time_min is not None and split.time_max is not None and split.time_min > split.time_max:
            raise InvalidInput(
                f"split {split.split_id} has the time bounds {split.time_min} and {split.time_max}; turn them round"
            )
        _check_window(split)


def check_replaced(add: Sequence[SplitMetadata], replace: Collection[str]) -> None:
    """No split is replaced twice, or replaced by itself."""
    unique = set(replace)
    if len(unique) != len(replace):
        raise InvalidInput("a split is named twice among those to replace")
    both = unique.intersection(split.split_id for split in add)
    if both:
        raise InvalidInput(f"split {min(both)} cannot be added and replaced in one commit")


def check_table(add: Sequence[SplitMetadata], table_id: str) -> None:
    """Every split was written for this table."""
    for split in add:
        if split.scope.index_uid != table_id:
            raise InvariantViolation(
                "CS-1", f"split {split.split_id} was written for table {split.scope.index_uid}, not for {table_id}"
            )


def check_epoch(kind: CommitKind, add: Sequence[SplitMetadata], table: str, epoch: int) -> None:
    """New rows have the types of the newest schema epoch; a merge stays in the epoch of its inputs."""
    if kind is CommitKind.COMPACT:
        return
    for split in add:
        if split.scope.doc_mapping_uid != epoch:
            raise Conflict(
                f"table {table!r}: split {split.split_id} was written for schema epoch "
                f"{split.scope.doc_mapping_uid}, and the table is at epoch {epoch}: the type of a column was changed "
                "meanwhile. Nothing was published; bring the rows in again"
            )


def check_conserved(
    kind: CommitKind,
    add: Sequence[SplitMetadata],
    removed: Iterable[tuple[CompactionScope, Window | None, int]],
) -> None:
    """A merge keeps the rows of every window of every scope, and moves none between them.

    `removed` are scope, window and rows of what is replaced. A gathering moves rows from windows of all durations into
    the cold window that they lie in, where every other part of the scope is the same.
    """
    if kind is not CommitKind.COMPACT:
        return
    rows_in: Counter[_Group] = Counter()
    rows_out: Counter[_Group] = Counter()
    for split in add:
        if split.window is None:
            raise InvariantViolation("CS-1", f"split {split.split_id} has no window and cannot come from a merge")
        rows_out[(split.scope, split.window)] += split.row_count
    for scope, window, rows in removed:
        rows_in[_destination(scope, window, rows_out)] += rows
    strangers = [group for group in rows_out if group not in rows_in]
    if strangers:
        scope, window = strangers[0]
        raise InvariantViolation(
            "CS-2", f"a merge added {rows_out[strangers[0]]} rows to window {window} of {scope}, and took none from it"
        )
    for group, count in rows_in.items():
        require("MC-1", rows_in=count, rows_out=rows_out[group])


def _destination(scope: CompactionScope, window: Window | None, written: Collection[_Group]) -> _Group:
    """Where rows of a scope and window have to be after a merge: there, or in a cold window that holds it."""
    if (scope, window) in written:
        return scope, window
    cold = [(into, place) for into, place in written if place is not None and place.is_cold]
    for into, place in cold:
        inside = window is not None and place.holds(window)
        if inside and into == replace(scope, window_duration=place.duration):
            return into, place
    for into, place in cold if len(written) == 1 else ():
        require("CW-2", cold=place, windows=[window], scopes=[scope, into])
    return scope, window


def _check_window(split: SplitMetadata) -> None:
    window, scope = split.window, split.scope
    if window is None:
        if scope.sort_schema or scope.window_duration:
            raise InvalidInput(f"split {split.split_id} has no window, but a sort schema or a window duration")
        return
    if window.duration != scope.window_duration:
        raise InvariantViolation(
            "CS-1",
            f"split {split.split_id} lies in a window of {window.duration} s, its scope says {scope.window_duration} s",
        )
    if window.is_cold:
        require("CW-1", start=window.start, duration=window.duration)
    require(
        "TW-1",
        window=window,
        time_min_us=split.time_min,
        time_max_us=split.time_max,
        null_timestamps=split.row_count if window.overflow else 0,
    )
    columns = _column_count(scope.sort_schema)
    if len(split.zones) != columns:
        raise InvalidInput(
            f"split {split.split_id} has {len(split.zones)} zone maps for the {columns} columns of {scope.sort_schema}"
        )


@memo("widths of sort schemas", 256)
def _column_count(sort_schema: str) -> int:
    schema = SortSchema.parse(sort_schema)
    if schema.canonical() != sort_schema:
        raise InvalidInput(f"the scope's sort schema {sort_schema} is not canonical; write {schema.canonical()}")
    return len(schema.column_names)

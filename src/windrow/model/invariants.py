"""The rules of a table, each with an id, a sentence and a check of evidence.

They are checked where data is about to become visible: a violation refuses to publish. A check takes its evidence by
keyword and returns None when the rule holds, else a sentence that says what is wrong.

A file that was registered as it is has no window: no window rule binds it, and it is never merged. The overflow window
of points without a timestamp has no place in time, so that no start time keeps it from being merged.

A gathering is the one merge that takes splits of several windows: of those that lie in one cold window, into that. Its
rules are CW; of those of other merges, CS-1 to CS-2 and TW-3 are replaced by them, and all others hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput, InvariantViolation
from windrow.model.ordering import steps_back
from windrow.model.points import is_text
from windrow.model.scope import CompactionScope
from windrow.model.sort_schema import Direction, SortSchema
from windrow.model.timeseries import TIMESERIES_ID, timeseries_ids
from windrow.model.widening import widened
from windrow.model.window import Window, cold_duration, window_duration

__all__ = ["INVARIANTS", "Invariant", "require"]

Check = Callable[..., str | None]


@dataclass(frozen=True, slots=True)
class Invariant:
    """One rule."""

    id: str
    sentence: str
    check: Check
    """Takes evidence by keyword; returns None when the rule holds, else a sentence with what is wrong."""


_registry: dict[str, Invariant] = {}

INVARIANTS: Mapping[str, Invariant] = MappingProxyType(_registry)
"""Every rule by its id."""


def require(invariant: str, /, **evidence: Any) -> None:
    """Raise an InvariantViolation unless the evidence shows that the rule holds."""
    if invariant not in INVARIANTS:
        raise InvalidInput(f"{invariant!r} is no invariant; use one of {', '.join(INVARIANTS)}")
    found = INVARIANTS[invariant].check(**evidence)
    if found is not None:
        raise InvariantViolation(invariant, found)


def _rule(identifier: str, sentence: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        _registry[identifier] = Invariant(identifier, sentence, check)
        return check

    return register


# Data model


@_rule("DM-1", "Every row is one point, and what a point needs is set.")
def _points_are_complete(*, table: pa.Table, required: Sequence[str]) -> str | None:
    for name in required:
        if name not in table.column_names:
            return f"column {name!r} is missing"
        if table.column(name).null_count:
            return f"column {name!r} is null in {table.column(name).null_count} of {table.num_rows} rows"
    return None


@_rule("DM-2", "Every accepted point is kept: a later one of the same series and time neither replaces nor joins it.")
def _no_point_is_lost(*, points_accepted: int, points_written: int) -> str | None:
    lost = points_accepted - points_written
    return f"{lost} of {points_accepted} accepted points were not written" if lost > 0 else None


@_rule("DM-3", "Every stored point was received: none is interpolated or made up.")
def _no_point_is_made_up(*, points_accepted: int, points_written: int) -> str | None:
    added = points_written - points_accepted
    return f"{added} points were written beyond the {points_accepted} accepted ones" if added > 0 else None


@_rule("DM-4", "The id of a series follows from its metric's name and type and its tags alone.")
def _series_ids_are_derived(*, table: pa.Table, tags: Sequence[str], residual: str | None = None) -> str | None:
    if TIMESERIES_ID not in table.column_names:
        return f"column {TIMESERIES_ID!r} is missing"
    stored = table.column(TIMESERIES_ID)
    same = pc.fill_null(pc.equal(stored, timeseries_ids(table, tags=tags, residual=residual)), False)
    row = pc.index(same, False).as_py()
    return None if row < 0 else f"row {row} has the {TIMESERIES_ID} {stored[row]}, which its tags do not give"


@_rule("DM-5", "Merging changes no series id.")
def _series_ids_survive(*, ids_in: Any, ids_out: Any) -> str | None:
    before, after = _rows_by_series(ids_in), _rows_by_series(ids_out)
    for series in sorted(before.keys() | after.keys()):
        rows_in, rows_out = before.get(series, 0), after.get(series, 0)
        if rows_in != rows_out:
            return f"series {series} has {rows_in} rows before and {rows_out} after the merge"
    return None


def _rows_by_series(ids: Any) -> dict[int, int]:
    series, counts = np.unique(np.asarray(ids), return_counts=True)
    return dict(zip(series.tolist(), counts.tolist(), strict=True))


# Sort schema


@_rule("SS-1", "The rows of a split are sorted by the sort schema of the split.")
def _rows_are_sorted(*, table: pa.Table, schema: SortSchema) -> str | None:
    unsorted = [(int(rows[0]), column.name) for column, rows in steps_back(table, schema) if rows.size]
    if not unsorted:
        return None
    row, name = min(unsorted)
    return f"by {schema}, row {row} must come before the row ahead of it, because of column {name!r}"


@_rule("SS-2", "A null is greater than any value: last in an ascending, first in a descending sort column.")
def _nulls_are_greatest(*, table: pa.Table, schema: SortSchema) -> str | None:
    for column, rows in steps_back(table, schema):
        null = np.asarray(pc.is_null(table.column(column.name)))
        wrong = rows[null[rows] | null[rows - 1]]
        if wrong.size:
            place = "last" if column.direction is Direction.ASCENDING else "first"
            return f"nulls of column {column.name!r} are not {place} at row {wrong[0]}"
    return None


@_rule("SS-3", "A sort column that a file lacks is null in all of its rows.")
def _missing_columns_are_null(
    *, schema: SortSchema, file_columns: Collection[str], null_counts: Mapping[str, int], row_count: int
) -> str | None:
    for column in schema.columns:
        nulls = null_counts.get(column.name, 0)
        if column.name not in file_columns and nulls != row_count:
            return f"the file lacks column {column.name!r}, but {nulls} nulls are stated for {row_count} rows"
    return None


@_rule("SS-4", "The sort schema of a written split never changes.")
def _schema_stays(*, schema_before: SortSchema | str, schema_after: SortSchema | str) -> str | None:
    before, after = str(schema_before), str(schema_after)
    return None if before == after else f"the split was written as {before} and would become {after}"


@_rule("SS-5", "Metastore, key-value metadata and sorting columns of a split state the same sort schema.")
def _schema_is_stated_alike(
    *,
    metastore: str,
    key_value: str,
    sorting_columns: Sequence[tuple[str, bool, bool]],
    file_columns: Collection[str],
) -> str | None:
    """Sorting columns are (name, descending, nulls first) of the footer, which has none for what the file lacks."""
    if metastore != key_value:
        return f"the metastore says {metastore!r}, the file's key-value metadata {key_value!r}"
    columns = [column for column in SortSchema.parse(metastore).columns if column.name in file_columns]
    descending = [column.direction is Direction.DESCENDING for column in columns]
    expected = [(column.name, down, down) for column, down in zip(columns, descending, strict=True)]
    found = [tuple(column) for column in sorting_columns]
    return None if found == expected else f"the footer's sorting columns are {found}, {metastore} asks for {expected}"


# Time windows


@_rule("TW-1", "Every split belongs to exactly one time window.")
def _one_window(
    *,
    window: Window | None,
    time_min_us: int | None,
    time_max_us: int | None,
    null_timestamps: int,
) -> str | None:
    if window is None:
        return None
    if window.overflow:
        return None if time_min_us is None else "points with a timestamp lie in the overflow window"
    if null_timestamps:
        return f"{null_timestamps} points without a timestamp lie in window {window}"
    if time_min_us is None or time_max_us is None:
        return None
    if window.start * 10**6 <= time_min_us and time_max_us < window.end * 10**6:
        return None
    return f"points from {time_min_us} to {time_max_us} microseconds do not all lie in window {window}"


@_rule("TW-2", "The duration of a window divides an hour evenly.")
def _duration_divides_an_hour(*, duration: int) -> str | None:
    try:
        window_duration(duration)
    except InvalidInput as error:
        return str(error)
    return None


@_rule("TW-3", "Points never move to another window by being merged.")
def _windows_stay(*, windows_in: Iterable[Window | None], windows_out: Iterable[Window | None]) -> str | None:
    before, after = set(windows_in), set(windows_out)
    if len(before) <= 1 and after <= before:
        return None
    return f"a merge of {_listed(before)} gives {_listed(after)}"


# Compaction scope


@_rule("CS-1", "Only splits of the same compatibility scope are merged.")
def _one_scope(*, scopes: Iterable[Hashable]) -> str | None:
    found = set(scopes)
    return None if len(found) <= 1 else f"splits of {len(found)} scopes would be merged: {_listed(found)}"


@_rule("CS-2", "Only splits of the same window are merged; a split without a window never is.")
def _one_window_start(*, windows: Iterable[Window | None]) -> str | None:
    found = {None if window is None else (window.start, window.overflow): window for window in windows}
    if len(found) <= 1 and None not in found:
        return None
    return f"splits of these windows would be merged: {_listed(found.values())}"


@_rule("CS-3", "No split before the compaction start time is merged.")
def _after_compaction_start(*, window: Window | None, compaction_start_time: int) -> str | None:
    if window is None:
        return "a split without a window would be merged"
    if window.overflow or window.start >= compaction_start_time:
        return None
    return f"window {window} starts at {window.start}, before the compaction start time {compaction_start_time}"


# Cold windows


@_rule("CW-1", "A cold window lasts whole hours, two to a week of them, and starts at a multiple of its duration.")
def _cold_windows_are_aligned(*, start: int, duration: int) -> str | None:
    try:
        cold_duration(duration)
    except InvalidInput as error:
        return str(error)
    return f"a window of {duration} s starts at {start}" if start % duration else None


@_rule(
    "CW-2",
    "A gathering takes splits that are equal in all of their scope but the duration, of windows that lie in the one "
    "cold window that it writes.",
)
def _gathered_from_inside(
    *,
    cold: Window,
    windows: Iterable[Window | None],
    scopes: Iterable[CompactionScope],
) -> str | None:
    """Scopes and windows are those of the splits that are taken."""
    if cold.overflow or not cold.is_cold:
        return f"{cold} is no cold window"
    others = {replace(scope, window_duration=cold.duration) for scope in scopes}
    if len(others) > 1:
        return f"splits of {len(others)} scopes would be gathered: {_listed(others)}"
    outside = [window for window in set(windows) if window is None or not cold.holds(window)]
    return f"splits of {_listed(outside)} would be gathered into {cold}" if outside else None


@_rule("CW-3", "Only a cold window that is closed is gathered, or written into by ingest.")
def _gathered_when_closed(*, cold: Window, closed_before: int) -> str | None:
    """`closed_before` is the second up to which no late points are accepted any more."""
    if cold.end <= closed_before:
        return None
    return f"{cold} ends at {cold.end}, and late points are accepted from {closed_before} on"


# Merge correctness


@_rule("MC-1", "A merge neither adds nor drops rows.")
def _same_rows(*, rows_in: int, rows_out: int) -> str | None:
    return None if rows_in == rows_out else f"{rows_in} rows went in, {rows_out} came out"


@_rule("MC-2", "A merge changes no value of any row.")
def _same_contents(*, content_hash_in: Hashable, content_hash_out: Hashable, column: str | None = None) -> str | None:
    if content_hash_in == content_hash_out:
        return None
    where = "" if column is None else f"column {column!r}: "
    return f"{where}the rows that went in hash to {content_hash_in}, those that came out to {content_hash_out}"


@_rule("MC-3", "The output of a merge is sorted by the sort schema of its inputs.")
def _output_is_sorted(*, table: pa.Table, schema: SortSchema) -> str | None:
    return _rows_are_sorted(table=table, schema=schema)


@_rule(
    "MC-4",
    "The output of a merge has every column of its inputs, of a type that holds the values of all of them exactly.",
)
def _columns_are_united(*, schemas_in: Iterable[pa.Schema], schema_out: pa.Schema) -> str | None:
    united: dict[str, pa.DataType] = {}
    for field in (field for schema in schemas_in for field in schema):
        before = united.setdefault(field.name, field.type)
        kind = widened(before, field.type)
        if kind is None:
            return f"column {field.name!r} is {_family(before)} in one input and {_family(field.type)} in another"
        united[field.name] = kind
    known = {name: _family(kind) for name, kind in united.items()}
    output = {field.name: _family(field.type) for field in schema_out}
    for name in sorted(known.keys() | output.keys()):
        if known.get(name) != output.get(name):
            return f"column {name!r} is {known.get(name, 'absent')} in the inputs, {output.get(name, 'absent')} after"
    return None


def _family(kind: pa.DataType) -> str:
    """Return one name for the ways in which Arrow holds text or bytes, else the name of the type."""
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if is_text(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return "bytes"
    return str(kind)


def _listed(values: Iterable[object]) -> str:
    return ", ".join(sorted("no window" if value is None else str(value) for value in values))

"""The steps of ingest over Arrow tables: pure, so that any runner can run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.ingest.attributes import RESIDUAL, has_residual, series_tags
from windrow.model.names import name_problems
from windrow.model.ordering import dictionary_codes, packed_keys
from windrow.model.points import check_point_schema, tag_columns
from windrow.model.settings import TableSettings
from windrow.model.timeseries import TIMESERIES_ID, partition_ids, timeseries_ids
from windrow.model.widening import stored
from windrow.model.window import Window, window_starts
from windrow.splits.sorting import order_of
from windrow.splits.texts import coded

__all__ = ["SAVED_FILES", "add_timeseries_id", "check_rows", "cut", "grouped", "tags_of", "written_schema"]

SAVED_FILES = 8
"""A batch goes to cold windows where that makes so many files fewer: a handful of them is compaction's to gather."""
_FEW = 1 << 20
_WORD = 64


def check_rows(schema: pa.Schema, settings: TableSettings) -> None:
    """Refuse rows that cannot be points of the table."""
    check_point_schema(
        schema, signal=settings.signal, timestamp=settings.timestamp, timestamp_unit=settings.timestamp_unit
    )
    missing = [name for name in settings.partition_by if name not in schema.names]
    if missing:
        raise InvalidInput(
            f"the rows lack the tenant column {missing[0]!r} that the table is partitioned by; add it, or change "
            "partition_by if the name is wrong"
        )


def written_schema(schema: pa.Schema, settings: TableSettings) -> pa.Schema:
    """Return the columns that a split of these rows will have: times in the table's unit, and the series id."""
    schema = pa.schema([(each.name, stored(each.type, settings.timestamp_precision)) for each in schema])
    if not _wants_series(settings) or TIMESERIES_ID in schema.names:
        return schema
    written = schema.append(pa.field(TIMESERIES_ID, pa.int64()))
    for problem in name_problems(written.names):
        raise InvalidInput(f"the column of series ids joins the rows: {problem}")
    return written


def add_timeseries_id(rows: pa.Table, settings: TableSettings) -> pa.Table:
    """Add the series id when the sort schema names it and the rows do not bring their own."""
    if not _wants_series(settings) or TIMESERIES_ID in rows.column_names:
        return rows
    residual = RESIDUAL if has_residual(rows.schema) else None
    return rows.append_column(TIMESERIES_ID, timeseries_ids(rows, tags=tags_of(rows, settings), residual=residual))


def tags_of(rows: pa.Table, settings: TableSettings) -> tuple[str, ...]:
    """Return the names of what tells the series of these rows apart, as columns or in the residual column.

    Rows with a residual column are points of OpenTelemetry, of which unit, description and temporality are no tags.
    """
    if settings.tags is None and has_residual(rows.schema):
        return series_tags(rows)
    return tag_columns(rows.schema, declared=settings.tags, timestamp=settings.timestamp, signal=settings.signal)


def cut(
    rows: pa.Table, settings: TableSettings, closed_before: int | None = None
) -> Iterator[tuple[int, Window, pa.Table]]:
    """Yield the rows of each tenant and window apart, sorted; rows without a timestamp go to the overflow window.

    All rows are ordered at once, by tenant and window first, and moved once.
    """
    rows = coded(rows)
    return grouped(rows, settings, packed_keys(rows, settings.sort), closed_before)


def grouped(
    rows: pa.Table,
    settings: TableSettings,
    keys: Sequence[npt.NDArray[np.uint64]] = (),
    closed_before: int | None = None,
) -> Iterator[tuple[int, Window, pa.Table]]:
    """Yield the rows of each tenant and window apart, in the order of keys, the most significant first.

    `closed_before` is the second before which no late points are accepted: rows of a cold window that ends by then, if
    they are of several windows, are of the cold one where that saves files. Without it, there are no cold windows.
    """
    starts, is_null = window_starts(rows[settings.timestamp], settings.window, unit=settings.timestamp_unit)
    tenants = partition_ids(rows, settings.partition_by)
    is_cold = _gathered(starts, is_null, tenants, settings, closed_before)
    cold = settings.gathers_into or settings.window
    starts = np.where(is_cold, starts // cold * cold, starts)
    groups = _groups(tenants, is_null, is_cold, starts // settings.window)
    order = order_of(_packed(groups.astype(np.uint64), keys))
    ends = np.cumsum(np.bincount(groups))
    rows = rows.take(pa.array(order))
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True) if len(order) else ():
        first = order[start]
        window = Window(int(starts[first]), cold if is_cold[first] else settings.window, overflow=bool(is_null[first]))
        yield int(tenants[first]), window, rows.slice(start, end - start)


def _gathered(
    starts: npt.NDArray[np.int64],
    is_null: npt.NDArray[np.bool_],
    tenants: npt.NDArray[Any],
    settings: TableSettings,
    closed_before: int | None,
) -> npt.NDArray[np.bool_]:
    """Return which rows go to a cold window: those of several windows of one that is closed, where it saves files."""
    is_cold = np.zeros(len(starts), np.bool_)
    duration = settings.gathers_into
    if duration is None or closed_before is None or not len(starts):
        return is_cold
    places = starts // duration
    # No window that a start time cuts in two, and none whose start 64 bits do not hold.
    cut_at = settings.compaction_start_time // duration if settings.compaction_start_time % duration else None
    is_old = ~is_null & (places < closed_before // duration) & (places > -(2**63) // duration)
    is_old &= True if cut_at is None else places != cut_at
    if not is_old.any():
        return is_cold
    codes = _groups(tenants, is_old, np.where(is_old, places, 0))
    first = np.empty(int(codes.max()) + 1, np.int64)
    first[codes[::-1]] = starts[::-1]
    has_several = np.zeros(len(first), np.bool_)
    has_several[codes[starts != first[codes]]] = True
    is_cold = is_old & has_several[codes]
    windows = np.bincount(_groups(tenants, starts // settings.window)[is_cold])
    saved = np.count_nonzero(windows) - np.count_nonzero(np.bincount(codes[is_cold]))
    return is_cold if saved >= SAVED_FILES else np.zeros(len(starts), np.bool_)


def _groups(*keys: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return a number from 0 on for each distinct row of the keys, without gaps."""
    groups = np.zeros(len(keys[0]), np.int64)
    for key in keys:
        if len(key) and (key != key[0]).any():
            codes, count = _numbered(key)
            groups = _numbered(groups * count + codes)[0]
    return groups


def _numbered(key: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], int]:
    """Return a number from 0 on for each distinct value of a key, without gaps, and how many there are."""
    least = int(key.min())
    if int(key.max()) - least < _FEW:
        places = key.astype(np.int64) - least
        used = np.bincount(places) > 0
        return (np.cumsum(used) - 1)[places], int(np.count_nonzero(used))
    codes, distinct = dictionary_codes(pa.chunked_array([pa.array(key)]))
    return codes, len(distinct)


def _packed(groups: npt.NDArray[np.uint64], keys: Sequence[npt.NDArray[np.uint64]]) -> Sequence[npt.NDArray[np.uint64]]:
    """Return the groups as the most significant key, in one with the first of the others where both fit 64 bits."""
    if keys and len(groups):
        bits = int(keys[0].max()).bit_length()
        if bits + int(groups.max()).bit_length() < _WORD:
            return [(groups << np.uint64(bits)) | keys[0], *keys[1:]]
    return [groups, *keys]


def _wants_series(settings: TableSettings) -> bool:
    return TIMESERIES_ID in settings.sort.column_names

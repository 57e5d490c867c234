"""Binary search for row groups by time, in files whose row groups follow each other in time.

QuestDB marks the column by which its row groups are ordered, always ascending. Windrow's own splits are sorted as a
whole, ascending or descending, so the first sorting column orders their row groups too. Other files may be sorted
inside of each row group alone, whatever they declare.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from windrow.parquet.schema import PhysicalType
from windrow.pruning.selection import Selection
from windrow.sidecar import layout
from windrow.sidecar.flat_columns import FlatColumn
from windrow.sidecar.layout import ColumnFlag, Side
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.types import DESIGNATED_DESCENDING, is_designated

__all__ = ["row_groups_in_time"]

_OWN = "windrow version"
"""Our writers call themselves so; each refuses rows that are not sorted."""


class _TimeOrder(NamedTuple):
    """The column by which row groups are ordered."""

    position: int
    descending: bool


def row_groups_in_time(
    sidecar: Sidecar, columns: Mapping[str, FlatColumn], required: Sequence[Selection]
) -> range | None:
    """The row groups in the requested range of time; None where they are not ordered by it."""
    order = None if sidecar.spans_files else _questdb_order(sidecar) or _own_order(sidecar)
    if order is None:
        return None
    names = [
        name for name, column in columns.items() if column.position == order.position and column.type.dtype == "int64"
    ]
    start, stop = 0, sidecar.row_group_count
    for selection in required:
        if selection.column in names and len(selection.cuts):
            low = None if selection.selected[0] else int(selection.cuts[0])
            high = None if selection.selected[-1] else int(selection.cuts[-1])
            first, end = _search_range(sidecar, order, low, high)
            start, stop = max(start, first), min(stop, end)
    return range(start, max(start, stop))


def _questdb_order(sidecar: Sidecar) -> _TimeOrder | None:
    position = sidecar.designated_timestamp
    if position is None or sidecar.sorting[:1] != (position,):
        return None
    _, _, code, flags, _, _, physical_type, _, _, _ = sidecar.descriptor(position)
    ascending = not (code & DESIGNATED_DESCENDING or flags & ColumnFlag.DESCENDING)
    if not is_designated(code) or not ascending or physical_type != PhysicalType.INT64:
        return None
    return _TimeOrder(position, descending=False)


def _own_order(sidecar: Sidecar) -> _TimeOrder | None:
    if not sidecar.sorting:
        return None
    position = sidecar.sorting[0]
    _, _, _, flags, _, _, physical_type, _, _, _ = sidecar.descriptor(position)
    if physical_type != PhysicalType.INT64 or not (sidecar.extensions.created_by or "").startswith(_OWN):
        return None
    return _TimeOrder(position, bool(flags & ColumnFlag.DESCENDING))


def _search_range(sidecar: Sidecar, order: _TimeOrder, low: int | None, high: int | None) -> tuple[int, int]:
    """The row groups that can hold a time from `low` on and below `high`; all of them where a bound is missing."""
    count = sidecar.row_group_count
    from_low = None if low is None else _search(sidecar, order, low, layout.MAXIMUM)
    to_high = None if high is None else _search(sidecar, order, high, layout.MINIMUM)
    first, end = (to_high, from_low) if order.descending else (from_low, to_high)
    return first or 0, count if end is None else end


def _search(sidecar: Sidecar, order: _TimeOrder, value: int, side: Side) -> int | None:
    """The first row group whose bound is not below a value, or is below it in descending order.

    None when a bound is missing on the way.
    """
    form = (side.present | side.inlined) << 16 | layout.LONGEST_INLINE << 24 + side.size_shift
    mask = (side.present | side.inlined) << 16 | 0xF << 24 + side.size_shift
    first, complete = 1 + order.position * layout.CHUNK_WORDS, True
    sign = -1 if order.descending else 1

    def bound(row_group: int) -> int:
        nonlocal complete
        record = int(sidecar.entries[row_group]) + first
        complete &= int(sidecar.words[record]) & mask == form
        return sign * int(sidecar.words[record + side.word].view(np.int64))

    bisect = bisect_right if order.descending else bisect_left
    first_fit = bisect(range(sidecar.row_group_count), sign * value, key=bound)
    return first_fit if complete else None

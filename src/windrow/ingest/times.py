"""Times of a batch in the unit of the table's column: finer ones are cut down, those out of range are named."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow.model.window import TICKS_PER_SECOND

__all__ = ["Times", "in_unit", "range_of", "uncountable"]

_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, which calendars of every reader have."""
_MOST = 2**63 - 1
_DAY_US = 86_400 * 10**6


@dataclass(frozen=True, slots=True)
class Times:
    """A column in another unit."""

    values: pa.ChunkedArray
    """Null where a time is out of range."""
    cut: pa.ChunkedArray | None = None
    """Which rows lost digits; None where none did."""
    outside: pa.ChunkedArray | None = None
    """Which rows are out of range; None where none is."""


def range_of(kind: pa.TimestampType) -> str:
    """Say which years a column of times can hold."""
    return "the years 1677 to 2262, which nanoseconds can count" if kind.unit == "ns" else "the years 1 to 9999"


def in_unit(column: pa.ChunkedArray, kind: pa.TimestampType) -> Times:
    """Return times in the unit of a type."""
    outside = _outside(column, kind)
    if outside is not None:
        column = pc.if_else(outside, pa.scalar(None, column.type), column)
    if column.type == kind:
        return Times(column, None, outside)
    try:
        return Times(column.cast(kind), None, outside)
    except pa.ArrowInvalid:  # digits would be lost
        whole = column.cast(kind, safe=False)
    # Arrow cuts towards zero, so that times before 1970 may have become later ones.
    back = whole.cast(column.type)
    later = pc.greater(back, column)
    if pc.any(later).as_py():
        counts = pc.subtract(whole.cast(pa.int64()), later.cast(pa.int64()))
        whole = counts.cast(kind)
    return Times(whole, pc.not_equal(back, column), outside)


def uncountable(column: pa.ChunkedArray, unit: str | None) -> pa.ChunkedArray | None:
    """Return which dates, or integers that count a unit, 64 bits of microseconds cannot tell; None where none is."""
    first, last = -(2**63), 2**63 - 1
    if pa.types.is_date32(column.type):
        counts, low, high = column.cast(pa.int32()), -(-first // _DAY_US), last // _DAY_US
    else:
        is_date = pa.types.is_date64(column.type)
        counts = column.cast(pa.int64()) if is_date else column
        per_second = TICKS_PER_SECOND["ms" if is_date else unit or "ns"]
        low, high = -(-first * per_second // 10**6), ((last + 1) * per_second - 1) // 10**6
        low, high = max(low, first), min(high, last)
    bounds = pc.min_max(counts).as_py()
    if bounds["min"] is None or (low <= bounds["min"] and bounds["max"] <= high):
        return None
    masks = []
    if bounds["min"] < low:
        masks.append(pc.less(counts, pa.scalar(low, counts.type)))
    if bounds["max"] > high:
        masks.append(pc.greater(counts, pa.scalar(high, counts.type)))
    return pc.fill_null(pc.or_(masks[0], masks[-1]), fill_value=False)


def _outside(column: pa.ChunkedArray, kind: pa.TimestampType) -> pa.ChunkedArray | None:
    """Return which times a type cannot hold; None where it holds all, which bounds tell."""
    per_second, wanted = TICKS_PER_SECOND[column.type.unit], TICKS_PER_SECOND[kind.unit]
    if kind.unit == "ns":
        high = _MOST * per_second // wanted
        low = -high
    else:
        low, high = _FIRST_SECOND * per_second, (_LAST_SECOND + 1) * per_second - 1
    low, high = max(low, -_MOST), min(high, _MOST)
    counts = column.cast(pa.int64())
    bounds = pc.min_max(counts).as_py()
    if bounds["min"] is None or (low <= bounds["min"] and bounds["max"] <= high):
        return None
    return pc.fill_null(pc.or_(pc.less(counts, low), pc.greater(counts, high)), fill_value=False)

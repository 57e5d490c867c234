"""Zone maps, computed once, from the rows that are about to be written."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.model.sort_schema import SortSchema
from windrow.model.zones import NULL, ColumnZone, SortColumnValue

__all__ = ["column_zone", "zone_maps"]

_TEXT_LENGTH = 64
_REGEX_LENGTH = 512
_TICKS_IN_MICROSECOND = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}


def zone_maps(table: pa.Table, schema: SortSchema) -> tuple[ColumnZone, ...]:
    """Return one zone for each schema column, in order; a column that the rows lack is null."""
    return tuple(
        column_zone(table[name]) if name in table.column_names else ColumnZone(NULL, NULL, table.num_rows)
        for name in schema.column_names
    )


def column_zone(column: pa.ChunkedArray) -> ColumnZone:
    """Return the bounds of a column. Types that have none here give bounds that prove nothing."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind, nulls = column.type, column.null_count
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _text_zone(column, nulls)
    numbers = _as_numbers(column)
    if numbers is None:
        return ColumnZone(NULL, NULL, nulls)
    bounds = pc.min_max(numbers).as_py()
    return ColumnZone(SortColumnValue.of(bounds["min"]), SortColumnValue.of(bounds["max"]), nulls)


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column as numbers in zone units (times are microseconds, rounded down), or None."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        times, over = _TICKS_IN_MICROSECOND[kind.unit]
        ticks = column.cast(pa.int64())
        return _floor_divide(ticks, over) if over > 1 else pc.multiply_checked(ticks, times)
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us")).cast(pa.int64())
    if pa.types.is_boolean(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        values = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    return column if pa.types.is_integer(kind) else None


def _floor_divide(ticks: pa.ChunkedArray, by: int) -> pa.ChunkedArray:
    """Arrow divides towards zero; times before the epoch must go down."""
    quotient = pc.divide(ticks, by)
    rounded_up = pc.greater(pc.multiply(quotient, by), ticks)
    return pc.subtract(quotient, rounded_up.cast(pa.int64()))


def _text_zone(column: pa.ChunkedArray, nulls: int) -> ColumnZone:
    values = pc.drop_null(pc.unique(column.cast(pa.large_string()))).to_pylist()
    if not values:
        return ColumnZone(NULL, NULL, nulls)
    low = SortColumnValue.of(min(values)[:_TEXT_LENGTH])
    high = _shortened_upwards(max(values))
    return ColumnZone(low, high, nulls, _regex(values)) if high is not None else ColumnZone(NULL, NULL, nulls)


def _shortened_upwards(text: str) -> SortColumnValue | None:
    """Return a short bound that is not below the text; None when there is none."""
    if len(text) <= _TEXT_LENGTH:
        return SortColumnValue.of(text)
    for place in range(_TEXT_LENGTH - 1, -1, -1):
        following = ord(text[place]) + 1
        # The code points of surrogates are no characters.
        following = 0xE000 if 0xD800 <= following <= 0xDFFF else following
        if following <= 0x10FFFF:
            return SortColumnValue.of(text[:place] + chr(following))
    return None


def _regex(values: list[Any]) -> str | None:
    """Return an expression that matches exactly the distinct values, or None when it would be long."""
    if sum(map(len, values)) > _REGEX_LENGTH:
        return None
    text = "|".join(re.escape(value) for value in sorted(values))
    return f"(?s)(?:{text})" if len(text) <= 2 * _REGEX_LENGTH else None

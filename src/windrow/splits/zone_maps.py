"""Zone maps, computed once, from the rows that are about to be written.

Text is looked at by its distinct values only, so that long runs of one value cost next to nothing.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.model.column_types import TypeRecord, type_of
from windrow.model.numbers import to_arrow
from windrow.model.ordering import dictionary_codes
from windrow.model.points import is_text
from windrow.model.sort_schema import SortSchema
from windrow.model.zones import NULL, ColumnZone, SortColumnValue
from windrow.splits.regexes import DEEPEST, superset_regex

__all__ = ["column_zone", "zone_maps"]

_TEXT_LENGTH = 64
_MANY = 5000


def zone_maps(table: pa.Table, schema: SortSchema) -> tuple[ColumnZone, ...]:
    """Return one zone for each schema column, in order; a column that the rows lack is null."""
    return tuple(
        column_zone(table[name]) if name in table.column_names else ColumnZone(NULL, NULL, table.num_rows)
        for name in schema.column_names
    )


def column_zone(column: pa.ChunkedArray) -> ColumnZone:
    """Return the bounds of a column. Types that have none here give bounds that prove nothing."""
    if is_text(column.type):
        return _text_zone(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    record = type_of(column.type)
    if record.zone_numbers is None:
        return ColumnZone(NULL, NULL, column.null_count)
    low, high = (_bound(end, record) for end in pc.min_max(record.zone_numbers(column)).as_py().values())
    return ColumnZone(low, high, column.null_count)


def _bound(value: Any, record: TypeRecord) -> SortColumnValue:
    """Return a bound in zone units: times are microseconds, rounded down."""
    units, numbers = record.zone_unit
    return SortColumnValue.of(value if units == numbers or value is None else value * units // numbers)


def _text_zone(column: pa.ChunkedArray) -> ColumnZone:
    distinct, nulls = _distinct_texts(column)
    low, high = pc.min_max(distinct).as_py().values()
    upper_bound = None if high is None else _shortened_upwards(high)
    if upper_bound is None:
        return ColumnZone(NULL, NULL, nulls)
    heads, depth = _heads(distinct, _shared_length(low[:DEEPEST], high[:DEEPEST]))
    regex = _regex(tuple(heads.to_pylist()), depth)
    return ColumnZone(SortColumnValue.of(low[:_TEXT_LENGTH]), upper_bound, nulls, regex)


@lru_cache(maxsize=64)
def _regex(values: tuple[str, ...], depth: int) -> str | None:
    """Return the expression of values; splits of one task often have the same ones."""
    return superset_regex(values, deepest=depth)


def _shared_length(low: str, high: str) -> int:
    """Return how many characters all values share that lie between these two."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(low, high, strict=False)))


def _heads(distinct: pa.Array, shared: int) -> tuple[pa.Array, int]:
    """Return what an expression must see of the values, and how deep it may look.

    Of many values it sees only so much behind the `shared` characters that few heads differ: it cannot follow more.
    """
    depths = [min(shared + 2**power, DEEPEST) for power in range(8)] if len(distinct) > _MANY else [DEEPEST]
    best = distinct, 0
    for depth in depths:
        heads = pc.unique(pc.utf8_slice_codeunits(distinct, 0, depth + 1))
        if len(heads) > _MANY and best[1]:
            break
        best = heads, depth
    return best


def _distinct_texts(column: pa.ChunkedArray) -> tuple[pa.Array, int]:
    """Return each value once, in any order, and how many rows have none."""
    if not pa.types.is_dictionary(column.type):
        plain = column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column
        return pc.unique(plain).drop_null(), column.null_count
    codes, values = dictionary_codes(column)
    rows = np.bincount(codes, minlength=len(values) + 1)[:-1]
    rows[np.asarray(pc.is_null(values))] = 0
    return values.filter(to_arrow(rows > 0)).cast(pa.large_string()), len(codes) - int(rows.sum())


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

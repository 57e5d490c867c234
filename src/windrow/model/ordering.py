"""The order of rows, vectorised for Arrow tables.

A null is greater than any value: last ascending, first descending. NaN is greater than any number and less than null;
-0.0 equals 0.0; strings and bytes compare bytewise, False is less than True, a time without a zone is UTC. A sort
column that a row or a table lacks is null.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput
from windrow.model.numbers import longs, validity
from windrow.model.sort_schema import Direction, SortColumn, SortSchema

__all__ = [
    "comparable",
    "dictionary_codes",
    "encoded",
    "first_unsorted_row",
    "is_sorted",
    "packed_keys",
    "sort_indices",
    "steps_back",
]

_VALUE, _NAN, _NULL = 0, 1, 2
_NARROW = 32


def comparable(value: object) -> tuple[int, Any]:
    """Return what stands for a value in comparisons: with it, Python's `<` and `==` follow the order of this module."""
    if value is None:
        return _NULL, None
    if (isinstance(value, float) and math.isnan(value)) or (isinstance(value, Decimal) and value.is_nan()):
        return _NAN, None
    if isinstance(value, datetime):
        return _VALUE, value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return _VALUE, datetime(value.year, value.month, value.day, tzinfo=UTC)
    # Python compares strings by code point, which is the order of their UTF-8 bytes.
    return _VALUE, value


def sort_indices(table: pa.Table, schema: SortSchema) -> npt.NDArray[np.int64]:
    """Return the rows of the table in the order of the schema; rows that tie keep their order."""
    keys = packed_keys(table, schema)
    # lexsort takes the most significant key last
    return np.lexsort(keys[::-1]) if keys else np.arange(table.num_rows)


def packed_keys(table: pa.Table, schema: SortSchema) -> list[npt.NDArray[np.uint64]]:
    """Return numbers that compare as the rows do, the most significant first: columns share 64 bits where they fit."""
    packed: list[npt.NDArray[np.uint64]] = []
    free = 0
    for _, key in _keys_by_column(table, schema) if table.num_rows else ():
        low = key.min()
        bits = (int(key.max()) - int(low)).bit_length()
        offsets = key.astype(np.uint64) - np.uint64(int(low) % 2**64)
        if packed and bits <= free:
            packed[-1] = (packed[-1] << np.uint64(bits)) | offsets
        else:
            packed.append(offsets)
            free = 64
        free -= bits
    return packed


def is_sorted(table: pa.Table, schema: SortSchema) -> bool:
    """Say whether the rows of the table lie in the order of the schema."""
    return first_unsorted_row(table, schema) is None


def first_unsorted_row(table: pa.Table, schema: SortSchema) -> int | None:
    """Return the first row that must come before the row ahead of it, None when the table is sorted."""
    return min((int(rows[0]) for _, rows in steps_back(table, schema) if rows.size), default=None)


def steps_back(table: pa.Table, schema: SortSchema) -> Iterator[tuple[SortColumn, npt.NDArray[np.int64]]]:
    """Yield, for each sort column of the table, the rows that this column puts before the row ahead of them."""
    tied = np.ones(max(table.num_rows - 1, 0), dtype=np.bool_)
    for column, keys in _keys_by_column(table, schema):
        yield column, np.flatnonzero(tied & (keys[1:] < keys[:-1])) + 1
        tied &= keys[1:] == keys[:-1]


def _keys_by_column(table: pa.Table, schema: SortSchema) -> Iterator[tuple[SortColumn, npt.NDArray[np.int64]]]:
    """Yield integers that compare as the rows do in each sort column that the table has."""
    for column in schema.columns:
        if column.name in table.column_names:
            keys = _ascending_keys(table.column(column.name), column.name)
            # the complement turns integers round, the least one too, which has no negative
            yield column, keys if column.direction is Direction.ASCENDING else ~keys


def _ascending_keys(values: pa.ChunkedArray, name: str) -> npt.NDArray[np.int64]:
    if values.null_count == 0 and (pa.types.is_timestamp(values.type) or _is_narrow(values)):
        return longs(values)
    try:
        codes, distinct = dictionary_codes(_rankable(values))
        return _ranks(_rankable(distinct))[codes]
    except pa.ArrowNotImplementedError:
        raise InvalidInput(f"column {name!r} of type {values.type} has no order; sort by another column") from None


def _is_narrow(values: pa.ChunkedArray) -> bool:
    """Say whether integers can stand for themselves; widely scattered ones, such as hashes, pack better as ranks."""
    if not pa.types.is_signed_integer(values.type):
        return False
    bounds = pc.min_max(values).as_py()
    return bounds["min"] is not None and (bounds["max"] - bounds["min"]).bit_length() <= _NARROW


def _ranks(distinct: pa.Array) -> npt.NDArray[np.int64]:
    """Return the rank of each distinct value, and of null behind them; values that are equal share a rank."""
    highest = len(distinct) + 1
    ranks = pc.rank(distinct, sort_keys="ascending", tiebreaker="dense")
    codes = np.where(validity(distinct), longs(ranks), highest)
    return np.append(codes, highest).astype(np.int64)


def _rankable(values: Any) -> Any:
    """Return the values in a type that Arrow can encode and rank, where it cannot do so with theirs."""
    kind = values.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return values.cast(pa.large_binary())
    if pa.types.is_float16(kind):
        return values.cast(pa.float32())
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return values.cast(pa.decimal128(kind.precision, kind.scale))
    return values.cast(pa.bool_()) if pa.types.is_null(kind) else values


def dictionary_codes(values: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return a code for each row and the value of each code; a null's code is one past the last value.

    Values that were dictionary-encoded before keep their dictionary, which may hold a value twice, or a null.
    """
    chunks = encoded(values).chunks or [pa.nulls(0).dictionary_encode()]
    distinct = chunks[0].dictionary
    return longs(pa.chunked_array([chunk.indices for chunk in chunks]), null=len(distinct)), distinct


def encoded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values dictionary-encoded, in chunks that share one dictionary."""
    if not pa.types.is_dictionary(values.type):
        return values.dictionary_encode()
    try:
        return values.unify_dictionaries()
    except pa.ArrowException:
        # Arrow unifies no dictionaries that hold nulls or some rare types, nor those that outgrow their index type
        return values.cast(values.type.value_type).dictionary_encode()

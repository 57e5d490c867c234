"""Series ids and partition ids: stable 64-bit hashes of what names a series, or a tenant.

The bytes that are hashed never change, since ids are stored: names and values are UTF-8, each ended by 0xFF, a byte
that no UTF-8 text holds, so that no two different sets of tags give the same bytes. A tag that is null, or that the
table lacks, is absent. Rows are grouped into distinct sets of tags first, and each set is hashed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.model.ordering import dictionary_codes
from windrow.model.points import METRIC_NAME, METRIC_TYPE, is_text
from windrow.model.siphash import siphash24

__all__ = ["NEVER_TAGS", "TIMESERIES_ID", "partition_ids", "timeseries_ids"]

TIMESERIES_ID = "timeseries_id"
"""The column that holds the series id."""

NEVER_TAGS = frozenset({"start_timestamp_secs", "sum", "timestamp", "timestamp_secs", "value", TIMESERIES_ID})
"""Columns that differ from point to point, or derive from the tags: they name no series."""

_END = b"\xff"
_GAUGE = 0
_LOW_63_BITS = np.uint64(2**63 - 1)


def timeseries_ids(
    table: pa.Table, *, tags: Sequence[str], metric_name: str = METRIC_NAME, metric_type: str = METRIC_TYPE
) -> pa.Int64Array:
    """Return the id of each row's series: a hash of its metric's name and type and of its tags, in any order."""
    names = sorted(set(tags) - NEVER_TAGS - {metric_name, metric_type})  # code point order is byte order
    parts = [
        _Part.of(_metric_names(table, metric_name), lambda name: name.encode() + _END),
        _Part.of(_metric_types(table, metric_type), lambda kind: bytes([kind])),
        *(_tag(table, name) for name in names),
    ]
    return pa.array(_hashes(parts).view(np.int64))


def partition_ids(table: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the id of each row's partition: 0 without columns, else a hash of their values that is not negative."""
    if not columns:
        return np.zeros(table.num_rows, dtype=np.int64)
    return (_hashes([_tag(table, name) for name in columns]) & _LOW_63_BITS).view(np.int64)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one column adds to the message of each row."""

    codes: npt.NDArray[np.int64]
    pieces: npt.NDArray[np.object_]
    """The bytes for each code; none for null, the last one."""

    @classmethod
    def of(cls, values: pa.ChunkedArray, write: Callable[[Any], bytes]) -> _Part:
        codes, distinct = dictionary_codes(values)
        pieces = [b"" if value is None else write(value) for value in distinct.to_pylist()]
        return cls(codes, np.array([*pieces, b""], dtype=np.object_))


def _tag(table: pa.Table, name: str) -> _Part:
    label = name.encode() + _END
    return _Part.of(_texts(table, name), lambda value: label + value.encode() + _END)


def _hashes(parts: Sequence[_Part]) -> npt.NDArray[np.uint64]:
    """Hash the message of each row, the same one only once."""
    codes = parts[0].codes
    for part in parts[1:]:
        # both codes are dense, so that the product stays far below 64 bits
        codes, _ = dictionary_codes(pa.chunked_array([codes * len(part.pieces) + part.codes]))
    rows = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    columns = (part.pieces[part.codes[rows]] for part in parts)
    return siphash24([b"".join(message) for message in zip(*columns, strict=True)])[codes]


def _metric_names(table: pa.Table, column: str) -> pa.ChunkedArray:
    if column not in table.column_names:
        raise InvalidInput(f"column {column!r} is missing: the metric's name is part of every series; add it")
    names = _texts(table, column)
    if names.null_count:
        raise InvalidInput(f"column {column!r} is null in {names.null_count} rows; give every point a metric's name")
    return names


def _metric_types(table: pa.Table, column: str) -> pa.ChunkedArray:
    if column not in table.column_names:
        return pa.chunked_array([np.full(table.num_rows, _GAUGE, dtype=np.uint8)])
    types = table.column(column)
    if not pa.types.is_integer(types.type) and not pa.types.is_null(types.type):
        raise InvalidInput(f"column {column!r} is {types.type}; make it an integer: 0 for a gauge, 1 for a sum")
    try:
        return types.cast(pa.uint8()).fill_null(_GAUGE)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"column {column!r} holds types that do not fit into one byte: {error}") from None


def _texts(table: pa.Table, column: str) -> pa.ChunkedArray:
    """Return a column as text, all null when the table lacks it."""
    if column not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    values = table.column(column)
    if is_text(values.type):
        return values
    try:
        plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
        return plain.cast(pa.string())
    except pa.ArrowException as error:
        problem = f"column {column!r} of type {values.type} cannot be written as text: {error}"
        raise InvalidInput(f"{problem}; leave it out of the tags") from None

"""Series ids and partition ids: stable 64-bit hashes of what names a series, or a tenant.

The bytes that are hashed never change, since ids are stored: names and values are UTF-8, each ended by 0xFF, a byte
that no UTF-8 text holds, so that no two different sets of tags give the same bytes. A tag that is null, or that the
table lacks, is absent. Rows are grouped into distinct sets of tags first, and each set is hashed once.

Tags that are too rare for a column of their own live together in a residual column of maps from name to value. Where a
tag lives does not change the id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput
from windrow.model.ordering import dictionary_codes
from windrow.model.points import METRIC_NAME, METRIC_TYPE, is_text
from windrow.model.siphash import siphash24

__all__ = ["NEVER_TAGS", "TIMESERIES_ID", "partition_ids", "residual_tags", "timeseries_ids"]

TIMESERIES_ID = "timeseries_id"
"""The column that holds the series id."""

NEVER_TAGS = frozenset({"start_timestamp_secs", "sum", "timestamp", "timestamp_secs", "value", TIMESERIES_ID})
"""Columns that differ from point to point, or derive from the tags: they name no series."""

_END = b"\xff"
_GAUGE = 0
_LOW_63_BITS = np.uint64(2**63 - 1)


def timeseries_ids(
    table: pa.Table,
    *,
    tags: Sequence[str],
    metric_name: str = METRIC_NAME,
    metric_type: str = METRIC_TYPE,
    residual: str | None = None,
) -> pa.Int64Array:
    """Return the id of each row's series: a hash of its metric's name and type and of its tags, in any order.

    A tag that has no column, or is null in it, is looked up in the residual column, when one is named.
    """
    names = sorted(set(tags) - NEVER_TAGS - {metric_name, metric_type})  # code point order is byte order
    own = set(table.column_names)
    columns = [name for name in names if name in own and name != residual]
    parts = [
        _Part.of(_metric_names(table, metric_name), lambda name: name.encode() + _END),
        _Part.of(_metric_types(table, metric_type), lambda kind: bytes([kind])),
        *(_tag(table, name) for name in columns),
    ]
    if residual is None or residual not in table.column_names:
        return pa.array(_hashes(parts).view(np.int64))
    rest = _residual_part(_maps(table, residual), frozenset(names))
    return pa.array(_hashes([*parts, rest], lambda pieces: _message(pieces, columns)).view(np.int64))


def residual_tags(table: pa.Table, residual: str) -> tuple[str, ...]:
    """Return the names of the tags that a residual column holds, in order; none when the table lacks it."""
    if residual not in table.column_names:
        return ()
    maps = _maps(table, residual)
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    return tuple(sorted(maps.keys.slice(first, last - first).unique().to_pylist()))


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
    """The bytes for each code, none for null, the last one; of a residual column, the bytes by tag."""

    @classmethod
    def of(cls, values: pa.ChunkedArray, write: Callable[[Any], bytes]) -> _Part:
        codes, distinct = dictionary_codes(values)
        pieces = [b"" if value is None else write(value) for value in distinct.to_pylist()]
        return cls(codes, np.array([*pieces, b""], dtype=np.object_))


def _tag(table: pa.Table, name: str) -> _Part:
    return _Part.of(_texts(table, name), lambda value: _tag_bytes(name, value))


def _tag_bytes(name: str, value: str) -> bytes:
    return name.encode() + _END + value.encode() + _END


def _residual_part(maps: pa.MapArray, tags: Collection[str]) -> _Part:
    """Return the tags of each row's map. A map is coded by the codes of its entries, so that none is read twice."""
    key_codes, keys = dictionary_codes(pa.chunked_array([maps.keys]))
    item_codes, items = dictionary_codes(pa.chunked_array([maps.items]))
    stride = len(items) + 1  # one more for null
    entries = key_codes * stride + item_codes
    offsets = np.asarray(maps.offsets).astype(np.int64) * entries.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(entries)]
    sets = pc.if_else(maps.is_valid(), pa.Array.from_buffers(pa.large_binary(), len(maps), buffers), None)
    codes, distinct = dictionary_codes(pa.chunked_array([sets]))
    names, values = keys.to_pylist(), [*items.to_pylist(), None]

    def read(entries: bytes) -> dict[str, bytes]:
        places = (divmod(entry, stride) for entry in np.frombuffer(entries, dtype=np.int64).tolist())
        by_name = {names[key]: values[item] for key, item in places}
        return {name: _tag_bytes(name, value) for name, value in by_name.items() if name in tags and value is not None}

    return _Part(codes, np.array([*map(read, distinct.to_pylist()), {}], dtype=np.object_))


def _message(pieces: Sequence[Any], columns: Sequence[str]) -> bytes:
    """Join the pieces of a row; the last one holds the tags of the residual column, which go in among the others."""
    name, kind, *tags, rest = pieces
    if rest:
        by_tag = rest | {column: piece for column, piece in zip(columns, tags, strict=True) if piece}
        tags = [by_tag[tag] for tag in sorted(by_tag)]
    return b"".join([name, kind, *tags])


def _hashes(parts: Sequence[_Part], write: Callable[[Sequence[Any]], bytes] = b"".join) -> npt.NDArray[np.uint64]:
    """Hash the message of each row, the same one only once."""
    codes = parts[0].codes
    for part in parts[1:]:
        # both codes are dense, so that the product stays far below 64 bits
        codes, _ = dictionary_codes(pa.chunked_array([codes * len(part.pieces) + part.codes]))
    rows = np.zeros(int(codes.max(initial=-1)) + 1, dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    columns = (part.pieces[part.codes[rows]] for part in parts)
    return siphash24([write(pieces) for pieces in zip(*columns, strict=True)])[codes]


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


def _maps(table: pa.Table, column: str) -> pa.MapArray:
    maps = table.column(column)
    if not pa.types.is_map(maps.type) or not is_text(maps.type.key_type) or not is_text(maps.type.item_type):
        raise InvalidInput(f"residual column {column!r} is {maps.type}; make it a map from text to text")
    return maps.combine_chunks()


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

"""Pages of small plans, read and decompressed at once: all chunks of a column by one call, from any number of files.

Anything odd is left to those who read the virtual file: remote files and such as may change, types that an engine might
make something else of, pages that cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.model.column_types import type_of
from windrow.parquet import chunk as c
from windrow.parquet.page_reader import Chunks, Coded, CodedRows, Fixed, Unpacked, scan_pages, unpack, unreadable
from windrow.parquet.placement import VirtualSchema
from windrow.parquet.schema import PhysicalType, SchemaElement
from windrow.planning.virtual_file import Placed, VirtualFile
from windrow.planning.virtual_schema import arrow_of
from windrow.reading.needed_ranges import Stretches, stretches
from windrow.reading.virtual_reader import ReadCounts
from windrow.storage import ByteRange

__all__ = ["DECIMAL", "MOST_BYTES", "Column", "Loaded", "columns_of_schema", "decode", "load"]

MOST_BYTES = 32 * 2**20
"""What is read at once, and decompressed in memory."""
_GAP = 2**14
"""Bytes between two chunks that are read with them: another read would cost more."""
_WORDS: dict[str, type[np.unsignedinteger[Any]]] = {"i8": np.uint64, "f8": np.uint64, "i4": np.uint32, "f4": np.uint32}
DECIMAL = "V16"
_WIDEST = 16
_WHOLE = {PhysicalType.INT32: "i4", PhysicalType.INT64: "i8"}

_Longs = NDArray[np.int64]
Decoded = Unpacked | Fixed | Coded | CodedRows


class Column(NamedTuple):
    """A column that can be decoded here."""

    name: str
    leaf: int
    type: pa.DataType
    dtype: str | None
    """Of fixed-width values; None for texts."""
    nullable: bool
    width: int | None = None
    """Bytes of a decimal that is written as bytes, the high one first."""
    word: str | None = None
    """The numbers that are written; None for texts and for bytes."""


def columns_of_schema(schema: VirtualSchema) -> list[Column] | None:
    """The columns of a schema, if all of them can be decoded here."""
    columns = []
    for leaf, field in zip(schema.leaves, arrow_of(schema), strict=False):
        is_flat = len(leaf.path) == 1 and not leaf.max_repetition and leaf.max_definition <= 1
        dtype = type_of(field.type).decoded
        if not is_flat or (dtype is None and field.type != pa.string()):
            return None
        width, word = _written(leaf.element, dtype)
        if dtype is not None and width is None and word is None:
            return None
        columns.append(Column(field.name, leaf.index, field.type, dtype, leaf.max_definition > 0, width, word))
    return columns


def _written(element: SchemaElement, dtype: str | None) -> tuple[int | None, str | None]:
    """How values are written: the width of decimals in bytes, or the type of numbers."""
    if dtype != DECIMAL:
        return None, dtype
    if element.physical_type == PhysicalType.FIXED_LEN_BYTE_ARRAY:
        return (element.type_length if 0 < (element.type_length or 0) <= _WIDEST else None), None
    return None, _WHOLE.get(element.physical_type) if element.physical_type is not None else None


class Loaded(NamedTuple):
    """Pages of one column, which were read together."""

    rows: _Longs
    """The rows of each page."""
    data: Decoded


def decode(
    virtual: VirtualFile, groups: Sequence[int], columns: Sequence[Column], *, most_bytes: int
) -> tuple[list[Decoded], ReadCounts] | None:
    """Some row groups of a virtual file: all of their rows, column by column; None where that is not for here."""
    read = load(virtual, groups, columns, most_bytes=most_bytes)
    if read is None:
        return None
    return [_whole(each.data, column) for each, column in zip(read[0], columns, strict=True)], read[1]


def _whole(data: Decoded, column: Column) -> Decoded:
    if isinstance(data, Unpacked) and column.word is not None:
        return data.fixed(_WORDS[column.word])
    return data


def load(
    virtual: VirtualFile, groups: Sequence[int], columns: Sequence[Column], *, most_bytes: int = MOST_BYTES
) -> tuple[list[Loaded], ReadCounts] | None:
    """The pages of some row groups of a virtual file, column by column; None where that is not for here."""
    read = _read(virtual, virtual.placed.take(groups), [column.leaf for column in columns], most_bytes)
    if read is None:
        return None
    loaded = [_loaded(read, place, column) for place, column in enumerate(columns)]
    whole = [column for column in loaded if column is not None]
    return (whole, read.counts) if len(whole) == len(columns) else None


class _Read(NamedTuple):
    """The bytes of all chunks of some row groups."""

    placed: Placed
    data: bytes
    starts: _Longs
    """Where in the data each chunk begins, by row group and column."""
    ends: _Longs
    counts: ReadCounts


def _read(virtual: VirtualFile, placed: Placed, leaves: Sequence[int], most_bytes: int) -> _Read | None:
    placed = placed._replace(chunks=placed.chunks[:, leaves], is_null=placed.is_null[:, leaves])
    starts = c.chunk_starts(placed.chunks)
    sizes = np.where(placed.is_null, 0, placed.chunks["total_compressed_size"])
    if int(sizes.sum()) > most_bytes:
        return None
    spans = _joined(stretches(virtual.segments, starts[sizes > 0], (starts + sizes)[sizes > 0]))
    pieces = _pieces(virtual, spans)
    if pieces is None:
        return None
    lengths, begins = spans.last - spans.first, np.zeros_like(starts)
    if len(lengths):
        shifts = np.cumsum(lengths) - lengths - spans.first
        place = np.maximum(np.searchsorted(spans.first, starts, "right") - 1, 0)
        begins = np.where(sizes > 0, starts + shifts[place], 0)
    counts = ReadCounts(len(pieces), int(lengths.sum()), len(pieces), 0)
    return _Read(placed, b"".join(pieces), begins, begins + sizes, counts)


def _joined(spans: Stretches) -> Stretches:
    """Stretches in order, those that lie close to each other as one."""
    if not len(spans.first):
        return spans
    order = np.argsort(spans.first, kind="stable")
    first, last, segment = (each[order] for each in spans)
    last = np.maximum.accumulate(last)
    begins = np.ones(len(last), bool)
    begins[1:] = (segment[1:] != segment[:-1]) | (first[1:] > last[:-1] + _GAP)
    places = np.flatnonzero(begins)
    return Stretches(first[places], np.maximum.reduceat(last, places), segment[places])


def _pieces(virtual: VirtualFile, spans: Stretches) -> list[bytes] | None:
    """The bytes of all stretches; None where a file is not as it should be, which a reader of it will tell."""
    wanted = []
    for first, last, number in zip(*(each.tolist() for each in spans), strict=True):
        segment = virtual.segments[number]
        place = ByteRange(first - segment.address + segment.offset, last - first)
        wanted.append((virtual.files[segment.file], place))
    found: list[bytes] = []
    for store, some in groupby(wanted, key=lambda place: place[0].store):
        if store.local is None:
            return None
        for data in store.local.read_each([(file.key, file.identity.size, place) for file, place in some]):
            if data is None:
                return None
            found.append(data)
    return found


def _loaded(read: _Read, place: int, column: Column) -> Loaded | None:
    chunks = _chunks(read, place, column)
    pages = scan_pages(np.frombuffer(read.data, np.uint8), chunks)
    if len(unreadable(pages, chunks)):
        return None
    unpacked = unpack(memoryview(read.data), pages, chunks)
    return Loaded(unpacked.page_rows, _decoded(unpacked, column))


def _decoded(unpacked: Unpacked, column: Column) -> Decoded:
    """Texts as runs, and decimals; numbers stay encoded."""
    if column.dtype is None:
        return unpacked.coded()
    if column.width is not None:
        return unpacked.decimals(column.width)
    assert column.word is not None  # noqa: S101 (else it is no column of these)
    return _widened(unpacked.fixed(_WORDS[column.word]), column.word) if column.dtype == DECIMAL else unpacked


def _widened(numbers: Fixed, word: str) -> Fixed:
    """Decimals that are written as numbers, with all of their bytes."""
    values = np.empty((len(numbers.values), 2), np.int64)
    values[:, 0] = numbers.values.view(word)
    values[:, 1] = values[:, 0] >> 63
    return Fixed(values.view(DECIMAL).reshape(-1), numbers.valid)


def _chunks(read: _Read, place: int, column: Column) -> Chunks:
    placed = read.placed
    count = len(placed.rows)
    return Chunks(
        starts=np.ascontiguousarray(read.starts[:, place]),
        ends=np.ascontiguousarray(read.ends[:, place]),
        values=np.where(placed.is_null[:, place], 0, placed.chunks["num_values"][:, place]),
        codecs=placed.chunks["codec"][:, place].astype(np.int64),
        nullable=np.full(count, column.nullable),
        fixed=np.full(count, column.word is not None),
        first=np.zeros(count, np.int64),
        last=placed.rows,
        names=("a chunk",) * count,
    )

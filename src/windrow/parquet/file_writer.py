"""A Parquet file from chunks that are encoded already: row groups, page index, footer.

The schema is written by pyarrow, once, as the footer of an empty file; all else of the footer is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.kernels import rules as r
from windrow.parquet import chunk as c
from windrow.parquet import thrift as t
from windrow.parquet.arrow_schema import arrow_schema_pairs
from windrow.parquet.chunk_writer import EncodedChunk, Extremes
from windrow.parquet.footer import MAGIC, TAIL_SIZE, ParquetFooter, SortingColumn, footer_length, read_footer
from windrow.parquet.page_index import OffsetIndex, parse_offset_index
from windrow.parquet.zstd import ZSTD_LEVEL

Place: TypeAlias = tuple[int, int] | None
"""Where something is in a file, and how many bytes it has."""

__all__ = ["FileSchema", "FileWriter", "arrow_chunks", "copied_chunk", "file_chunks"]


@dataclass(frozen=True, eq=False)
class FileSchema:
    """What every file of a schema has in common."""

    arrow: pa.Schema
    created_by: str

    @cached_property
    def footer(self) -> ParquetFooter:
        """The footer of an empty file, from which schema and Arrow schema are taken as they stand."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self.arrow, store_schema=False) as writer:
            writer.add_key_value_metadata(arrow_schema_pairs(self.arrow))
        return read_footer(sink.getvalue().to_pybytes(), name="schema")


class _Group(NamedTuple):
    """A row group that was written: its number, its rows, its chunks and where they start."""

    number: int
    rows: int
    chunks: Sequence[EncodedChunk]
    starts: list[int]


class FileWriter:
    """Writes row groups to a file as they come, then page index and footer."""

    def __init__(
        self, sink: BinaryIO, schema: FileSchema, sorting: Sequence[SortingColumn], *, start: int | None = None
    ) -> None:
        """`start` is the byte of an older file at which the sink begins; without it the file is new."""
        self._sink, self._schema = sink, schema
        self._sorting = [
            t.struct(t.i32(1, column), t.boolean(2, value=descending), t.boolean(3, value=nulls_first))
            for column, descending, nulls_first in sorting
        ]
        self._groups: list[_Group] = []
        self._blooms: list[tuple[int, int] | None] = []
        self._size = sink.write(MAGIC) if start is None else start

    @property
    def rows(self) -> int:
        """How many rows were written."""
        return sum(group.rows for group in self._groups)

    @property
    def row_groups(self) -> int:
        """How many row groups were written."""
        return len(self._groups)

    def append(self, rows: int, chunks: Sequence[EncodedChunk], *, number: int | None = None) -> None:
        """Write a row group: a chunk for each leaf. `number` is its place in the file, the next one by default."""
        starts = []
        for chunk in chunks:
            starts.append(self._size)
            self._sink.writelines(chunk.parts)
            self._size += chunk.size
        self._blooms += [self._put(chunk.bloom) for chunk in chunks]
        number = len(self._groups) if number is None else number
        self._groups.append(_Group(number, rows, [_without_bytes(chunk) for chunk in chunks], starts))

    def finish(self, key_value: Mapping[str, str]) -> int:
        """Write page index and footer; how many bytes the file has."""
        metadata = self._metadata(self.finish_row_groups(), key_value)
        self._sink.write(metadata + len(metadata).to_bytes(4, "little") + MAGIC)
        return self._size + len(metadata) + 8

    def finish_row_groups(self) -> list[bytes]:
        """Write the page index; what a footer says of each row group."""
        columns = [self._put(chunk.column_index) for group in self._groups for chunk in group.chunks]
        offsets = [
            self._put(_offset_index(chunk, start))
            for group in self._groups
            for chunk, start in zip(group.chunks, group.starts, strict=True)
        ]
        places = iter(zip(columns, offsets, self._blooms, strict=True))
        return [self._row_group(group, places) for group in self._groups]

    def _put(self, data: bytes | None) -> tuple[int, int] | None:
        if data is None:
            return None
        place = self._size, len(data)
        self._size += self._sink.write(data)
        return place

    def _row_group(self, group: _Group, places: Any) -> bytes:
        number, rows, chunks, starts = group
        columns = [_column_chunk(chunk, start, *next(places)) for chunk, start in zip(chunks, starts, strict=True)]
        sorting = [t.list_of(4, r.RECORD, self._sorting)] if self._sorting else []
        return t.struct(
            t.list_of(1, r.RECORD, columns),
            t.i64(2, sum(chunk.uncompressed for chunk in chunks)),
            t.i64(3, rows),
            *sorting,
            t.i64(5, starts[0] if starts else 0),
            t.i64(6, sum(chunk.size for chunk in chunks)),
            t.Field(7, r.I16, t.zigzag(min(number, 2**15 - 1))),
        )

    def _metadata(self, groups: Sequence[bytes], key_value: Mapping[str, str]) -> bytes:
        footer = self._schema.footer
        pairs = {**{key: value or "" for key, value in footer.key_value.items()}, **key_value}
        texts = [t.struct(t.binary(1, key.encode()), t.binary(2, value.encode())) for key, value in pairs.items()]
        orders = footer.column_orders_bytes
        return t.struct(
            t.i32(1, footer.version),
            t.verbatim(2, footer.schema_bytes),
            t.i64(3, self.rows),
            t.list_of(4, r.RECORD, groups),
            t.list_of(5, r.RECORD, texts),
            t.binary(6, self._schema.created_by.encode()),
            *([] if orders is None else [t.verbatim(7, orders)]),
        )


def _without_bytes(chunk: EncodedChunk) -> EncodedChunk:
    """What is still needed of a chunk once its bytes are written."""
    return replace(chunk, parts=(), bloom=None)


def _offset_index(chunk: EncodedChunk, start: int) -> bytes | None:
    from windrow.kernels.headers import LONGEST_LOCATION, write_locations

    count = chunk.page_offsets.size
    if not count:
        return None
    out = np.empty(LONGEST_LOCATION * count, np.uint8)
    sizes = np.ascontiguousarray(chunk.page_sizes)
    size = write_locations(chunk.page_offsets + start, sizes, chunk.first_rows, out)
    header = bytes((min(count, 15) << 4 | r.RECORD,)) + (t.varint(count) if count > 14 else b"")
    return t.struct(t.verbatim(1, header + out[:size].tobytes()))


def _column_chunk(chunk: EncodedChunk, start: int, column_index: Place, offset_index: Place, bloom: Place) -> bytes:
    places = [t.i64(4, offset_index[0]), t.i32(5, offset_index[1])] if offset_index else []
    places += [t.i64(6, column_index[0]), t.i32(7, column_index[1])] if column_index else []
    # the offset of a chunk's metadata is 0 by the current text of the format: it is nowhere but here
    return t.struct(t.i64(2, 0), t.nested(3, _column_metadata(chunk, start, bloom)), *places)


def _column_metadata(chunk: EncodedChunk, start: int, bloom: Place) -> bytes:
    first_page = int(chunk.page_offsets[0]) if chunk.page_offsets.size else 0
    return t.struct(
        t.i32(1, chunk.physical_type),
        t.list_of(2, r.I32, [t.zigzag(encoding) for encoding in chunk.encodings]),
        t.list_of(3, r.BINARY, [t.prefixed(part.encode()) for part in chunk.path]),
        t.i32(4, chunk.codec),
        t.i64(5, chunk.num_values),
        t.i64(6, chunk.uncompressed),
        t.i64(7, chunk.size),
        t.i64(9, start + first_page),
        *([t.i64(11, start)] if chunk.dictionary else []),
        t.nested(12, _statistics(chunk)),
        *([t.i64(14, bloom[0]), t.i32(15, bloom[1])] if bloom else []),
    )


def _statistics(chunk: EncodedChunk) -> bytes:
    members = [] if chunk.null_count is None else [t.i64(3, chunk.null_count)]
    if chunk.distinct_count is not None:
        members.append(t.i64(4, chunk.distinct_count))
    least, greatest = chunk.bounds
    if least is not None and greatest is not None:
        members += [t.binary(5, greatest), t.binary(6, least), t.boolean(7, value=True), t.boolean(8, value=True)]
    return t.struct(*members)


def arrow_chunks(
    column: pa.ChunkedArray,
    field: pa.Field,
    rows: Sequence[int],
    granule_rows: int,
    *,
    bloom: Any = None,
    encoding: str | None = None,
) -> list[list[EncodedChunk]]:
    """Chunks of a column that pyarrow writes, in row groups of so many rows: for each of these one for each leaf.

    `bloom` is how large a filter of each chunk may be, in pyarrow's words; none is made without it. Without an
    `encoding`, values have a dictionary.
    """
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        pa.schema([field]),
        compression="zstd",
        compression_level=ZSTD_LEVEL,
        write_page_index=True,
        write_page_checksum=True,
        max_rows_per_page=granule_rows,
        bloom_filter_options=None if bloom is None else {field.name: bloom},
        use_dictionary=encoding is None,
        column_encoding=None if encoding is None else {field.name: encoding},
    ) as writer:
        at = 0
        for count in rows:
            table = pa.table([column.slice(at, count)], schema=pa.schema([field]))
            writer.write_table(table, row_group_size=max(count, 1))
            at += count
    return file_chunks(memoryview(sink.getvalue()), name=field.name)


def file_chunks(data: memoryview, *, name: str) -> list[list[EncodedChunk]]:
    """The chunks of a file with a page index that is in memory: for each row group one for each leaf."""
    footer = read_footer(data[-footer_length(bytes(data[-TAIL_SIZE:]), name) :].tobytes(), name=name)
    leaves = range(len(footer.leaves))
    return [[_taken(data, footer, group, leaf) for leaf in leaves] for group in range(len(footer.chunks))]


def _taken(data: memoryview, footer: ParquetFooter, group: int, leaf: int) -> EncodedChunk:
    """A chunk of a file that is in memory, as if we had encoded it."""
    chunk, name = footer.chunks[group, leaf], footer.leaves[leaf].path[0]
    start, size = int(c.chunk_starts(footer.chunks[group : group + 1, leaf])[0]), int(chunk["total_compressed_size"])
    at, length = int(chunk["offset_index_offset"]), int(chunk["offset_index_length"])
    index = parse_offset_index(data[at : at + length], name=name)
    at, length = int(chunk["column_index_offset"]), int(chunk["column_index_length"])
    bounds = bytes(data[at : at + length]) if chunk["flags"] & c.HAS_COLUMN_INDEX else None
    at, length = int(chunk["bloom_offset"]), int(chunk["bloom_length"])
    bloom = bytes(data[at : at + length]) if length > 0 else None
    return copied_chunk(footer, group, leaf, bytes(data[start : start + size]), index, bounds, bloom)


def copied_chunk(
    footer: ParquetFooter,
    group: int,
    leaf: int,
    data: Any,
    index: OffsetIndex,
    column_index: bytes | None,
    bloom: bytes | None = None,
) -> EncodedChunk:
    """A chunk of another file, given its bytes, its page index and its filter, as if we had encoded it."""
    chunk = footer.chunks[group, leaf]
    start = int(c.chunk_starts(footer.chunks[group : group + 1, leaf])[0])
    flags = (c.HAS_MIN_VALUE, c.HAS_MAX_VALUE)
    spans = ((chunk["min_offset"], chunk["min_length"]), (chunk["max_offset"], chunk["max_length"]))
    bounds = [
        footer.metadata[int(first) : int(first + count)] if chunk["flags"] & flag else None
        for flag, (first, count) in zip(flags, spans, strict=True)
    ]
    return EncodedChunk(
        int(chunk["physical_type"]),
        footer.leaves[leaf].path,
        tuple(np.flatnonzero(int(chunk["encodings"]) >> np.arange(32) & 1).tolist()),
        int(chunk["codec"]),
        int(chunk["num_values"]),
        int(chunk["total_uncompressed_size"]),
        len(data),
        [data],
        int(index.offsets[0] if index.offsets.size else start) > start,
        index.offsets - start,
        index.compressed_sizes,
        index.first_rows,
        int(chunk["null_count"]) if chunk["flags"] & c.HAS_NULL_COUNT else None,
        Extremes(*bounds),
        column_index,
        bloom,
        int(chunk["distinct_count"]) if chunk["flags"] & c.HAS_DISTINCT_COUNT else None,
    )

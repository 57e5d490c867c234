"""Chunks of flat columns, written page by page: granules of the same rows in every column, one zstd frame each.

All chunks of a column are encoded together, since what a call costs besides the work counts. Pages are of version 2:
their levels stay uncompressed, so that fixed-width values are compressed from where they lie, and a page that
compression does not make smaller is stored as it is. Values go through the dictionary where they repeat; those that do
not are plain, or differences, or split into their bytes, as takes the fewest. A chunk may hold pages of both kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.parquet.chunk import Encoding
from windrow.parquet.codecs import Codec
from windrow.parquet.page_index import ASCENDING, DESCENDING, UNORDERED
from windrow.parquet.page_reader import Coded, Fixed
from windrow.parquet.zstd import zstd_compressor

__all__ = ["ChunkWriter", "EncodedChunk", "Extremes", "Pages", "granules"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Spans: TypeAlias = tuple[Longs, Longs, Bytes]
"""Where texts begin in some bytes, how long they are, and the bytes."""
Buffer = Any

DICTIONARY_ENTRIES = 1 << 14
DICTIONARY_BYTES = 1 << 20
LONGEST_BOUND = 1024

_ROWS, _NULLS, _LEVELS, _LEVEL_BYTES, _VALUES, _VALUE_BYTES, _ENCODING, _LOW, _HIGH = range(9)
_PAGE_WIDTH = 9
_ENTRIES, _PLACE, _SIZE = range(3)


class Extremes(NamedTuple):
    """The least and the greatest value of something, as a footer has them; None where there is none."""

    least: bytes | None
    greatest: bytes | None


@dataclass(frozen=True, eq=False)
class EncodedChunk:
    """A column chunk as bytes, and all that its footer says of it; positions count from its first byte."""

    physical_type: int
    path: tuple[str, ...]
    encodings: tuple[int, ...]
    codec: int
    num_values: int
    uncompressed: int
    size: int
    parts: Sequence[Buffer]
    dictionary: bool
    page_offsets: Longs
    page_sizes: Longs
    first_rows: Longs
    null_count: int | None
    bounds: Extremes
    column_index: bytes | None = None
    bloom: bytes | None = None
    """A bloom filter of its values, header included."""
    distinct_count: int | None = None
    """How many different values it has; None where no dictionary holds all of them."""


def granules(rows: int, granule_rows: int) -> Longs:
    """Where the pages of so many rows are cut."""
    return np.append(np.arange(0, rows, granule_rows, dtype=np.int64), rows)


class Pages(NamedTuple):
    """How rows are cut: the bounds of all pages, and the first page of each chunk; last how many pages there are."""

    bounds: Longs
    chunks: Longs

    @classmethod
    def of(cls, chunk_rows: Sequence[int], granule_rows: int) -> Pages:
        """Chunks of so many rows each, one behind the other, in granules of so many rows."""
        ends = np.cumsum([0, *chunk_rows])
        cuts = [granules(rows, granule_rows)[:-1] + end for rows, end in zip(chunk_rows, ends[:-1], strict=True)]
        counts = [cut.size for cut in cuts]
        return cls(np.concatenate([*cuts, ends[-1:]]), np.cumsum([0, *counts]))


class _Bodies(NamedTuple):
    """What pages are made of, before they are compressed."""

    table: Longs
    levels: Bytes
    coded: Bytes
    """The values of those pages that are coded."""
    plain: Bytes
    """The values of all others."""
    dictionaries: Longs
    entries: Bytes
    """What dictionaries hold."""
    distinct: Longs
    """How many different values each chunk has; -1 where its dictionary does not hold all of them."""


@dataclass(frozen=True, eq=False)
class ChunkWriter:
    """Writes the chunks of one column."""

    path: tuple[str, ...]
    physical_type: int
    nullable: bool
    order: np.dtype[Any] | None = None
    """How the values of a fixed-width column compare."""

    def coded(self, column: Coded, pages: Pages) -> list[EncodedChunk]:
        """The chunks of a column of texts."""
        from windrow.kernels.encode import encode_texts

        offsets, lengths, data = spans = _spans(column.texts)
        table, dictionaries = _tables(pages)
        most = min(int(lengths.sum()) + 4 * lengths.size, DICTIONARY_BYTES) * len(dictionaries)
        out = np.empty(6 * int(pages.bounds[-1] - pages.bounds[0]) + 64 * pages.bounds.size + most, np.uint8)
        encode_texts(
            column.codes, column.ends, *pages, self.nullable, spans, DICTIONARY_BYTES, table, dictionaries, out
        )
        plain = _in_plain(column, pages, np.flatnonzero(dictionaries[:, _ENTRIES] == 0), spans, table)
        distinct = _distinct(table, dictionaries, pages)
        bodies = _Bodies(table, out, out, plain, dictionaries, out, distinct)
        low, high = table[:, _LOW], table[:, _HIGH]
        # a text that is too long is no bound, nor is any other of its chunk then
        bounded, bounds = None, None
        if lengths.size:
            bounded = ~_any((np.maximum(lengths[low], lengths[high]) > LONGEST_BOUND) & (low >= 0), pages)
            ends = offsets + lengths
            bounds = _Stretches(data, (offsets[low], ends[low]), (offsets[high], ends[high]))
        return self._chunks(bodies, pages, _PageBounds(low, high, low >= 0, bounded, bounds))

    def fixed(self, column: Fixed, pages: Pages) -> list[EncodedChunk]:
        """The chunks of a column of numbers."""
        from windrow.kernels.encode import encode_levels
        from windrow.kernels.encode_fixed import encode_fixed

        table, dictionaries = _tables(pages)
        valid = np.empty(0, np.uint8) if column.valid is None else column.valid
        levels = np.empty(valid.size + 64 * pages.bounds.size, np.uint8)
        table[:, _ROWS] = np.diff(pages.bounds)
        if self.nullable:
            encode_levels(valid, pages.bounds, table, levels)
        values = column.values if column.valid is None else column.values[column.valid != 0]
        cuts = np.append(0, np.cumsum(table[:, _ROWS] - table[:, _NULLS]))
        entries = np.empty(DICTIONARY_ENTRIES * len(dictionaries), values.dtype)
        out = np.empty((values.itemsize + 1) * values.size + 384 * pages.bounds.size, np.uint8)
        way = _WAYS.get("" if self.order is None else self.order.kind, Encoding.PLAIN)
        encode_fixed(
            zstd_compressor(),
            values,
            cuts,
            pages.chunks,
            DICTIONARY_ENTRIES,
            int(way),
            table,
            dictionaries,
            entries,
            out,
        )
        distinct = _distinct(table, dictionaries, pages)
        if self.order is not None and self.order.kind == "f":
            distinct -= _alike(entries.view(self.order), dictionaries)
        low, high = _extremes(values.view(self.order or values.dtype), cuts)
        bounds = _PageBounds.numbers(low, high, cuts[1:] > cuts[:-1], pages)
        plain = np.flatnonzero(table[:, _ENCODING] == 0)
        table[plain, _VALUES] = cuts[plain] * values.itemsize
        table[plain, _VALUE_BYTES] = (cuts[plain + 1] - cuts[plain]) * values.itemsize
        dictionaries[:, _PLACE] *= values.itemsize
        dictionaries[:, _SIZE] = dictionaries[:, _ENTRIES] * values.itemsize
        plain_values, coded_values = values.view(np.uint8), entries.view(np.uint8)
        bodies = _Bodies(table, levels, out, plain_values, dictionaries, coded_values, distinct)
        return self._chunks(bodies, pages, bounds)

    def _chunks(self, bodies: _Bodies, pages: Pages, page_bounds: _PageBounds) -> list[EncodedChunk]:
        from windrow.kernels.chunks import CHUNK_WIDTH, room_for, write_chunks

        table, dictionaries = bodies.table, bodies.dictionaries
        places = np.empty((len(table), 2), np.int64)
        written = np.empty((len(dictionaries), CHUNK_WIDTH), np.int64)
        out = np.empty(room_for(table, dictionaries), np.uint8)
        values = bodies.levels, bodies.coded, bodies.plain
        size = write_chunks(
            zstd_compressor(), table, pages.chunks, values, dictionaries, bodies.entries, places, written, out
        )
        if size < 0:
            raise MemoryError("zstd has no room to work in; free some memory")
        indexes, bounds = page_bounds.written(table[:, _NULLS], table[:, _ROWS], pages)
        nulls, rows = _sums(table[:, _NULLS], pages).tolist(), _sums(table[:, _ROWS], pages).tolist()
        view, firsts, distinct = out.data, pages.chunks.tolist(), bodies.distinct.tolist()
        return [
            EncodedChunk(
                physical_type=self.physical_type,
                path=self.path,
                encodings=_encodings(table[first:last, _ENCODING], dictionary),
                codec=Codec.ZSTD,
                num_values=rows[chunk],
                uncompressed=uncompressed,
                size=size,
                parts=[view[begin : begin + size]],
                dictionary=bool(dictionary),
                page_offsets=places[first:last, 0],
                page_sizes=places[first:last, 1],
                first_rows=pages.bounds[first:last] - pages.bounds[first],
                null_count=nulls[chunk],
                bounds=bounds[chunk],
                column_index=indexes[chunk],
                distinct_count=distinct[chunk] if distinct[chunk] >= 0 else None,
            )
            for chunk, ((first, last), (begin, dictionary, size, uncompressed)) in enumerate(
                zip(pairwise(firsts), written.tolist(), strict=True)
            )
        ]


_WAYS = {"f": Encoding.BYTE_STREAM_SPLIT, "i": Encoding.DELTA_BINARY_PACKED, "u": Encoding.DELTA_BINARY_PACKED}
"""How values are written besides plainly and by codes, by their kind; Spark reads no integers that are split."""


def _encodings(pages: Longs, dictionary: int) -> tuple[int, ...]:
    """All encodings of a chunk: those of its pages, of levels, and of a dictionary, whose own page is plain."""
    own = set(np.unique(pages).tolist()) | {int(Encoding.RLE)}
    return tuple(sorted(own | {int(Encoding.PLAIN)} if dictionary else own))


def _tables(pages: Pages) -> tuple[Longs, Longs]:
    return np.zeros((pages.bounds.size - 1, _PAGE_WIDTH), np.int64), np.zeros((pages.chunks.size - 1, 3), np.int64)


def _distinct(table: Longs, dictionaries: Longs, pages: Pages) -> Longs:
    """How many different values each chunk has; -1 where some of them are in no dictionary."""
    is_other = (table[:, _ENCODING] != Encoding.RLE_DICTIONARY) & (table[:, _ROWS] > table[:, _NULLS])
    return np.where(_any(is_other, pages), -1, dictionaries[:, _ENTRIES])


def _alike(entries: npt.NDArray[np.floating[Any]], dictionaries: Longs) -> Longs:
    """How many entries of each dictionary of floats are a second zero, or one more NaN."""
    ends = np.append(0, np.cumsum(dictionaries[:, _ENTRIES]))
    own, more = entries[: ends[-1]], np.zeros(len(dictionaries), np.int64)
    for is_alike in (own == 0, np.isnan(own)):
        counts = np.diff(np.searchsorted(np.flatnonzero(is_alike), ends))
        more += np.maximum(counts - 1, 0)
    return more


def _slices(data: Buffer, starts: Longs, sizes: Longs) -> list[Buffer]:
    return [data[at : at + size] for at, size in zip(starts.tolist(), sizes.tolist(), strict=True)]


def _sums(numbers: npt.NDArray[Any], pages: Pages) -> Longs:
    """The sum over the pages of each chunk."""
    return np.diff(np.append(0, np.cumsum(numbers))[pages.chunks])


def _any(flags: npt.NDArray[np.bool_], pages: Pages) -> npt.NDArray[np.bool_]:
    """Whether any page of a chunk is flagged."""
    return _sums(flags, pages) > 0


def _spans(texts: pa.LargeBinaryArray) -> Spans:
    """Where each text begins in its array's data, how long it is, and the data."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    return offsets[:-1], np.diff(offsets), np.frombuffer(data if data is not None else b"", np.uint8)


def _in_plain(column: Coded, pages: Pages, chunks: Longs, spans: Spans, table: Longs) -> Bytes:
    """The texts of some chunks, written out; the table says where those of each page are."""
    written, size = [np.empty(0, np.uint8)], 0
    for chunk in chunks.tolist():
        first, last = pages.chunks[chunk : chunk + 2].tolist()
        for page, values in enumerate(_texts_of(column, pages.bounds[first : last + 1], spans), first):
            table[page, _VALUES], table[page, _VALUE_BYTES] = size, values.size
            written.append(values)
            size += values.size
    return np.concatenate(written)


def _texts_of(column: Coded, bounds: Longs, spans: Spans) -> Iterator[Bytes]:
    """The texts of pages."""
    from windrow.kernels.texts import copy_texts

    offsets, lengths, data = spans
    first, last = np.searchsorted(column.ends, [bounds[0], bounds[-1]], side="right")
    last = min(int(last) + 1, column.ends.size)
    ends = np.clip(column.ends[first:last], bounds[0], bounds[-1])
    rows = np.repeat(column.codes[first:last], np.diff(ends, prepend=bounds[0]))
    for low, high in pairwise((bounds - bounds[0]).tolist()):
        codes = rows[low:high][rows[low:high] >= 0]
        out = np.empty(int(lengths[codes].sum()) + 4 * codes.size, np.uint8)
        copy_texts(data, offsets[codes], lengths[codes], 4, out, np.empty(codes.size, np.int64))
        yield out


class _Stretches(NamedTuple):
    """Bounds as bytes of some data: the first and the last byte of each page's least and greatest value."""

    data: npt.NDArray[np.uint8]
    low: tuple[Longs, Longs]
    high: tuple[Longs, Longs]


class _PageBounds(NamedTuple):
    """The least and the greatest value of each page."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    filled: npt.NDArray[np.bool_]
    """Which pages have values, and so bounds."""
    bounded: npt.NDArray[np.bool_] | None
    """Which chunks have bounds; None is all."""
    bounds: _Stretches | None
    """What `low` and `high` stand for."""

    @classmethod
    def numbers(
        cls, low: npt.NDArray[Any], high: npt.NDArray[Any], filled: npt.NDArray[np.bool_], pages: Pages
    ) -> _PageBounds:
        """Numbers stand for themselves. NaN is no bound: a page of nothing else leaves its chunk without bounds."""
        if low.dtype.kind == "f":
            bounded = ~_any(np.isnan(low) & filled, pages)
            # zero has two signs, and a reader may look for either
            low = np.where(low == 0, -0.0, low).astype(low.dtype)
            high = np.where(high == 0, 0.0, high).astype(high.dtype)
        else:
            bounded = np.ones(pages.chunks.size - 1, np.bool_)
        at = np.arange(low.size) * low.itemsize
        data, more = np.concatenate([low, high]).view(np.uint8), low.size * low.itemsize
        stretches = _Stretches(data, (at, at + low.itemsize), (at + more, at + more + low.itemsize))
        return cls(low, high, filled, bounded, stretches)

    def written(self, nulls: Longs, rows: Longs, pages: Pages) -> tuple[list[bytes | None], list[Extremes]]:
        """The column index and the bounds of each chunk."""
        from windrow.kernels.headers import write_bounds

        count, filled = pages.chunks.size - 1, self.filled
        orders, extremes = self._orders(pages), [Extremes(None, None)] * count
        nothing = np.zeros(filled.size, np.int64)
        data, low, high = self.bounds or _Stretches(np.empty(0, np.uint8), (nothing, nothing), (nothing, nothing))
        bounded = np.ones(count, np.bool_) if self.bounded is None else self.bounded
        sizes = [
            np.where(filled & np.repeat(bounded, np.diff(pages.chunks)), last - first, 0) for first, last in (low, high)
        ]
        out = np.empty(int(sizes[0].sum() + sizes[1].sum()) + 24 * filled.size + 64 * count, np.uint8)
        ends = np.zeros(count + 1, np.int64)
        counts = np.ascontiguousarray(nulls), np.ascontiguousarray(rows)
        write_bounds(pages.chunks, counts, data, (low[0], sizes[0]), (high[0], sizes[1]), orders, out, ends[1:])
        written = _slices(out.data, ends[:-1], np.diff(ends))
        indexes = [bytes(index) if there else None for index, there in zip(written, bounded.tolist(), strict=True)]
        own = np.flatnonzero(filled)
        owners = np.searchsorted(pages.chunks, own, side="right") - 1
        # the least of each chunk is the first of it when pages are ordered, the greatest the last
        least = own[np.lexsort((self.low[own], owners))][np.searchsorted(owners, np.arange(count))[owners]]
        most = own[np.lexsort((self.high[own], owners))][np.searchsorted(owners, np.arange(count), "right")[owners] - 1]
        for chunk, one, other in zip(owners.tolist(), least.tolist(), most.tolist(), strict=True):
            if bounded[chunk] and extremes[chunk].least is None:
                extremes[chunk] = Extremes(
                    data[low[0][one] : low[1][one]].tobytes(), data[high[0][other] : high[1][other]].tobytes()
                )
        return indexes, extremes

    def _orders(self, pages: Pages) -> Longs:
        """How the bounds of each chunk follow each other; pages without any are left out."""
        own = np.flatnonzero(self.filled)
        same = np.searchsorted(pages.chunks, own[1:], side="right") == np.searchsorted(pages.chunks, own[:-1], "right")
        low, high = self.low[own], self.high[own]
        orders = np.full(pages.chunks.size - 1, UNORDERED, np.int64)
        for order, follows in ((DESCENDING, np.less_equal), (ASCENDING, np.greater_equal)):
            broken = same & ~(follows(low[1:], low[:-1]) & follows(high[1:], high[:-1]))
            bad = np.zeros(self.filled.size, np.bool_)
            bad[own[1:]] = broken
            orders[~_any(bad, pages)] = order
        return orders


def _extremes(values: npt.NDArray[Any], cuts: Longs) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The least and the greatest value of each page; NaN only where there is nothing else, 0 where there is nothing."""
    low, high = np.zeros(cuts.size - 1, values.dtype), np.zeros(cuts.size - 1, values.dtype)
    filled = np.flatnonzero(cuts[1:] > cuts[:-1])
    if filled.size:
        least, most = (np.fmin, np.fmax) if values.dtype.kind == "f" else (np.minimum, np.maximum)
        low[filled], high[filled] = least.reduceat(values, cuts[filled]), most.reduceat(values, cuts[filled])
    return low, high

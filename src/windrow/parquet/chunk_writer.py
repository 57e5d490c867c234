"""Chunks of flat columns, written page by page: granules of the same rows in every column, one zstd frame each.

Pages are of version 2: their levels stay uncompressed, so that fixed-width values are compressed from where they lie,
and a page that compression does not make smaller is stored as it is. Values go through the dictionary page by page,
where they repeat; a chunk may hold pages of both kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels import rules as r
from windrow.parquet import thrift as t
from windrow.parquet.chunk import Encoding
from windrow.parquet.codecs import Codec, compressor, each
from windrow.parquet.page_index import ASCENDING, DESCENDING, UNORDERED
from windrow.parquet.page_reader import Coded, Fixed

__all__ = ["Bounds", "ChunkWriter", "EncodedChunk", "granules"]

Longs = npt.NDArray[np.int64]
Buffer = Any

DICTIONARY_ENTRIES = 1 << 14
DICTIONARY_BYTES = 1 << 20
LONGEST_BOUND = 1024
SMALLEST_FRAME = 128
"""Fewer bytes are not worth a frame of their own."""

_ROWS, _NULLS, _LEVEL_BYTES, _VALUE_BYTES, _LOW, _HIGH = range(6)


class Page(NamedTuple):
    """A page before it is compressed."""

    rows: int
    nulls: int
    encoding: int
    levels: Buffer
    values: Buffer


class Bounds(NamedTuple):
    """The least and the greatest value of something, as a footer has them; None where there is none to tell."""

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
    bounds: Bounds
    column_index: bytes | None = None


def granules(rows: int, granule_rows: int) -> Longs:
    """Where the pages of so many rows are cut."""
    return np.append(np.arange(0, rows, granule_rows, dtype=np.int64), rows)


@dataclass(frozen=True, eq=False)
class ChunkWriter:
    """Writes the chunks of one column."""

    path: tuple[str, ...]
    physical_type: int
    nullable: bool
    order: np.dtype[Any] | None = None
    """How the values of a fixed-width column compare."""
    executor: Executor | None = None
    threads: int = 1

    def coded(self, column: Coded, bounds: Longs) -> EncodedChunk:
        """The chunk of the rows from the first to the last of `bounds`, which is cut into pages at all of them."""
        from windrow.kernels.runs import encode_codes

        rows, pages = int(bounds[-1] - bounds[0]), np.zeros((bounds.size - 1, 6), np.int64)
        local, used = np.full(len(column.texts) + 1, -1, np.int32), np.empty(min(rows, len(column.texts)) + 1, np.int32)
        out = np.empty(6 * rows + 64 * bounds.size, np.uint8)
        distinct, _ = encode_codes(column.codes, column.ends, bounds, self.nullable, local, used, pages, out)
        offsets, lengths = _spans(column.texts)
        chosen = used[:distinct]
        plain = distinct == 0 or int(lengths[chosen].sum()) + 4 * distinct > DICTIONARY_BYTES
        dictionary = None if plain else _plain_texts(column.texts, offsets[chosen], lengths[chosen])
        bodies = self._coded_pages(pages, out, Encoding.PLAIN if plain else Encoding.RLE_DICTIONARY)
        if plain:
            bodies = _in_plain(bodies, column, bounds, offsets, lengths)
        texts = _Texts(column.texts, lengths)
        index = _column_index(pages[:, _NULLS], pages[:, _ROWS], pages[:, _LOW], pages[:, _HIGH], texts)
        present = pages[:, _LOW] >= 0
        extremes = Bounds(None, None)
        if present.any() and index is not None:
            extremes = Bounds(texts[int(pages[present, _LOW].min())], texts[int(pages[:, _HIGH].max())])
        return self._chunk(bodies, dictionary, distinct, extremes, index)

    @staticmethod
    def _coded_pages(pages: Longs, out: npt.NDArray[np.uint8], encoding: int) -> list[Page]:
        at, bodies, data = 0, [], out.data
        for rows, nulls, level_bytes, value_bytes, _, _ in pages.tolist():
            levels, values = data[at : at + level_bytes], data[at + level_bytes : at + level_bytes + value_bytes]
            bodies.append(Page(rows, nulls, encoding, levels, values))
            at += level_bytes + value_bytes
        return bodies

    def fixed(self, column: Fixed, bounds: Longs) -> EncodedChunk:
        """The chunk of the rows from the first to the last of `bounds`, which is cut into pages at all of them."""
        rows = np.diff(bounds)
        values, cuts, nulls = column.values[bounds[0] : bounds[-1]], bounds - bounds[0], np.zeros(rows.size, np.int64)
        levels: list[Buffer] = [_all_set(count) if self.nullable else b"" for count in rows.tolist()]
        valid = None if column.valid is None else column.valid[bounds[0] : bounds[-1]]
        # what a chunk looks like must not depend on nulls elsewhere in the column
        if valid is not None and not valid.all():
            levels, nulls = _levels(valid, cuts)
            values, cuts = values[valid != 0], np.append(0, np.cumsum(rows - nulls))
        entries, coded, data, sizes = _coded_values(values, cuts)
        bodies, at, plain = [], 0, np.ascontiguousarray(values).data.cast("B")
        for page, count in enumerate(rows.tolist()):
            if coded[page]:
                body = data[at : at + sizes[page]]
                at += sizes[page]
            else:
                body = plain[int(cuts[page]) * values.itemsize : int(cuts[page + 1]) * values.itemsize]
            encoding = Encoding.RLE_DICTIONARY if coded[page] else Encoding.PLAIN
            bodies.append(Page(count, int(nulls[page]), encoding, levels[page], body))
        index, extremes = _fixed_bounds(values.view(self.order or values.dtype), cuts, rows, nulls)
        dictionary = entries.data.cast("B") if entries.size else None
        return self._chunk(bodies, dictionary, entries.size, extremes, index)

    def _chunk(
        self, pages: Sequence[Page], dictionary: Buffer | None, entries: int, bounds: Bounds, index: bytes | None
    ) -> EncodedChunk:
        first, size, uncompressed = _dictionary_page(dictionary, entries)
        frames = each(_compress, [page.values for page in pages], self.executor, self.threads)
        table = _header_table(pages, frames)
        headers = _headers(table)
        parts: list[Buffer] = first
        for header, page, frame in zip(headers, pages, frames, strict=True):
            parts += (header, page.levels, page.values if frame is None else frame)
        stored = np.array([len(header) for header in headers], np.int64) + table[:, 0]
        sizes, rows = stored + table[:, 2], table[:, 3]
        encodings = {Encoding.RLE, *(page.encoding for page in pages), *((Encoding.PLAIN,) if first else ())}
        return EncodedChunk(
            physical_type=self.physical_type,
            path=self.path,
            encodings=tuple(sorted(encodings)),
            codec=Codec.ZSTD,
            num_values=int(rows.sum()),
            uncompressed=uncompressed + int((stored + table[:, 1]).sum()),
            size=size + int(sizes.sum()),
            parts=parts,
            dictionary=bool(first),
            page_offsets=size + np.cumsum(sizes) - sizes,
            page_sizes=sizes,
            first_rows=np.cumsum(rows) - rows,
            null_count=int(table[:, 4].sum()),
            bounds=bounds,
            column_index=index,
        )


def _dictionary_page(dictionary: Buffer | None, entries: int) -> tuple[list[Buffer], int, int]:
    """The parts of a dictionary page, their size, and that before compression; it follows the codec, smaller or not."""
    if dictionary is None:
        return [], 0, 0
    frame = compressor()(dictionary)
    header = t.struct(t.i32(1, entries), t.i32(2, Encoding.PLAIN))
    page = t.struct(t.i32(1, 2), t.i32(2, len(dictionary)), t.i32(3, len(frame)), t.nested(7, header))
    return [page, frame], len(page) + len(frame), len(page) + len(dictionary)


def _header_table(pages: Sequence[Page], frames: Sequence[bytes | None]) -> Longs:
    return np.array(
        [
            (
                len(page.levels),
                len(page.values),
                len(page.values if frame is None else frame),
                page.rows,
                page.nulls,
                page.encoding,
                frame is None,
            )
            for page, frame in zip(pages, frames, strict=True)
        ],
        np.int64,
    ).reshape(-1, 7)


def _headers(table: Longs) -> list[Buffer]:
    from windrow.kernels.headers import LONGEST_HEADER, write_headers

    out, ends = np.empty(LONGEST_HEADER * len(table), np.uint8), np.empty(len(table), np.int64)
    write_headers(table, out, ends)
    data, cuts = out.data, [0, *ends.tolist()]
    return [data[low:high] for low, high in pairwise(cuts)]


def _compress(bodies: Sequence[Buffer]) -> list[bytes | None]:
    """A frame for each page, or None where it would save nothing worth a decompression."""
    compress = compressor()
    frames = []
    for body in bodies:
        frame = compress(body) if len(body) >= SMALLEST_FRAME else None
        frames.append(frame if frame is not None and len(frame) < 0.9 * len(body) else None)
    return frames


def _all_set(rows: int) -> bytes:
    """The levels of rows that are all set, as one run."""
    return t.varint(rows << 1) + b"\x01"


def _levels(valid: npt.NDArray[np.uint8], bounds: Longs) -> tuple[list[Buffer], Longs]:
    """The levels of each page, and its nulls."""
    from windrow.kernels.runs import pack_levels

    sizes, nulls = np.zeros(bounds.size - 1, np.int64), np.zeros(bounds.size - 1, np.int64)
    out = np.empty(valid.size + 64 * bounds.size, np.uint8)
    pack_levels(valid, bounds, out, sizes, nulls)
    ends, data = np.cumsum(sizes), out.data
    spans = zip((ends - sizes).tolist(), ends.tolist(), strict=True)
    return [data[start:end] for start, end in spans], nulls


def _coded_values(values: npt.NDArray[Any], cuts: Longs) -> tuple[npt.NDArray[Any], list[int], memoryview, list[int]]:
    """Entries of the dictionary, which pages use it, and the bytes of these with the size of each."""
    from windrow.kernels.runs import code_fixed, pack_codes

    codes, entries = np.empty(values.size, np.int32), np.empty(DICTIONARY_ENTRIES, values.dtype)
    coded, sizes = np.zeros(cuts.size - 1, np.uint8), np.zeros(cuts.size - 1, np.int64)
    distinct = code_fixed(values, cuts, codes, entries, coded)
    out = np.empty(2 * values.size + 64 * cuts.size, np.uint8)
    pack_codes(codes, cuts, coded, distinct, out, sizes)
    return entries[:distinct], coded.tolist(), out.data, sizes.tolist()


def _spans(texts: pa.LargeBinaryArray) -> tuple[Longs, Longs]:
    """Where each text begins in its array's data, and how long it is."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return offsets[:-1], np.diff(offsets)


def _plain_texts(texts: pa.LargeBinaryArray, offsets: Longs, lengths: Longs) -> memoryview:
    """Texts behind each other, each behind its length."""
    from windrow.kernels.texts import copy_texts

    data = texts.buffers()[2]
    source = np.frombuffer(data if data is not None else b"", np.uint8)
    out = np.empty(int(lengths.sum()) + 4 * lengths.size, np.uint8)
    copy_texts(source, offsets, lengths, 4, out, np.empty(lengths.size, np.int64))
    return out.data


def _in_plain(pages: list[Page], column: Coded, bounds: Longs, offsets: Longs, lengths: Longs) -> list[Page]:
    """The same pages with their texts written out."""
    first, last = np.searchsorted(column.ends, [bounds[0], bounds[-1]], side="right")
    last = min(int(last) + 1, column.ends.size)
    ends = np.clip(column.ends[first:last], bounds[0], bounds[-1])
    rows = np.repeat(column.codes[first:last], np.diff(ends, prepend=bounds[0]))
    written = []
    for page, low, high in zip(
        pages, (bounds[:-1] - bounds[0]).tolist(), (bounds[1:] - bounds[0]).tolist(), strict=True
    ):
        codes = rows[low:high][rows[low:high] >= 0]
        written.append(page._replace(values=_plain_texts(column.texts, offsets[codes], lengths[codes])))
    return written


class _Texts:
    """Bounds by code; None for one that is too long to be a bound."""

    def __init__(self, texts: pa.LargeBinaryArray, lengths: Longs) -> None:
        self._texts, self._lengths = texts, lengths

    def __getitem__(self, code: int) -> bytes | None:
        if code < 0:
            return b""
        return self._texts[code].as_py() if self._lengths[code] <= LONGEST_BOUND else None


class _Numbers:
    """Bounds that are numbers, by page."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values = values

    def __getitem__(self, page: int) -> bytes:
        return bytes(self._values[page].tobytes())


def _column_index(
    nulls: Longs, rows: Longs, low: npt.NDArray[Any], high: npt.NDArray[Any], bounds: Any
) -> bytes | None:
    """The column index of pages whose bounds compare as `low` and `high` do, and are written by `bounds`."""
    null_pages = nulls == rows
    least = [b"" if null else bounds[value] for value, null in zip(low.tolist(), null_pages.tolist(), strict=True)]
    most = [b"" if null else bounds[value] for value, null in zip(high.tolist(), null_pages.tolist(), strict=True)]
    return _index_bytes(null_pages, least, most, _boundary_order(low[~null_pages], high[~null_pages]), nulls)


def _index_bytes(
    null_pages: npt.NDArray[np.bool_], least: list[bytes | None], most: list[bytes | None], order: int, nulls: Longs
) -> bytes | None:
    if any(bound is None for bound in (*least, *most)):
        return None
    return t.struct(
        t.list_of(1, r.TRUE, [b"\x01" if null else b"\x02" for null in null_pages.tolist()]),
        t.list_of(2, r.BINARY, [t.prefixed(bound) for bound in least if bound is not None]),
        t.list_of(3, r.BINARY, [t.prefixed(bound) for bound in most if bound is not None]),
        t.i32(4, order),
        t.list_of(5, r.I64, [t.zigzag(count) for count in nulls.tolist()]),
    )


def _boundary_order(low: npt.NDArray[Any], high: npt.NDArray[Any]) -> int:
    if (low[1:] >= low[:-1]).all() and (high[1:] >= high[:-1]).all():
        return ASCENDING
    return DESCENDING if (low[1:] <= low[:-1]).all() and (high[1:] <= high[:-1]).all() else UNORDERED


def _fixed_bounds(values: npt.NDArray[Any], cuts: Longs, rows: Longs, nulls: Longs) -> tuple[bytes | None, Bounds]:
    """The column index and the bounds of a chunk. NaN is no bound: a page of nothing else leaves both untold."""
    filled = np.flatnonzero(cuts[1:] > cuts[:-1])
    if not filled.size:
        return _column_index(nulls, rows, np.zeros(rows.size), np.zeros(rows.size), _Numbers(values)), Bounds(
            None, None
        )
    floating = values.dtype.kind == "f"
    least, most = (np.fmin, np.fmax) if floating else (np.minimum, np.maximum)
    low, high = least.reduceat(values, cuts[filled]), most.reduceat(values, cuts[filled])
    if floating:
        if np.isnan(low).any():
            return None, Bounds(None, None)
        # zero has two signs, and a reader may look for either
        low, high = (
            np.where(low == 0, -0.0, low).astype(values.dtype),
            np.where(high == 0, 0.0, high).astype(values.dtype),
        )
    index: list[bytes | None] = [b""] * rows.size
    greatest = list(index)
    for place, one, other in zip(filled.tolist(), low, high, strict=True):
        index[place], greatest[place] = one.tobytes(), other.tobytes()
    column_index = _index_bytes(nulls == rows, index, greatest, _boundary_order(low, high), nulls)
    return column_index, Bounds(low.min().tobytes(), high.max().tobytes())

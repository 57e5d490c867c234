"""A batch: parts of row groups that are in memory together, decoded column by column.

Bytes of all pieces lie behind each other in one buffer, so that the pages of a column are listed, decompressed and
decoded by one call each, however many files they come from. A chunk that our page reader cannot read is written anew by
pyarrow, plainly, and read then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Damaged
from windrow.merging.inputs import Input
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import read_footer
from windrow.parquet.page_grammar import PROTECTED
from windrow.parquet.page_reader import Chunks, Coded, CodedRows, Fixed, scan_pages, unpack, unreadable, verify_pages
from windrow.splits.column_plans import ColumnPlan, Way

__all__ = ["COPIES", "KEY_AND_PLACE", "Batch", "MergeSource", "Piece"]

LACKING, FOREIGN = -1, -2

KEY_AND_PLACE, COPIES = 96, 3
"""A row has its key and its place in the order; a column is there as pages, as values, and as values in the order."""
PLACE, ARROW_COPIES = 64, 5
"""Keys are gone when pyarrow has a column; it takes more to decode, order and write it than the values in bytes."""


class Piece(NamedTuple):
    """Rows of a row group of an input, from `first` up to `last`."""

    input: int
    group: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class MergeSource:
    """The inputs and columns of a merge, for all of its batches."""

    inputs: Sequence[Input]
    columns: Sequence[ColumnPlan]
    chunks: npt.NDArray[np.void]
    """A chunk for each row group of all inputs and each column."""
    marks: npt.NDArray[np.int64]

    @cached_property
    def first_groups(self) -> npt.NDArray[np.int64]:
        """The row of `chunks` that each input begins at."""
        counts = [source.footer.row_group_rows.size for source in self.inputs]
        return np.cumsum([0, *counts])

    @cached_property
    def places(self) -> list[int]:
        """Of each column, how many ahead of it go by our own ways."""
        return list(accumulate((column.way is not Way.ARROW for column in self.columns), initial=0))

    @cached_property
    def roots(self) -> list[set[str]]:
        """The names of the columns of each input."""
        return [{leaf.path[0] for leaf in source.footer.leaves} for source in self.inputs]


@dataclass(frozen=True, eq=False)
class Batch:
    """Pieces in memory, input by input."""

    source: MergeSource
    pieces: Sequence[Piece]
    whole: Batch | None = None
    """That which has the bytes, when this is a part of it."""
    _readers: dict[int, pq.ParquetFile] = field(default_factory=dict)
    _sizes: dict[int, int] = field(default_factory=dict)

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """The row that each piece begins at; last how many rows all pieces have."""
        return np.cumsum([0, *(piece.last - piece.first for piece in self.pieces)])

    @property
    def rows(self) -> int:
        """How many rows all pieces have."""
        return int(self.starts[-1])

    @property
    def row_bytes(self) -> int:
        """The bytes a row that a batch takes at its worst, by the columns that were decoded."""
        return max(self._sizes.values(), default=0)

    def without(self, dropped: Collection[int]) -> Batch:
        """The same bytes, but none of the rows of some pieces."""
        pieces = [
            piece._replace(last=piece.first) if number in dropped else piece for number, piece in enumerate(self.pieces)
        ]
        return replace(self, pieces=pieces, whole=self.whole or self)

    def chunk_bytes(self, piece: int, leaf: int) -> memoryview:
        """The bytes of a column chunk as they lie in the file."""
        data, shifts = self._bytes
        chunk = self.source.inputs[self.pieces[piece].input].footer.chunks[self.pieces[piece].group :, leaf][:1]
        start = int(chunk_starts(chunk)[0] + shifts[piece])
        return memoryview(data)[start : start + int(chunk["total_compressed_size"][0])]

    def is_protected(self, piece: int) -> bool:
        """Whether all pages of a piece's row group state their checksums."""
        _, pages, _ = self._stored_pages(piece)
        return bool((pages["flags"] & PROTECTED != 0).all())

    def verify(self, piece: int) -> None:
        """Refuse a row group with a page that is not what was written."""
        verify_pages(*self._stored_pages(piece))

    def _stored_pages(self, number: int) -> tuple[memoryview, npt.NDArray[np.void], Chunks]:
        """All pages of a piece's row group, those of nested columns too."""
        piece, (data, shifts) = self.pieces[number], self._bytes
        source = self.source.inputs[piece.input]
        records = source.footer.chunks[piece.group]
        starts = chunk_starts(records) + shifts[number]
        place = f"{source.key}, row group {piece.group}, column"
        nothing = np.zeros(starts.size, np.int64)
        chunks = Chunks(
            starts=starts,
            ends=starts + records["total_compressed_size"],
            values=records["num_values"].astype(np.int64),
            codecs=records["codec"].astype(np.int64),
            nullable=nothing != 0,
            fixed=nothing != 0,
            first=nothing,
            last=nothing,
            names=[f"{place} {'.'.join(leaf.path)!r}" for leaf in source.footer.leaves],
        )
        if bool(((chunks.starts < 0) | (chunks.ends > len(data))).any()):
            raise Damaged(f"{place}s: a column chunk lies outside of the file; write it again")
        return memoryview(data), scan_pages(np.frombuffer(data, np.uint8), chunks), chunks

    def values(self, column: int) -> Coded | CodedRows | Fixed | pa.ChunkedArray:
        """A column of all rows."""
        values = self._decoded(column)
        self._sizes[column] = _row_bytes(values, self.rows) if self.rows else 0
        return values

    def _decoded(self, column: int) -> Coded | CodedRows | Fixed | pa.ChunkedArray:
        plan = self.source.columns[column]
        if plan.way is Way.ARROW:
            return self._by_arrow(plan)
        place, count = self.source.places[column], len(self.pieces)
        data, chunks, pages = (self.whole or self).headers
        low, high = (self.whole or self).page_bounds[place : place + 2]
        own = pages[low:high].copy()
        own["chunk"] -= place * count
        part = replace(chunks[place * count : (place + 1) * count], last=self._lasts)
        unpacked = unpack(data, own, part)
        return unpacked.coded() if plan.way is Way.CODED else unpacked.fixed(np.dtype(f"u{_width(plan)}"))

    @cached_property
    def _lasts(self) -> npt.NDArray[np.int64]:
        return np.array([piece.last for piece in self.pieces], np.int64)

    @cached_property
    def headers(self) -> tuple[memoryview, Chunks, npt.NDArray[np.void]]:
        """All bytes, the chunks of all columns that go by our own ways, column by column, and their pages."""
        data, chunks = self._fetch()
        own = [number for number, column in enumerate(self.source.columns) if column.way is not Way.ARROW]
        marks = self._rows_of(self.source.marks)[:, own].T.reshape(-1)
        pages = scan_pages(np.frombuffer(data, np.uint8), chunks)
        foreign = np.union1d(unreadable(pages, chunks), np.flatnonzero(marks == FOREIGN))
        if foreign.size:
            data, chunks = self._rewrite(data, chunks, own, foreign.tolist())
            pages = scan_pages(np.frombuffer(data, np.uint8), chunks)
        return memoryview(data), chunks, pages

    @cached_property
    def page_bounds(self) -> npt.NDArray[np.int64]:
        """The page that each column of `headers` begins at; last how many pages there are."""
        _, chunks, pages = self.headers
        return np.searchsorted(pages["chunk"], np.arange(0, len(chunks.names) + 1, len(self.pieces)))

    def _rows_of(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        first = self.source.first_groups
        return table[[int(first[piece.input]) + piece.group for piece in self.pieces]]

    def _fetch(self) -> tuple[bytes | memoryview, Chunks]:
        own = [column.way is not Way.ARROW for column in self.source.columns]
        marks = self._rows_of(self.source.marks)[:, own].T.reshape(-1)
        records = self._rows_of(self.source.chunks)[:, own].T.reshape(-1)
        data, shifts = self._bytes
        count = sum(own)
        starts = np.where(marks >= 0, chunk_starts(records) + np.tile(shifts, count), 0)
        ends = np.where(marks >= 0, starts + records["total_compressed_size"], 0)
        files = [f"{self.source.inputs[piece.input].key}, row group {piece.group}" for piece in self.pieces]
        columns = [column.name for column in self.source.columns if column.way is not Way.ARROW]
        names = [f"{file}, column {column!r}" for column in columns for file in files]
        rows = [self.source.inputs[piece.input].footer.row_group_rows[piece.group] for piece in self.pieces]
        outside = (starts < 0) | (ends < starts) | (ends > len(data))
        wrong = np.flatnonzero(outside | ((marks >= 0) & (records["num_values"] != np.tile(rows, count))))
        if wrong.size:
            raise Damaged(
                f"{names[wrong[0]]}: a column chunk lies outside of the file, or has not a value a row; write it again"
            )
        return data, Chunks(
            starts=starts,
            ends=ends,
            values=np.where(marks >= 0, records["num_values"], 0),
            codecs=records["codec"].astype(np.int64),
            nullable=marks != 0,
            fixed=np.repeat(
                [c.way is Way.FIXED for c in self.source.columns if c.way is not Way.ARROW], len(self.pieces)
            ),
            first=np.tile([piece.first for piece in self.pieces], count),
            last=np.tile([piece.last for piece in self.pieces], count),
            names=names,
        )

    @cached_property
    def _bytes(self) -> tuple[bytes | memoryview, npt.NDArray[np.int64]]:
        """The bytes of all pieces, and what has to be added to a position in a piece's file to find it there."""
        by_input: dict[int, list[int]] = {}
        for piece in self.pieces:
            by_input.setdefault(piece.input, []).append(piece.group)
        parts, shifts, size = [], [], 0
        for number, groups in by_input.items():
            shift_of: dict[int, int] = {}
            for start, data in self.source.inputs[number].fetch(groups):
                if start not in shift_of:
                    shift_of[start] = size - start
                    parts.append(data)
                    size += len(data)
                shifts.append(shift_of[start])
        return parts[0] if len(parts) == 1 else b"".join(parts), np.array(shifts, np.int64)

    def _rewrite(
        self, data: bytes | memoryview, chunks: Chunks, own: Sequence[int], foreign: Sequence[int]
    ) -> tuple[bytes, Chunks]:
        """Append chunks as pyarrow writes them, and let the foreign ones lie there."""
        parts, size, count = [bytes(data)], len(data), len(self.pieces)
        changed: dict[str, Any] = {
            name: getattr(chunks, name).copy() for name in ("starts", "ends", "values", "codecs", "nullable")
        }
        for number in foreign:
            column, piece = self.source.columns[own[number // count]], self.pieces[number % count]
            written, start, end = _plainly(self._read(piece, column), column)
            rows = self.source.inputs[piece.input].footer.row_group_rows[piece.group]
            for name, value in zip(changed, (size + start, size + end, rows, 0, True), strict=True):
                changed[name][number] = value
            parts.append(written)
            size += len(written)
        return b"".join(parts), replace(chunks, **changed)

    def _by_arrow(self, column: ColumnPlan) -> pa.ChunkedArray:
        parts = [
            self._read(piece, column).slice(piece.first, piece.last - piece.first)
            for piece in self.pieces
            if piece.last > piece.first
        ]
        chunks = [chunk for part in parts for chunk in part.chunks]
        return pa.chunked_array(chunks, column.field.type)

    def _read(self, piece: Piece, column: ColumnPlan) -> pa.ChunkedArray:
        """A column of a whole row group, by pyarrow."""
        source = self.source.inputs[piece.input]
        rows = int(source.footer.row_group_rows[piece.group])
        if column.name not in self.source.roots[piece.input]:
            return pa.chunked_array([pa.nulls(rows, column.field.type)])
        try:
            reader = self._readers.get(piece.input) or self._readers.setdefault(piece.input, source.reader())
            table = reader.read_row_group(piece.group, columns=[column.name])
            return table.column(column.name).cast(column.field.type)
        except (pa.ArrowException, OSError, KeyError) as error:
            where = f"{source.key}, row group {piece.group}, column {column.name!r}"
            raise Damaged(f"{where}: cannot be read: {error}; restore the file or take it out of the table") from error


def _row_bytes(values: Coded | CodedRows | Fixed | pa.ChunkedArray, rows: int) -> int:
    """The bytes a row that a batch takes while a column goes through the order."""
    if isinstance(values, pa.ChunkedArray):
        return PLACE + ARROW_COPIES * int(values.nbytes) // rows
    size = values.values.nbytes if isinstance(values, Fixed) else values.codes.nbytes + int(values.texts.nbytes)
    return KEY_AND_PLACE + COPIES * int(size) // rows


def _width(column: ColumnPlan) -> int:
    return 8 if column.dtype is None else column.dtype.itemsize


def _plainly(values: pa.ChunkedArray, column: ColumnPlan) -> tuple[bytes, int, int]:
    """A file with one chunk that our page reader reads, and where in it the chunk begins and ends."""
    sink = pa.BufferOutputStream()
    table = pa.table([values], schema=pa.schema([column.field.with_nullable(True)]))
    pq.write_table(
        table,
        sink,
        compression="none",
        row_group_size=max(len(values), 1),
        use_dictionary=column.way is Way.CODED,
        write_statistics=False,
        store_schema=False,
    )
    data = sink.getvalue().to_pybytes()
    chunks = read_footer(data, name=column.name).chunks[:, 0]
    start = int(chunk_starts(chunks)[0])
    return data, start, start + int(chunks["total_compressed_size"][0])

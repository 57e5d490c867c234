"""The few rows of a plan that match, out of pages that are cached: no file for an engine to open.

To open a file, an engine parses a footer and reads bytes in many small pieces, and then decodes pages of which it
needs a few rows. Pages of files that are read again are cached here (`reading.cells`). Runs of texts tell first which
ranges of rows match, then numbers and times in these ranges alone; other columns are read, and decoded, in the pages
and rows that are left. An engine is given a superset of the rows that matter, as with every plan, and filters them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.types import is_timestamp as is_time

from windrow.errors import Damaged
from windrow.model.predicate import And, Predicate, columns_of
from windrow.parquet.page_reader import Coded, CodedRows, Fixed, Unpacked
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.cells import Cells, DecimalPages, FixedPages, Key, Missing, Pages, TextPages, length_of
from windrow.reading.decoding import DECIMAL, MOST_BYTES, Column, Loaded, columns_of_schema, load
from windrow.reading.matching import matching_texts, matching_values
from windrow.reading.virtual_reader import ReadCounts
from windrow.storage import Store

__all__ = ["Decoding", "Gathered", "decoded_rows", "virtual_cost"]

MOST_COLUMNS = 256
"""Each column costs calls here, however few its rows are; an engine reads many of them faster."""

_MOST_BYTES_FOR_FEW = 2**26
"""What is read at once for rows that were chosen before."""

_FEW_TEXTS = 4096
_ATTEMPTS = 8
"""Columns are loaded by stages, and other threads may let them go meanwhile."""

# A model of both ways to the rows, by which one is chosen. `python -m benchmarks.read_costs` measures what constants
# stand for, on one core, rounded: near the point where both take as long it does not matter which is taken. Whether
# pages are cached is no part of it: both ways would have to decompress them.
_MICROSECOND, _NANOSECOND = 1e-6, 1e-9

OPEN = 300 * _MICROSECOND
"""An engine opens a virtual file: its name, footer and schema."""
CHUNK = 20 * _MICROSECOND
"""A chunk is read and its dictionary decoded by an engine."""
VALUE = 3 * _NANOSECOND
"""A value is decompressed, decoded and filtered by an engine."""
COLUMN = 15 * _MICROSECOND
"""Python calls a kernel for a column, and makes an array of what it returns."""
NUMBER = 3 * _NANOSECOND
"""A number is taken out of its page and handed to an engine."""
TEXT = 12 * _NANOSECOND
"""The same for a text, which is copied."""
LOOK = 2 * _NANOSECOND
"""A number is taken out of its page and compared with a literal."""
_MOST_OF_LOOKING = 1 / 8
"""What looking may take of the time of the other way, where it may be in vain."""

_Longs = NDArray[np.int64]


class Gathered(NamedTuple):
    """The rows of a plan, and what was read for them."""

    table: pa.Table
    counts: ReadCounts


def decoded_rows(
    cells: Cells,
    virtual: VirtualFile,
    needed: Predicate | None,
    *,
    threads: int = 1,
    anyway: bool = False,
    at: _Longs | None = None,
) -> Gathered | None:
    """The rows of a virtual file that fulfil a predicate, and perhaps others; None where an engine has to read files.

    Files that nobody has read before, and plans that an engine with so many threads reads faster, are left to it,
    unless it is to be done `anyway`. `at` are rows that are enough, in order: an engine would have to read all.
    """
    anyway = anyway or at is not None
    columns = _columns(cells, virtual)
    if columns is None:
        return None
    rows = _Rows(cells, virtual, columns, needed, None if anyway else threads, at)
    if not (rows.are_hot or anyway):
        return None
    try:
        for _ in range(_ATTEMPTS):
            try:
                with cells.lock:
                    table = rows.table()
                    cells.shrink()
                return None if table is None else Gathered(table, rows.counts)
            except Missing:
                # Others go on with their cells while these are read.
                if not rows.load():
                    return None
    except (Damaged, pa.ArrowInvalid):
        pass
    return None


def _columns(cells: Cells, virtual: VirtualFile) -> list[Column] | None:
    """The columns of a file that never changes, if all of them can be decoded here."""
    schema = virtual.schema
    # Values that are decoded here have the type that they had in their epoch.
    if not virtual.rows or len(schema.leaves) > MOST_COLUMNS or not virtual.is_steady or virtual.epoch is not None:
        return None
    # Pages that were cut by rows are in no file.
    if (virtual.placed.places[:, 3] < -1).any():
        return None
    columns: list[Column] | None = cells.schemas.get_or_make(schema, lambda: columns_of_schema(schema))
    return columns


def _keys(virtual: VirtualFile) -> list[Key]:
    roots: dict[Store, str] = {}
    keys = []
    for number, group, *_ in virtual.placed.places.tolist():
        file = virtual.files[number]
        root = roots.get(file.store)
        if root is None:
            root = roots[file.store] = str(file.store.root or "")
        keys.append((root, file.key, group))
    return keys


class _Rows:
    """The rows of a virtual file that match: looked for again after each time that pages were missing."""

    def __init__(
        self,
        cells: Cells,
        virtual: VirtualFile,
        columns: Sequence[Column],
        needed: Predicate | None,
        threads: int | None,
        at: _Longs | None,
    ) -> None:
        self._cells = cells
        self._virtual = virtual
        self._columns = columns
        self._at = at
        texts = sum(column.dtype is None for column in columns)
        self._decoding = Decoding(len(columns) - texts, texts)
        chunks, values = virtual.row_groups * len(columns), virtual.rows * len(columns)
        self._virtual_cost = inf if threads is None else virtual_cost(chunks, values, threads)
        self._keys = _keys(virtual)
        parts = [(part, columns_of(part)) for part in _parts(needed)]
        tests = [(column, [part for part, names in parts if names == {column.name}]) for column in columns]
        self._texts = [(column, some) for column, some in tests if some and column.dtype is None]
        self._numbers = [(column, some) for column, some in tests if some and column.dtype is not None]
        self._wanted: Sequence[Column] = columns
        self._ranges = np.empty(0, np.int64)
        self.counts = ReadCounts(0, 0, 0, len(self._keys))

    @cached_property
    def are_hot(self) -> bool:
        """Whether all files were requested before."""
        with self._cells.lock:
            return self._cells.are_hot(self._keys)

    def table(self) -> pa.Table | None:
        """The rows that may matter; None where it is faster to let an engine look for them."""
        if not self._is_worth_looking():
            return None
        self._ranges = self._pieces() if self._at is None else self._chosen(self._at)
        self._wanted = [column for column, _ in self._texts]
        for column, tests in self._texts:
            self._narrow_by_text(column, tests)
        self._wanted = [column for column, _ in self._numbers]
        for column, tests in self._numbers:
            self._narrow_by_number(column, tests)
        self._wanted = self._columns
        if not worth_decoding(self._decoding, self._virtual_cost, length_of(self._ranges)):
            return None
        arrays = [self._array(column) for column in self._columns]
        return pa.Table.from_arrays(arrays, names=[column.name for column in self._columns])

    def _is_worth_looking(self) -> bool:
        # Texts are looked at in runs, which takes next to nothing.
        if self._texts:
            return True
        tested = len(self._numbers) if any(not is_time(column.type) for column, _ in self._numbers) else 0
        return worth_looking(self._decoding, self._virtual_cost, self._virtual.rows, tested)

    def _pieces(self) -> _Longs:
        """The ranges of rows of all row groups of the file."""
        placed = self._virtual.placed
        begins = self._cells.addresses(self._keys) + placed.places[:, 4]
        return np.stack([begins, begins + placed.rows], axis=1).reshape(-1)

    def _chosen(self, at: _Longs) -> _Longs:
        """The ranges of rows that were chosen before."""
        rows = self._virtual.placed.rows
        ends = np.cumsum(rows)
        group = np.searchsorted(ends, at, "right")
        addresses = self._pieces()[::2][group] + at - (ends - rows)[group]
        begins = np.flatnonzero(np.append(len(at) > 0, addresses[1:] != addresses[:-1] + 1))
        last = np.append(begins[1:], len(at))[: len(begins)] - 1
        return np.stack([addresses[begins], addresses[last] + 1], axis=1).reshape(-1)

    def _narrow_by_text(self, column: Column, tests: Sequence[Predicate]) -> None:
        pages = self._text_pages(column)
        for test in tests:
            passing = matching_texts(test, pages.texts)
            if passing is not None:
                self._ranges = pages.narrow(passing, self._ranges)

    def _narrow_by_number(self, column: Column, tests: Sequence[Predicate]) -> None:
        from windrow.kernels.ranges import passing_rows

        values, valid = self._number_pages(column).take(self._ranges)
        passes = np.ones(len(values), bool)
        for test in tests:
            found = matching_values(test, values, column.type)
            if found is not None:
                passes &= found if valid is None else found & valid
        if not passes.all():
            out = np.empty(len(self._ranges) + len(passes), np.int64)
            self._ranges = out[: 2 * passing_rows(self._ranges, passes, out)].copy()

    def _array(self, column: Column) -> pa.Array:
        if column.dtype is None:
            pages = self._text_pages(column)
            codes, is_set = pages.take(self._ranges)
            numbers = pa.array(codes, mask=None if is_set is None else ~is_set)
            # An engine compares each text once then. Their number hardly changes from question to question.
            if len(pages.texts) <= _FEW_TEXTS:
                return pa.DictionaryArray.from_arrays(numbers, pages.texts)
            return pages.texts.take(numbers)
        values, valid = self._number_pages(column).take(self._ranges)
        bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(column.type, len(values), [bitmap, pa.py_buffer(values)])

    def _text_pages(self, column: Column) -> TextPages:
        return cast("TextPages", self._pages(column))

    def _number_pages(self, column: Column) -> FixedPages | DecimalPages:
        return cast("FixedPages | DecimalPages", self._pages(column))

    def _pages(self, column: Column) -> Pages:
        dtype = column.dtype

        def make() -> Pages:
            if dtype is None:
                return TextPages()
            return DecimalPages(dtype) if dtype == DECIMAL else FixedPages(dtype)

        return self._cells.pages(column.name, column.type, make)

    def load(self) -> bool:
        """Cache those pages that are missing, of the columns and ranges that were looked at; whether that could be."""
        with self._cells.lock:
            groups, columns = self._missing()
        most = MOST_BYTES if self._at is None else _MOST_BYTES_FOR_FEW
        read = load(self._virtual, groups.tolist(), columns, most_bytes=most)
        if read is None:
            return False
        loaded, counts = read
        with self._cells.lock:
            pieces = self._pieces()[::2][groups]
            for column, each in zip(columns, loaded, strict=True):
                _add(self._pages(column), pieces, self._virtual.placed.rows[groups], each)
        before = self.counts
        self.counts = ReadCounts(
            before.reads + counts.reads,
            before.bytes + counts.bytes,
            before.requests + counts.requests,
            min(before.cache_hits, len(self._keys) - len(groups)),
        )
        return True

    def _missing(self) -> tuple[_Longs, list[Column]]:
        """The row groups of the file that have rows in the ranges and lack a column, and columns that one lacks."""
        pieces = self._pieces()
        begun = np.searchsorted(np.sort(self._ranges[::2]), pieces[1::2])
        ended = np.searchsorted(np.sort(self._ranges[1::2]), pieces[::2], "right")
        touched = np.flatnonzero(begun > ended)
        ranges = pieces.reshape(-1, 2)[touched].reshape(-1)
        has = np.array([self._pages(column).has(ranges) for column in self._wanted])
        lacking = [column for column, each in zip(self._wanted, has, strict=True) if not each.all()]
        return touched[~has.all(axis=0)], lacking


def _add(pages: Pages, pieces: _Longs, rows: _Longs, loaded: Loaded) -> None:
    """Cache the pages of some row groups, which begin at addresses and have so many rows."""
    before = np.cumsum(loaded.rows) - loaded.rows
    ends = np.cumsum(rows)
    piece = np.minimum(np.searchsorted(ends, before, "right"), max(len(rows) - 1, 0))
    starts = pieces[piece] + before - (ends - rows)[piece]
    match pages, loaded.data:
        case FixedPages(), Unpacked() as data:
            pages.add(starts, data)
        case DecimalPages(), Fixed() as data:
            pages.add(starts, loaded.rows, data)
        case TextPages(), Coded() | CodedRows() as data:
            pages.add(starts, loaded.rows, data)


def _parts(needed: Predicate | None) -> tuple[Predicate, ...]:
    """What a row must meet, each by itself."""
    return needed.parts if isinstance(needed, And) else () if needed is None else (needed,)


@dataclass(frozen=True, slots=True)
class Decoding:
    """What would be taken out of cached pages."""

    numbers: int
    """Columns of numbers."""
    texts: int
    """Columns of texts."""

    def cost(self, rows: int) -> float:
        """The seconds that so many rows take."""
        per_row = self.numbers * NUMBER + self.texts * TEXT
        return (self.numbers + self.texts) * COLUMN + rows * per_row


def virtual_cost(chunks: int, values: int, threads: int) -> float:
    """The seconds until an engine has decoded so many chunks and values."""
    return OPEN + (chunks * CHUNK + values * VALUE) / max(min(threads, chunks), 1)


def worth_looking(decoding: Decoding, virtual: float, rows: int, tested: int) -> bool:
    """Whether rows are looked for here, of which numbers are `tested` that no statistics have ruled out.

    Where none is tested but times, which planning has narrowed down already, nearly all rows are taken.
    """
    if not tested:
        return decoding.cost(rows) <= virtual
    return rows * tested * LOOK <= virtual * _MOST_OF_LOOKING or decoding.cost(rows) <= virtual


def worth_decoding(decoding: Decoding, virtual: float, rows: int) -> bool:
    """Whether the rows that match are decoded here, now that their number is certain."""
    return decoding.cost(rows) <= virtual

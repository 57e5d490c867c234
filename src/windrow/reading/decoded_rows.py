"""The few rows of a small plan, out of what is cached decoded: no file for an engine to open.

To open a file, an engine parses a footer and reads bytes in many small pieces, and then decodes pages of which it
needs a few rows. So row groups of files that are read again are decoded here, once, and cached (`reading.cells`).
Rows that cannot fulfil the predicate are left out before: an engine is given a superset of the rows that matter, as
with every plan, and filters them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import Damaged
from windrow.model.predicate import And, Predicate, columns_of
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.cells import Cells, FixedCells, Key, TextCells
from windrow.reading.decoding import MOST_BYTES, Column, columns_of_schema, decode
from windrow.reading.matching import matching_texts, matching_values
from windrow.reading.virtual_reader import ReadCounts
from windrow.storage import Store

__all__ = ["Gathered", "decoded_rows"]

MOST_ROWS = 2**17
_MOST_ROWS_FOR_FEW, _MOST_BYTES_FOR_FEW = 2**21, 2**26
"""Bounds of what is decoded for rows that were chosen before: an engine would have to decode all of it, and sort it."""
MOST_COLUMNS = 256
"""Each column costs calls here, however few its rows are; an engine reads many of them faster."""

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
    anyway: bool = False,
    at: NDArray[np.int64] | None = None,
) -> Gathered | None:
    """The rows of a virtual file that fulfil a predicate, and perhaps others; None where an engine has to read files.

    Files that nobody has read before are left to engines, unless it is to be done `anyway`. `at` are rows that are
    enough.
    """
    columns = (
        _columns(cells, virtual) if at is None else _columns(cells, virtual, _MOST_ROWS_FOR_FEW, _MOST_BYTES_FOR_FEW)
    )
    if columns is None:
        return None
    keys = _keys(virtual)
    with cells.lock:
        if not (cells.are_hot(keys) or anyway or at is not None):
            return None
        numbers = cells.numbers(keys)
        missing = _missing(cells, columns, numbers)
        if not len(missing):
            return _gathered(cells, virtual, columns, numbers, ReadCounts(0, 0, 0, len(keys)), needed, at)
    # Others go on with their cells while these are read.
    try:
        decoded = decode(virtual, missing.tolist(), columns, most_bytes=_MOST_BYTES_FOR_FEW)
        if decoded is None:
            return None
        values, counts = decoded
        with cells.lock:
            numbers = cells.numbers(keys)
            for column, each in zip(columns, values, strict=True):
                # The compiler of types does not know that texts go with texts.
                _of(cells, column).add(numbers[missing], virtual.placed.rows[missing], each)  # type: ignore[arg-type]
            if len(_missing(cells, columns, numbers)):
                # Another thread let all cells go meanwhile.
                return None
            counts = counts._replace(cache_hits=len(keys) - len(missing))
            return _gathered(cells, virtual, columns, numbers, counts, needed, at)
    except (Damaged, pa.ArrowInvalid):
        return None


def _columns(
    cells: Cells, virtual: VirtualFile, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> list[Column] | None:
    """The columns of a small file that never changes, if all of them can be decoded here."""
    if not 0 < virtual.rows <= most_rows or int(virtual.chunks[:, 1].sum()) > most_bytes:
        return None
    schema = virtual.schema
    # Values that are decoded here have the type that they had in their epoch.
    if len(schema.leaves) > MOST_COLUMNS or not virtual.is_steady or virtual.epoch is not None:
        return None
    columns: list[Column] | None = cells.schemas.get_or_make(schema, lambda: columns_of_schema(schema))
    return columns


def _gathered(
    cells: Cells,
    virtual: VirtualFile,
    columns: Sequence[Column],
    numbers: _Longs,
    counts: ReadCounts,
    needed: Predicate | None,
    at: NDArray[np.int64] | None,
) -> Gathered:
    table = _Rows(cells, columns, numbers, virtual.placed.rows).table(needed, at)
    cells.shrink()
    return Gathered(table, counts)


def _missing(cells: Cells, columns: Sequence[Column], numbers: _Longs) -> _Longs:
    """The places of cells that lack a column."""
    return np.flatnonzero(~np.logical_and.reduce([_of(cells, column).has(numbers) for column in columns]))


def _of(cells: Cells, column: Column) -> FixedCells | TextCells:
    if column.dtype is None:
        return cells.texts(column.name)
    return cells.fixed(column.name, column.type, column.dtype)


def _keys(virtual: VirtualFile) -> list[Key]:
    roots: dict[Store, str] = {}
    keys = []
    for number, group, first, stop in virtual.placed.places.tolist():
        file = virtual.files[number]
        root = roots.get(file.store)
        if root is None:
            root = roots[file.store] = str(file.store.root or "")
        keys.append((root, file.key, group, first, stop))
    return keys


class _Rows:
    """The rows of some cells."""

    def __init__(self, cells: Cells, columns: Sequence[Column], numbers: _Longs, rows: _Longs) -> None:
        self._cells = cells
        self._columns = columns
        self._numbers = numbers
        self._ends = np.cumsum(rows)
        self._starts = self._ends - rows
        self._known: dict[str, tuple[NDArray[np.int32], _Longs]] = {}

    def table(self, needed: Predicate | None, at: _Longs | None) -> pa.Table:
        """The rows that may matter, of some or of all."""
        parts = [(part, columns_of(part)) for part in _parts(needed)]
        tests = {column.name: [part for part, names in parts if names == {column.name}] for column in self._columns}
        # Texts are few runs, so that they say soonest which rows there are to look at.
        for column in self._columns:
            if column.dtype is None:
                at = self._passing_texts(column, tests[column.name], at)
        at = np.arange(self._ends[-1]) if at is None else at
        cell = np.searchsorted(self._ends, at, "right")
        row = at - self._starts[cell]
        for column in self._columns:
            if column.dtype is not None and tests[column.name]:
                passes = self._passing(column, tests[column.name], cell, row)
                at, cell, row = at[passes], cell[passes], row[passes]
        arrays = [self._array(column, at, cell, row) for column in self._columns]
        return pa.Table.from_arrays(arrays, names=[column.name for column in self._columns])

    def _runs(self, column: Column) -> tuple[NDArray[np.int32], _Longs]:
        """The runs of a column of texts: the code of each, and where it ends, counted over all cells."""
        if column.name not in self._known:
            codes, lengths = self._cells.texts(column.name).runs(self._numbers)
            self._known[column.name] = codes, np.cumsum(lengths)
        return self._known[column.name]

    def _passing_texts(self, column: Column, tests: Sequence[Predicate], at: _Longs | None) -> _Longs | None:
        """Of the rows, or of all where that is None, those that may pass tests of a column."""
        for test in tests:
            passing = matching_texts(test, self._cells.texts(column.name).arrow)
            if passing is None:
                continue
            # The code of null is the last one.
            passing, (codes, ends) = np.append(passing, False), self._runs(column)
            if at is None:
                found = np.flatnonzero(passing[codes])
                first = np.where(found > 0, ends[found - 1], 0)
                at = _spread(first, ends[found] - first)
            else:
                at = at[passing[codes[np.searchsorted(ends, at, "right")]]]
        return at

    def _passing(self, column: Column, tests: Sequence[Predicate], cell: _Longs, row: _Longs) -> NDArray[np.bool_]:
        values, valid = _fixed(self._cells, column).take(self._numbers, cell, row)
        passes = np.ones(len(values), bool)
        for test in tests:
            found = matching_values(test, values, column.type)
            if found is not None:
                passes &= found if valid is None else found & valid
        return passes

    def _array(self, column: Column, at: _Longs, cell: _Longs, row: _Longs) -> pa.Array:
        if column.dtype is None:
            codes, ends = self._runs(column)
            chosen = codes[np.searchsorted(ends, at, "right")]
            return self._cells.texts(column.name).arrow.take(pa.array(chosen, mask=chosen < 0))
        values, valid = _fixed(self._cells, column).take(self._numbers, cell, row)
        bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(column.type, len(values), [bitmap, pa.py_buffer(values)])


def _spread(first: _Longs, lengths: _Longs) -> _Longs:
    """All numbers of ranges, one range behind the other."""
    return np.repeat(first - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))


def _fixed(cells: Cells, column: Column) -> FixedCells:
    return cells.fixed(column.name, column.type, column.dtype or "")


def _parts(needed: Predicate | None) -> tuple[Predicate, ...]:
    """What a row must meet, each by itself."""
    return needed.parts if isinstance(needed, And) else () if needed is None else (needed,)

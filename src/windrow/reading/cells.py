"""Columns of hot row groups, kept as they were decoded: runs of texts, and values of fixed width, end to end.

A cell is a row group, or one granule of it, of a file that never changes. What is kept of a column in all cells lies in
one array, so that the cells of a question are looked at together. Nothing of a question is kept, nor its answer. When
more is kept than may be, all of it is let go, and what is asked for next is kept again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow import forking
from windrow.bounded import BoundedCache
from windrow.parquet.page_reader import Coded, CodedRows, Fixed
from windrow.parquet.placement import VirtualSchema

__all__ = ["Cells", "FixedCells", "Key", "TextCells"]

Key = tuple[str, str, int, int, int]
"""Folder and key of a file, the row group, and its first granule and the one after the last; -1 where it is whole."""

_Longs = NDArray[np.int64]
_TEXT_BYTES = 150
"""What a text takes besides its bytes."""
_CELL_BYTES = 400
_MOST_FILES = 100_000
_MOST_SCHEMAS = 64


class Cells:
    """What is kept, within a budget of bytes; hold `lock` while you use it."""

    def __init__(self, budget: int) -> None:
        self.lock = threading.RLock()
        self._budget = budget
        self._seen: set[tuple[str, str]] = set()
        self.schemas: BoundedCache[VirtualSchema, Any] = BoundedCache("schemas of rows", _MOST_SCHEMAS)
        """What decodes the columns of a schema."""
        self.clear()
        forking.register(self)

    def after_fork(self) -> None:
        """Keep what is here, in a forked child, unless it was being changed."""
        is_whole, self.lock = forking.was_free(self.lock), threading.RLock()
        if not is_whole:
            self.clear()

    def clear(self) -> None:
        """Let everything go."""
        self._numbers: dict[Key, int] = {}
        self._fixed: dict[tuple[str, pa.DataType], FixedCells] = {}
        self._texts: dict[str, TextCells] = {}

    def are_hot(self, keys: Sequence[Key]) -> bool:
        """Whether all files were asked about before; from now on they were."""
        files = {key[:2] for key in keys}
        if files <= self._seen:
            return True
        if len(self._seen) > _MOST_FILES:
            self._seen.clear()
        self._seen |= files
        return False

    def numbers(self, keys: Sequence[Key]) -> _Longs:
        """The numbers of cells."""
        known = self._numbers
        return np.array([known.setdefault(key, len(known)) for key in keys], np.int64)

    def fixed(self, name: str, kind: pa.DataType, dtype: str) -> FixedCells:
        """A column of fixed width."""
        found = self._fixed.get((name, kind))
        if found is None:
            found = self._fixed[name, kind] = FixedCells(dtype)
        return found

    def texts(self, name: str) -> TextCells:
        """A column of texts."""
        found = self._texts.get(name)
        if found is None:
            found = self._texts[name] = TextCells()
        return found

    @property
    def weight(self) -> int:
        """How many bytes are kept."""
        columns = sum(each.weight for each in self._fixed.values()) + sum(each.weight for each in self._texts.values())
        return columns + _CELL_BYTES * len(self._numbers)

    def shrink(self) -> None:
        """Let everything go if it is more than may be kept."""
        if self.weight > self._budget:
            self.clear()


class _Growing:
    """An array that others are put behind."""

    def __init__(self, dtype: Any) -> None:
        self._room = np.empty(1024, dtype)
        self.size = 0

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self.size]

    @property
    def nbytes(self) -> int:
        return int(self._room.nbytes)

    def extend(self, more: NDArray[Any]) -> None:
        wanted = self.size + len(more)
        if wanted > len(self._room):
            room = np.empty(max(wanted, len(self._room) * 3 // 2), self._room.dtype)
            room[: self.size] = self.values
            self._room = room
        self._room[self.size : wanted] = more
        self.size = wanted


class _Starts:
    """Where the share of each cell begins, and how long it is; -1 is nowhere."""

    def __init__(self) -> None:
        self._table = np.full((1024, 2), -1, np.int64)

    def of(self, cells: _Longs) -> NDArray[np.int64]:
        """Begin and length of each, one a row."""
        if len(cells) and cells.max() >= len(self._table):
            table = np.full((int(cells.max()) * 3 // 2 + 1, 2), -1, np.int64)
            table[: len(self._table)] = self._table
            self._table = table
        found: NDArray[np.int64] = self._table[cells]
        return found

    def put(self, cells: _Longs, begins: _Longs, lengths: _Longs) -> None:
        self.of(cells)
        self._table[cells, 0], self._table[cells, 1] = begins, lengths

    @property
    def nbytes(self) -> int:
        return int(self._table.nbytes)


class FixedCells:
    """A column of fixed width: a value for each row."""

    def __init__(self, dtype: str) -> None:
        self._values = _Growing(dtype)
        self._valid: _Growing | None = None
        self._starts = _Starts()

    @property
    def weight(self) -> int:
        """How many bytes are kept."""
        return self._values.nbytes + self._starts.nbytes + (0 if self._valid is None else self._valid.nbytes)

    def has(self, cells: _Longs) -> NDArray[np.bool_]:
        """Which cells are there."""
        has: NDArray[np.bool_] = self._starts.of(cells)[:, 0] >= 0
        return has

    def add(self, cells: _Longs, rows: _Longs, found: Fixed) -> None:
        """Keep cells of so many rows each, which were decoded together."""
        begins = self._values.size + np.cumsum(rows) - rows
        if found.valid is not None and self._valid is None:
            self._valid = _Growing(np.bool_)
            self._valid.extend(np.ones(self._values.size, bool))
        if self._valid is not None:
            self._valid.extend(np.ones(len(found.values), bool) if found.valid is None else found.valid != 0)
        self._values.extend(found.values.view(self._values.values.dtype))
        self._starts.put(cells, begins, rows)

    def take(self, cells: _Longs, cell: _Longs, row: _Longs) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The values of rows, each by the place of its cell among some cells and its own place there; which are set."""
        at = self._starts.of(cells)[cell, 0] + row
        return self._values.values[at], None if self._valid is None else self._valid.values[at]


class TextCells:
    """A column of texts: runs of codes, which stand for the same text in all cells; that of null is -1."""

    def __init__(self) -> None:
        self._codes = _Growing(np.int32)
        self._lengths = _Growing(np.int64)
        self._starts = _Starts()
        self._known: dict[bytes, int] = {}
        self._arrow: pa.Array | None = None
        self._bytes = 0

    @property
    def weight(self) -> int:
        """How many bytes are kept."""
        return self._codes.nbytes + self._lengths.nbytes + self._starts.nbytes + self._bytes

    @property
    def arrow(self) -> pa.Array:
        """All texts, in the order of their codes."""
        if self._arrow is None or len(self._arrow) != len(self._known):
            self._arrow = pa.array(list(self._known), pa.binary()).cast(pa.string())
        return self._arrow

    def has(self, cells: _Longs) -> NDArray[np.bool_]:
        """Which cells are there."""
        has: NDArray[np.bool_] = self._starts.of(cells)[:, 0] >= 0
        return has

    def add(self, cells: _Longs, rows: _Longs, found: Coded | CodedRows) -> None:
        """Keep cells of so many rows each, which were decoded together; bytes that are no text are refused."""
        found.texts.cast(pa.large_string())
        edges = np.cumsum(rows)
        ends = np.arange(1, len(found.codes) + 1) if isinstance(found, CodedRows) else found.ends
        # A run may go on in the next cell.
        cut = np.union1d(ends, edges[rows > 0])
        codes = found.codes[np.searchsorted(ends, cut)]
        shared = np.array([*map(self._code, found.texts.to_pylist()), -1], np.int32)
        last = np.searchsorted(cut, edges, "right")
        first = np.concatenate([[0], last[:-1]])
        self._starts.put(cells, self._codes.size + first, last - first)
        self._codes.extend(shared[codes])
        self._lengths.extend(np.diff(cut, prepend=0))

    def _code(self, text: bytes) -> int:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = len(self._known)
            self._bytes += len(text) + _TEXT_BYTES
        return known

    def runs(self, cells: _Longs) -> tuple[NDArray[np.int32], _Longs]:
        """The runs of some cells, one behind the other: code and length of each."""
        begins, counts = self._starts.of(cells).T
        at = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        return self._codes.values[at], self._lengths.values[at]

"""Columns of hot row groups: pages that are decompressed, of texts the runs, from which questions take ranges of rows.

Rows of a row group have addresses that follow each other, and pages lie in order of addresses. Nothing of a question is
cached, nor its answer. When more is cached than the budget allows, all of it is let go, and fills again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow import forking
from windrow.bounded import BoundedCache
from windrow.errors import Damaged
from windrow.parquet.page_reader import Coded, CodedRows, Fixed, Unpacked
from windrow.parquet.placement import VirtualSchema

__all__ = ["Cells", "DecimalPages", "FixedPages", "Key", "Missing", "Pages", "TextPages", "length_of"]

Key = tuple[str, str, int]
"""Folder and key of a file, and the row group."""

_Longs: TypeAlias = NDArray[np.int64]
_ROW_BITS = 32
"""A row group has fewer rows than 2 to the power of it."""
_CODED, _DELTA = 0, 3
_FORM, _VALUES, _COUNT, _ENTRY, _ENTRIES = 0, 3, 5, 8, 9
_PLACES = [1, 2, 3, 4]
"""What counts bytes in the description of a page."""
_TEXT_BYTES = 150
"""What a text takes besides its bytes."""
_GROUP_BYTES = 400
_MOST_FILES = 100_000
_MOST_SCHEMAS = 64
_FEW_RANGES = 1024


class Missing(Exception):
    """Rows are in no page that is cached."""


def length_of(ranges: _Longs) -> int:
    """How many rows ranges have."""
    return int(ranges[1::2].sum() - ranges[::2].sum())


class Cells:
    """What is cached, within a budget of bytes; hold `lock` while you use it."""

    def __init__(self, budget: int) -> None:
        self.lock = threading.RLock()
        self._budget = budget
        self._seen: set[tuple[str, str]] = set()
        self.schemas: BoundedCache[VirtualSchema, Any] = BoundedCache("schemas of rows", _MOST_SCHEMAS)
        """What decodes the columns of a schema."""
        self.clear()
        forking.register(self)

    def after_fork(self) -> None:
        """Go on with what is here, in a forked child, unless it was being changed."""
        is_whole, self.lock = forking.was_free(self.lock), threading.RLock()
        if not is_whole:
            self.clear()

    def clear(self) -> None:
        """Let everything go."""
        self._groups: dict[Key, int] = {}
        self._columns: dict[tuple[str, pa.DataType], Pages] = {}

    def are_hot(self, keys: Sequence[Key]) -> bool:
        """Whether all files were requested before; from now on they were."""
        files = {key[:2] for key in keys}
        if files <= self._seen:
            return True
        if len(self._seen) > _MOST_FILES:
            self._seen.clear()
        self._seen |= files
        return False

    def addresses(self, keys: Sequence[Key]) -> _Longs:
        """The address of the first row of each row group."""
        groups = self._groups
        numbers = [groups.setdefault(key, len(groups)) for key in keys]
        return np.array(numbers, np.int64) << _ROW_BITS

    def pages(self, name: str, kind: pa.DataType, make: Callable[[], Pages]) -> Pages:
        """The pages of a column, of all row groups."""
        found = self._columns.get((name, kind))
        if found is None:
            found = self._columns[name, kind] = make()
        return found

    @property
    def weight(self) -> int:
        """How many bytes are cached."""
        return sum(each.weight for each in self._columns.values()) + _GROUP_BYTES * len(self._groups)

    def shrink(self) -> None:
        """Let everything go if it is more than the budget allows."""
        if self.weight > self._budget:
            self.clear()


class _Growing:
    """An array that others are put behind."""

    def __init__(self, dtype: Any) -> None:
        self.room = np.zeros(1024, dtype)
        self.size = 0

    @property
    def values(self) -> NDArray[Any]:
        return self.room[: self.size]

    @property
    def nbytes(self) -> int:
        return int(self.room.nbytes)

    def extend(self, more: NDArray[Any]) -> None:
        wanted = self.size + len(more)
        # Three spare words: a value of any width is cut out of two.
        if wanted + 24 > len(self.room):
            room = np.zeros(max(wanted + 1024, len(self.room) * 3 // 2) // 8 * 8, self.room.dtype)
            room[: self.size] = self.values
            self.room = room
        self.room[self.size : wanted] = more
        self.size = wanted


class Pages:
    """Which rows there are of a column: pages in order of the addresses of their first rows."""

    def __init__(self) -> None:
        self.starts = self.rows = self.places = np.empty(0, np.int64)
        self._count = 0

    @property
    def weight(self) -> int:
        """How many bytes are cached."""
        return 3 * self.starts.nbytes

    def has(self, ranges: _Longs) -> NDArray[np.bool_]:
        """Which ranges are there, of such as begin and end where pages do."""
        first, last = np.searchsorted(self.starts, ranges[::2]), np.searchsorted(self.starts, ranges[1::2])
        ends = np.concatenate([[0], np.cumsum(self.rows)])
        has: NDArray[np.bool_] = ends[last] - ends[first] == ranges[1::2] - ranges[::2]
        return has

    def _index(self, starts: _Longs, rows: _Longs) -> None:
        """Find pages from now on, which were put behind the others; one that was there before stays."""
        places = np.arange(self._count, self._count + len(starts))
        self._count += len(starts)
        new = ~np.isin(starts, self.starts) & (rows > 0)
        starts = np.concatenate([self.starts, starts[new]])
        order = np.argsort(starts, kind="stable")
        self.starts = starts[order]
        self.rows = np.concatenate([self.rows, rows[new]])[order]
        self.places = np.concatenate([self.places, places[new]])[order]


class FixedPages(Pages):
    """A column of numbers of a fixed width: pages that stay encoded, and a dictionary for each row group."""

    def __init__(self, dtype: str) -> None:
        super().__init__()
        self._dtype = np.dtype(dtype)
        self._word = np.dtype(f"u{self._dtype.itemsize}")
        self._bytes = _Growing(np.uint8)
        self._table = _Growing(np.int64)
        self._entries = _Growing(self._word)
        self._dictionaries: dict[int, tuple[int, int]] = {}
        self._largest = 0

    @property
    def weight(self) -> int:
        """How many bytes are cached."""
        return super().weight + self._bytes.nbytes + self._table.nbytes + self._entries.nbytes

    def add(self, starts: _Longs, found: Unpacked) -> None:
        """Cache pages that were decompressed together."""
        entries, table = found.entries(self._word), found.table.copy()
        shift = self._bytes.size - entries.nbytes
        table[:, _PLACES] += shift
        for page in np.flatnonzero(table[:, _FORM] == _CODED).tolist():
            table[page, _ENTRY] = self._entry(int(starts[page]) >> _ROW_BITS, table[page], entries)
        apart = table[table[:, _FORM] >= _DELTA, _COUNT]
        self._largest = max(self._largest, int(apart.max(initial=0)))
        self._bytes.extend(found.words.view(np.uint8)[entries.nbytes :])
        self._table.extend(table.reshape(-1))
        self._index(starts, found.page_rows)

    def _entry(self, group: int, page: _Longs, entries: NDArray[Any]) -> int:
        """The first entry of the dictionary of a row group, which all of its pages share."""
        first, count = int(page[_ENTRY]), int(page[_ENTRIES])
        known = self._dictionaries.get(group)
        if known is None or known[1] != count:
            known = self._dictionaries[group] = self._entries.size, count
            self._entries.extend(entries[first : first + count])
        return known[0]

    def take(self, ranges: _Longs) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The values of ranges of rows, and which are set; None when all are."""
        from windrow.kernels.ranges import DAMAGED, MISSING, values_of_ranges

        count = length_of(ranges)
        out, valid = np.empty(count, self._word), np.ones(count, np.uint8)
        found = values_of_ranges(
            self.starts,
            self.rows,
            self.places,
            self._bytes.room.view(np.uint64),
            self._table.values,
            self._entries.values,
            np.empty(self._largest, np.uint64),
            ranges,
            out,
            valid,
        )
        if found == MISSING:
            raise Missing
        if found == DAMAGED:
            raise Damaged("a page cannot be decoded; the file is damaged, write it again")
        return out.view(self._dtype), None if valid.all() else valid.view(np.bool_)


class DecimalPages(Pages):
    """A column of decimals: a value of 16 bytes for each row."""

    def __init__(self, dtype: str) -> None:
        super().__init__()
        self._values = _Growing(dtype)
        self._valid = _Growing(np.bool_)
        self._firsts = _Growing(np.int64)

    @property
    def weight(self) -> int:
        """How many bytes are cached."""
        return super().weight + self._values.nbytes + self._valid.nbytes + self._firsts.nbytes

    def add(self, starts: _Longs, rows: _Longs, found: Fixed) -> None:
        """Cache pages of so many rows each, which were decoded together."""
        self._firsts.extend(self._values.size + np.cumsum(rows) - rows)
        self._valid.extend(np.ones(len(found.values), bool) if found.valid is None else found.valid != 0)
        self._values.extend(found.values.view(self._values.room.dtype))
        self._index(starts, rows)

    def take(self, ranges: _Longs) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The values of ranges of rows, and which are set; None when all are."""
        lengths = ranges[1::2] - ranges[::2]
        row = np.repeat(ranges[::2] - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
        page = np.searchsorted(self.starts, row, "right") - 1
        if len(page) and (page.min() < 0 or (row >= (self.starts + self.rows)[page]).any()):
            raise Missing
        at = self._firsts.values[self.places[page]] + row - self.starts[page]
        valid: NDArray[np.bool_] = self._valid.values[at]
        return self._values.values[at], None if valid.all() else valid


class TextPages(Pages):
    """A column of texts: runs of codes, which stand for the same text in all pages; that of null is -1."""

    def __init__(self) -> None:
        super().__init__()
        self._codes = _Growing(np.int32)
        self._ends = _Growing(np.int64)
        self._firsts = self._counts = np.empty(0, np.int64)
        self._runs = self._firsts, self._counts
        self._texts: dict[bytes, int] = {}
        self._arrow: pa.Array | None = None
        self._bytes = 0

    @property
    def weight(self) -> int:
        """How many bytes are cached."""
        return super().weight + self._codes.nbytes + self._ends.nbytes + self._bytes

    @property
    def texts(self) -> pa.Array:
        """All texts, in the order of their codes."""
        if self._arrow is None or len(self._arrow) != len(self._texts):
            self._arrow = pa.array(list(self._texts), pa.binary()).cast(pa.string())
        return self._arrow

    def add(self, starts: _Longs, rows: _Longs, found: Coded | CodedRows) -> None:
        """Cache pages of so many rows each, which were decoded together; bytes that are no text are refused."""
        found.texts.cast(pa.large_string())
        edges = np.cumsum(rows)
        ends = np.arange(1, len(found.codes) + 1) if isinstance(found, CodedRows) else found.ends
        # A run may go on in the next page.
        cut = np.union1d(ends, edges[rows > 0])
        codes = found.codes[np.searchsorted(ends, cut)]
        shared = np.array([*map(self._code, found.texts.to_pylist()), -1], np.int32)
        last = np.searchsorted(cut, edges, "right")
        first = np.concatenate([[0], last[:-1]]).astype(np.int64)
        self._firsts = np.concatenate([self._firsts, self._codes.size + first])
        self._counts = np.concatenate([self._counts, last - first])
        self._codes.extend(shared[codes])
        self._ends.extend(cut - np.repeat(edges - rows, last - first))
        self._index(starts, rows)
        self._runs = self._firsts[self.places], self._counts[self.places]

    def _code(self, text: bytes) -> int:
        code = self._texts.get(text)
        if code is None:
            code = self._texts[text] = len(self._texts)
            self._bytes += len(text) + _TEXT_BYTES
        return code

    def narrow(self, passing: NDArray[np.bool_], ranges: _Longs) -> _Longs:
        """The rows of ranges whose text passes, by its code."""
        from windrow.kernels.ranges import FULL, MISSING, passing_runs

        room = _FEW_RANGES
        while True:
            out = np.empty(2 * room, np.int64)
            count = passing_runs(
                self.starts, self.rows, *self._runs, self._codes.values, self._ends.values, passing, ranges, out
            )
            if count == MISSING:
                raise Missing
            if count != FULL:
                return out[: 2 * count].copy()
            room *= 8

    def take(self, ranges: _Longs) -> tuple[NDArray[np.int32], NDArray[np.bool_] | None]:
        """The codes of ranges of rows, and which are set; None when all are."""
        from windrow.kernels.ranges import MISSING, codes_of_ranges

        out = np.empty(length_of(ranges), np.int32)
        found = codes_of_ranges(self.starts, self.rows, *self._runs, self._codes.values, self._ends.values, ranges, out)
        if found == MISSING:
            raise Missing
        return out, None if found == len(out) else out >= 0

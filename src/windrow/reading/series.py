"""Key columns of row groups, decoded: which series they hold and where, and values of single columns.

What is cached are columns as files hold them, of files that never change; nothing of a question, nor its answer. When
more is cached than the budget allows, all of it is let go, and fills again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow import forking
from windrow.bounded import BoundedCache
from windrow.parquet.page_reader import CodedRows, Fixed
from windrow.parquet.placement import VirtualSchema
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.decoding import Column, columns_of_schema, decode

__all__ = ["Columns", "Numbers", "Runs", "SeriesCache", "UnreadableError"]

_Longs = NDArray[np.int64]
_NULL = -1
_TEXT_BYTES = 150
"""What a text takes besides its bytes."""
_MOST_SCHEMAS = 64
_MOST_BYTES = 64 * 2**20
"""Of the chunks of a column that are decoded at once."""


class UnreadableError(Exception):
    """A column is not decoded here; engines read it."""


class Numbers:
    """A number for each value of a column, the same in all row groups."""

    def __init__(self) -> None:
        self._of: dict[bytes, int] = {}
        self._texts: pa.Array | None = None

    def __len__(self) -> int:
        return len(self._of)

    def of(self, values: Iterable[bytes]) -> _Longs:
        """The numbers of values; those of new ones follow the others."""
        return np.array([self._of.setdefault(value, len(self._of)) for value in values], np.int64)

    @property
    def texts(self) -> pa.Array:
        """The values, which are texts, in the order of their numbers."""
        if self._texts is None or len(self._texts) < len(self._of):
            self._texts = pa.array(list(self._of), pa.binary()).cast(pa.string())
        return self._texts


class Runs(NamedTuple):
    """A column of some row groups as runs of numbers, one behind the other; that of null is -1."""

    numbers: Numbers
    codes: _Longs
    ends: Sequence[_Longs]
    """Of each row group: where runs end, counted in it."""


class SeriesCache:
    """Decoded columns of row groups, within a budget of bytes."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._lock = threading.RLock()
        self.schemas: BoundedCache[VirtualSchema, list[Column] | None] = BoundedCache(
            "schemas of series", _MOST_SCHEMAS
        )
        """What decodes the columns of a schema."""
        self._clear()
        forking.register(self)

    def after_fork(self) -> None:
        """Keep what is here, in a forked child, unless it was being changed."""
        is_whole, self._lock = forking.was_free(self._lock), threading.RLock()
        if not is_whole:
            self._clear()

    def _clear(self) -> None:
        self._entries: dict[tuple[Any, ...], Any] = {}
        self._numbers: dict[tuple[str, pa.DataType], Numbers] = {}
        self._weight = self._weight_of_numbers = 0

    def begin(self) -> None:
        """Make room for a search, whose numbers are given by the same givers."""
        with self._lock:
            if self._weight_of_numbers > self._budget // 2:
                self._clear()

    def get(self, key: tuple[Any, ...]) -> Any:
        """What is cached under a key, or None."""
        return self._entries.get(key)

    def put(self, key: tuple[Any, ...], value: Any, weight: int) -> None:
        """Cache a value, if there is room for it at all."""
        with self._lock:
            if self._weight + self._weight_of_numbers + weight > self._budget:
                self._entries, self._weight = {}, 0
            elif key not in self._entries:
                self._entries[key] = value
                self._weight += weight

    def numbered(self, column: Column, values: Sequence[bytes]) -> tuple[Numbers, _Longs]:
        """The numbers of values of a column, and who gave them: those of different givers cannot be compared."""
        with self._lock:
            numbers = self._numbers.setdefault((column.name, column.type), Numbers())
            before = len(numbers)
            found = numbers.of(values)
            self._weight_of_numbers += (len(numbers) - before) * _TEXT_BYTES
            return numbers, found


class Columns:
    """Columns of the row groups of a virtual file."""

    def __init__(self, cache: SeriesCache, virtual: VirtualFile) -> None:
        columns = cache.schemas.get_or_make(virtual.schema, lambda: columns_of_schema(virtual.schema))
        if columns is None or not virtual.is_steady or virtual.epoch is not None:
            raise UnreadableError
        cache.begin()
        self._cache = cache
        self._virtual = virtual
        self._columns = {column.name: column for column in columns}
        self._places = [_place(virtual, *place) for place in virtual.placed.places.tolist()]
        self.rows = virtual.placed.rows

    def column(self, name: str) -> Column:
        """How a column is decoded."""
        if name not in self._columns:
            raise UnreadableError
        return self._columns[name]

    def runs(self, name: str, groups: Sequence[int]) -> Runs:
        """The runs of a column in row groups."""
        column = self.column(name)
        found = [self._runs(column, group) for group in groups]
        if not found:
            return Runs(Numbers(), np.empty(0, np.int64), [])
        if any(each.numbers is not found[0].numbers for each in found):
            # All was let go meanwhile.
            raise UnreadableError
        codes = np.concatenate([each.codes for each in found])
        return Runs(found[0].numbers, codes, [ends for each in found for ends in each.ends])

    def _runs(self, column: Column, group: int) -> Runs:
        key = self._key(column, group, "runs")
        cached: Runs | None = self._cache.get(key)
        if cached is None:
            cached = self._coded(column, group)
            self._cache.put(key, cached, 2 * int(cached.codes.nbytes))
        return cached

    def _coded(self, column: Column, group: int) -> Runs:
        decoded: Any = self._decoded(column, group)
        if isinstance(decoded, Fixed):
            return self._of_bits(column, decoded)
        numbers, shared = self._cache.numbered(column, decoded.texts.to_pylist())
        ends = np.arange(1, len(decoded.codes) + 1) if isinstance(decoded, CodedRows) else decoded.ends
        return Runs(numbers, np.append(shared, _NULL)[decoded.codes], [ends.astype(np.int64)])

    def _of_bits(self, column: Column, decoded: Fixed) -> Runs:
        """Values of fixed width as runs, told apart by their bits."""
        bits, count = decoded.values.view(f"V{decoded.values.dtype.itemsize}"), len(decoded.values)
        valid = np.ones(count, bool) if decoded.valid is None else decoded.valid != 0
        starts = np.flatnonzero(np.append(count > 0, (bits[1:] != bits[:-1]) | (valid[1:] != valid[:-1])))
        numbers, codes = self._cache.numbered(column, [each.tobytes() for each in bits[starts]])
        ends = np.append(starts[1:], count)[: len(starts)].astype(np.int64)
        return Runs(numbers, np.where(valid[starts], codes, _NULL), [ends])

    def fixed(self, name: str, group: int) -> Fixed:
        """The values of a column of fixed width in a row group."""
        column = self.column(name)
        key = self._key(column, group, "values")
        cached: Fixed | None = self._cache.get(key)
        if cached is None:
            found = self._decoded(column, group)
            if not isinstance(found, Fixed):
                raise UnreadableError
            cached = Fixed(found.values.view(column.dtype or found.values.dtype), found.valid)
            self._cache.put(key, cached, int(cached.values.nbytes))
        return cached

    def nulls(self, name: str, group: int, rows: _Longs) -> bool:
        """Whether a column has a null in some rows of a row group."""
        if self.column(name).dtype is not None:
            valid = self.fixed(name, group).valid
            return valid is not None and not valid[rows].all()
        _, codes, [ends] = self.runs(name, [group])
        return bool((codes[np.searchsorted(ends, rows, "right")] == _NULL).any())

    def _decoded(self, column: Column, group: int) -> Any:
        found = decode(self._virtual, [group], [column], most_bytes=_MOST_BYTES)
        if found is None:
            raise UnreadableError
        return found[0][0]

    def _key(self, column: Column, group: int, what: str) -> tuple[Any, ...]:
        return self._places[group], column.name, column.type, what


def _place(virtual: VirtualFile, number: int, *place: int) -> tuple[Any, ...]:
    """What a row group, or a part of it, is cached under."""
    file = virtual.files[number]
    return file.store.root or file.store.url, file.key, *place

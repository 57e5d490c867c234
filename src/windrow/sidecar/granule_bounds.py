"""Bounds of columns in the granules of row groups: by the row group, by keys, and by the file's page index.

Keys tell of sort columns, and are in the sidecar. Of other columns the column index of the Parquet file tells, which
has bounds for every page; it is read on request, since it lies in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windrow.errors import Damaged
from windrow.parquet.page_index import ColumnIndex, parse_column_index
from windrow.parquet.schema import PhysicalType
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.encoding import stored_values
from windrow.pruning.key_bounds import KeyBounds, key_bounds, tied, tightened
from windrow.pruning.pruner import BoundsOf
from windrow.pruning.types import Family
from windrow.sidecar.columns import NUMBERS
from windrow.sidecar.flat_columns import FlatColumn
from windrow.sidecar.granules import FirstKeys, GranuleIndex, first_keys

__all__ = ["GranuleBounds", "PageIndexes"]

PageIndexes: TypeAlias = Callable[[int, int], bytes | None]
"""The column index of a column, by row group and position of the column; None where there is none to be had."""


class SomeGranules(NamedTuple):
    """The granules of some row groups, among those of others."""

    whole: GranuleBounds
    units: NDArray[np.int64]
    """Their places among all."""
    ends: Mapping[int, tuple[int, int]]
    """Where those of each row group begin and end among these."""

    def bounds_of(self, name: str) -> Bounds | None:
        """The bounds of a column in every granule."""
        bounds = self.whole.bounds_of(name)
        return None if bounds is None else bounds.take(self.units)

    def split(self, may_match: Mask) -> dict[int, Mask]:
        """A mask of these granules, by row group."""
        return {place: may_match[first:last] for place, (first, last) in self.ends.items()}


class GranuleBounds:
    """The granules of some row groups, and the bounds of their columns."""

    def __init__(
        self, indexes: Mapping[int, GranuleIndex], inherited: BoundsOf, columns: Mapping[str, FlatColumn]
    ) -> None:
        sizes = np.array([len(index.rows) for index in indexes.values()], np.int64)
        self._starts = np.cumsum(sizes) - sizes
        self._size = int(sizes.sum())
        self._indexes = indexes
        self._inherited = inherited
        self._columns = columns
        self._places = {place: (at, at + len(index.rows)) for at, (place, index) in self._numbered()}
        self._by_key: dict[str, Bounds | None] = {}

    def _numbered(self) -> zip[tuple[int, tuple[int, GranuleIndex]]]:
        return zip(self._starts.tolist(), self._indexes.items(), strict=True)

    def some(self, row_groups: Sequence[int]) -> SomeGranules:
        """Those of some row groups, as far as these are among them."""
        ends, units, count = {}, [np.empty(0, np.int64)], 0
        for place in row_groups:
            if place in self._places:
                first, last = self._places[place]
                units.append(np.arange(first, last))
                ends[place] = count, count + last - first
                count += last - first
        return SomeGranules(self, np.concatenate(units), ends)

    def __len__(self) -> int:
        return self._size

    def split(self, may_match: Mask) -> dict[int, Mask]:
        """A mask of all granules, by row group."""
        parts = np.split(may_match, self._starts[1:]) if self._indexes else []
        return dict(zip(self._indexes, parts, strict=True))

    def are_bounded_by_keys(self) -> bool:
        """Whether all columns are keys: page indexes know no more of them."""
        columns = {column.position for column in self._columns.values()}
        return all(columns <= {key.column for key in index.keys} for index in self._indexes.values())

    def bounds_of(self, name: str) -> Bounds | None:
        """The bounds of a column in every granule: those of its row group, and tighter ones from the keys."""
        if name not in self._by_key:
            self._by_key[name] = self._each(name, self._by_keys)
        return self._by_key[name]

    def with_pages(self, pages: PageIndexes) -> BoundsOf:
        """The same, and of columns that are no keys what page indexes tell."""

        def bounds_of(name: str) -> Bounds | None:
            return self._each(name, lambda *place: self._by_pages(pages, *place))

        return bounds_of

    def _each(self, name: str, bounds: Callable[[int, int, str, FlatColumn], Bounds]) -> Bounds | None:
        column = self._columns.get(name)
        if column is None or not self._indexes:
            return self._inherited(name)
        return Bounds.joined([bounds(at, group, name, column) for at, group in enumerate(self._indexes)])

    def _by_keys(self, at: int, row_group: int, name: str, column: FlatColumn) -> Bounds:
        """The bounds of the granules of one row group; they are worked out once."""
        index = self._indexes[row_group]
        bounds: Bounds | None = index.derived.get(column)
        if bounds is None:
            inherited = self._inherited(name)
            assert inherited is not None  # noqa: S101 (the column is there)
            owners = np.full(len(index.rows), at)
            bounds = index.derived[column] = tightened(inherited.take(owners), _bounds_by_keys(index, column))
        return bounds

    def _by_pages(self, pages: PageIndexes, at: int, row_group: int, name: str, column: FlatColumn) -> Bounds:
        index, by_keys = self._indexes[row_group], self._by_keys(at, row_group, name, column)
        if _level(index, column) is not None or not index.page_sizes[column.position].all():
            return by_keys
        place = column, "pages"
        if place not in index.derived:
            data = pages(row_group, column.position)
            by_pages = None if data is None else _bounds_by_pages(data, index, column, by_keys)
            if by_pages is None:
                return by_keys
            index.derived[place] = tightened(by_keys, by_pages)
        tighter: Bounds = index.derived[place]
        return tighter


def _level(index: GranuleIndex, column: FlatColumn) -> int | None:
    """Which of the keys a column is."""
    return next((level for level, key in enumerate(index.keys) if key.column == column.position), None)


def _bounds_by_keys(index: GranuleIndex, column: FlatColumn) -> KeyBounds:
    size, level = len(index.rows), _level(index, column)
    if level is None:
        return KeyBounds.unknown(size, column.type)
    key, before = index.keys[level], [key.values() for key in index.keys[:level]]
    values, present = _values(key, column)
    return key_bounds(values, present, key.nulls, tied(before, size), descending=column.descending)


def _bounds_by_pages(data: bytes, granules: GranuleIndex, column: FlatColumn, by_keys: Bounds) -> KeyBounds | None:
    """The bounds of a column index; None for one that is damaged, or that contradicts the granule index."""
    try:
        index = parse_column_index(data, name="column index")
    except Damaged:
        return None
    rows, nulls, counts = granules.rows, index.null_pages, index.null_counts
    if len(nulls) != len(rows):
        return None
    if counts is not None and ((counts < 0) | (counts > rows) | (nulls & (counts != rows))).any():
        return None
    low, has_low = _page_values(index, index.min_values, column)
    high, has_high = _page_values(index, index.max_values, column)
    nowhere = np.zeros(len(rows), bool)
    # Where the bounds of the row group are not to be trusted, neither are those of its pages.
    has_minimum, has_maximum = by_keys.usable
    null_free = nowhere if counts is None else counts == 0
    return KeyBounds(low, has_low & has_minimum, high, has_high & has_maximum, nulls, null_free, nowhere)


def _page_values(index: ColumnIndex, values: list[bytes], column: FlatColumn) -> tuple[NDArray[Any], Mask]:
    cells = [None if null else value for value, null in zip(values, index.null_pages.tolist(), strict=True)]
    bounds, present = _values(first_keys(column.position, cells), column)
    if column.type.family is Family.NUMBER and column.physical_type == PhysicalType.BYTE_ARRAY:
        return bounds, np.zeros(len(present), bool)  # a number that lost its last bytes is another number
    return bounds, present


def _values(key: FirstKeys, column: FlatColumn) -> tuple[NDArray[Any], Mask]:
    present, dtype = ~key.nulls, NUMBERS.get(column.physical_type)
    if dtype is None:
        raw = np.empty(len(present), object)
        raw[:] = [value or b"" for value in key.values()]
        return stored_values(raw, present, column.type, column.length)
    raw = np.zeros(len(present), dtype)
    if (np.diff(key.ends, prepend=np.uint32(0)) != present * dtype.itemsize).any():
        return stored_values(raw, np.zeros(len(present), bool), column.type)
    raw[present] = np.frombuffer(key.data, dtype)
    return stored_values(raw, present, column.type)

"""Pruning by a sidecar: which row groups, and which granules inside of them, can hold a row that matches.

Only the columns that a predicate names are touched. What costs less comes first: null counts and bounds, then bloom
filters, then the keys that granules start with, then page indexes. A name counts only where it stands for exactly one
flat column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windrow.model.operators import Literal, Test, literals_of, operator_of
from windrow.model.predicate import Predicate, columns_of, value_tests
from windrow.model.rows import Rows
from windrow.parquet.schema import PhysicalType
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.encoding import cells_of, stored_values
from windrow.pruning.key_bounds import KeyBounds, completed
from windrow.pruning.pruner import Pruner, Verdict, compile_predicate
from windrow.pruning.types import ColumnType, Family
from windrow.sidecar import layout
from windrow.sidecar.columns import NUMBERS, Bound, ColumnChunks
from windrow.sidecar.flat_columns import FlatColumn, flat_column
from windrow.sidecar.granule_bounds import GranuleBounds, PageIndexes
from windrow.sidecar.granules import GranuleIndex
from windrow.sidecar.layout import PageFlag, SnapshotCode
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.time_search import row_groups_in_time

__all__ = [
    "FEW_ROW_GROUPS",
    "MOST_JUDGED",
    "Granules",
    "OthersOf",
    "Read",
    "SidecarPruner",
    "Step",
    "nan_free",
    "prune",
    "prune_granules",
]

Read: TypeAlias = Callable[[int, int], bytes]
"""Bytes of the Parquet file, by offset and length."""

OthersOf: TypeAlias = Callable[[str, ColumnType], KeyBounds | None]
"""What others than the sidecar know of a column of a type in every row group."""

_Places: TypeAlias = NDArray[np.int64]
"""Positions of row groups."""
_FILTER_BLOCK = 32
FEW_ROW_GROUPS = 256
"""Of so few, bounds are worked out once for all of them, and judged together; of more, those in question alone."""
MOST_JUDGED = 32
"""Columns of a sidecar whose bounds stay."""
_WORTH_AN_INDEX = 8
"""Granules of a row group; fewer are read in the time that their index takes."""
_FIRST_INDEXES = 8
_FLAGS_WORD = layout.PAGES.fields["flags"][1] // layout.WORD  # type: ignore[index]


class Granules(NamedTuple):
    """What is left of one row group."""

    row_group: int
    kept: Mask | None
    """Granules that can hold a matching row; None without an index: the row group stays whole."""

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """Runs of kept granules, each from its first to before its end; a row group that stays whole counts as one."""
        if self.kept is None:
            return [(0, 1)]
        ranges: list[tuple[int, int]] = []
        for place in np.flatnonzero(self.kept).tolist():
            if ranges and ranges[-1][1] == place:
                ranges[-1] = ranges[-1][0], place + 1
            else:
                ranges.append((place, place + 1))
        return ranges

    @property
    def left(self) -> int | None:
        """How many granules are left; None where the row group stays whole."""
        return None if self.kept is None else int(np.count_nonzero(self.kept))


@dataclass(frozen=True, slots=True)
class Step:
    """How many units one step of pruning judged, and how many it left."""

    step: str
    units: str
    asked: int
    kept: int


class SidecarPruner:
    """A predicate, for any number of sidecars."""

    def __init__(self, predicate: Predicate) -> None:
        self._predicate = predicate
        self._names = sorted(columns_of(predicate))
        self._literals: dict[str, list[Literal]] = {name: [] for name in self._names}
        tests = list(value_tests(predicate))
        for test in tests:
            self._literals[test.column] += literals_of(test)
        self._compiled: dict[tuple[ColumnType | None, ...], Pruner] = {}
        self._last: tuple[Sidecar, _Inquiry] | None = None
        self.point_columns = frozenset(test.column for test in tests if _names_points(test))
        """Columns with tests for single values, where a bloom filter can help."""

    @property
    def columns(self) -> list[str]:
        """The columns that the predicate names."""
        return self._names

    def prune(self, sidecar: Sidecar, read: Read | None = None, *, among: Mask | None = None) -> Mask:
        """The row groups that can hold a matching row; `read` gives bloom filters that are not in the sidecar.

        `among` are those in question, if not all.
        """
        inquiry = self._inquiry(sidecar)
        return inquiry.by_filters(inquiry.by_bounds(among), read)

    def prune_more(self, sidecar: Sidecar, kept: Mask, others: OthersOf) -> Mask:
        """The row groups, of those that may match, that the sidecar and others leave together."""
        return self._inquiry(sidecar).by_others(kept, others)

    def judge(self, sidecar: Sidecar, others: OthersOf | None = None) -> Verdict:
        """What null counts and bounds prove of each row group: that no row matches, or that every row does."""
        return self._inquiry(sidecar).verdict(others)

    def prune_granules(self, sidecar: Sidecar, kept: Mask) -> list[Granules]:
        """What is left of each row group that may match."""
        return self._inquiry(sidecar).by_keys(kept)

    def prune_pages(self, sidecar: Sidecar, left: Sequence[Granules], pages: PageIndexes) -> list[Granules]:
        """What page indexes leave of the granules that are left: they tell of columns that are no keys."""
        return self._inquiry(sidecar).by_pages(left, pages)

    def explain(self, sidecar: Sidecar, read: Read | None = None) -> Rows[Step]:
        """What each step of pruning leaves."""
        inquiry = self._inquiry(sidecar)
        row_groups = np.ones(sidecar.row_group_count, bool)
        by_step = {"all-null": inquiry.by_nulls(), "statistics": inquiry.by_bounds()}
        by_step["bloom filters"] = inquiry.by_filters(by_step["statistics"], read)
        steps = []
        for step, kept in by_step.items():
            steps.append(Step(step, "row groups", int(row_groups.sum()), int(kept.sum())))
            row_groups = kept
        masks = [each.kept for each in inquiry.by_keys(row_groups) if each.kept is not None]
        steps.append(Step("granule keys", "granules", sum(map(len, masks)), sum(int(mask.sum()) for mask in masks)))
        return Rows(Step, tuple(steps))

    def _inquiry(self, sidecar: Sidecar) -> _Inquiry:
        """The predicate for one sidecar; its steps follow each other, and so do sidecars."""
        if self._last is None or self._last[0] is not sidecar:
            self._last = sidecar, self._new_inquiry(sidecar)
        return self._last[1]

    def _new_inquiry(self, sidecar: Sidecar) -> _Inquiry:
        judged = {name: _judged(sidecar, name, literals) for name, literals in self._literals.items()}
        columns = {name: each.column for name, each in judged.items() if each.column is not None}
        shape = tuple(None if each.column is None else each.column.type for each in judged.values())
        if shape not in self._compiled:
            column_types = {name: column.type for name, column in columns.items()}
            self._compiled[shape] = compile_predicate(self._predicate, column_types)
        bounds = {name: each.bounds for name, each in judged.items() if each.bounds is not None}
        return _Inquiry(sidecar, columns, self._compiled[shape], bounds)


def prune(sidecar: Sidecar, predicate: Predicate, read: Read | None = None) -> Mask:
    """The row groups of one sidecar that can hold a matching row."""
    return SidecarPruner(predicate).prune(sidecar, read)


def prune_granules(sidecar: Sidecar, predicate: Predicate, kept: Mask) -> list[Granules]:
    """What is left of each row group of one sidecar that may match."""
    return SidecarPruner(predicate).prune_granules(sidecar, kept)


def _names_points(test: Test) -> bool:
    intervals = operator_of(test).intervals
    return intervals is not None and all(interval.is_point for interval in intervals(test))


class _Judged(NamedTuple):
    """The column of a name, if there is one, and where a sidecar has few row groups the bounds of all of them."""

    column: FlatColumn | None
    bounds: Bounds | None


def _judged(sidecar: Sidecar, name: str, literals: Sequence[Literal]) -> _Judged:
    """A column as it compares with literals; worked out once for each class of them."""
    key = (name, *map(type, literals)) if len(literals) < MOST_JUDGED else (name, *{*map(type, literals)})
    judged: _Judged | None = sidecar.judged.get(key)
    if judged is None:
        column = flat_column(sidecar, name, literals)
        is_few = column is not None and sidecar.row_group_count <= FEW_ROW_GROUPS
        judged = _Judged(column, _RowGroups(sidecar, {name: column}).bounds_of(name) if column and is_few else None)
        if len(sidecar.judged) >= MOST_JUDGED:
            sidecar.judged.clear()
        sidecar.judged[key] = judged
    return judged


class _Inquiry:
    """A predicate for one sidecar; `bounds` are those of all its row groups, where they are few."""

    def __init__(
        self, sidecar: Sidecar, columns: Mapping[str, FlatColumn], pruner: Pruner, bounds: Mapping[str, Bounds]
    ) -> None:
        self._sidecar = sidecar
        self._columns = columns
        self._pruner = pruner
        self._bounds = bounds

    def by_nulls(self) -> Mask:
        """The row groups that null counts alone leave."""
        row_groups = _RowGroups(self._sidecar, self._columns)

        def counts_of(name: str) -> Bounds | None:
            bounds = row_groups.bounds_of(name)
            return None if bounds is None else bounds.without_values()

        return self._pruner.judge(len(row_groups), counts_of).may_match

    def by_bounds(self, among: Mask | None = None) -> Mask:
        """The row groups, of those in question, that null counts and bounds leave."""
        if self._bounds:
            left = self._pruner.judge(self._count(), self._bounds.get).may_match
            return left if among is None else left & among
        left = np.zeros(self._sidecar.row_group_count, bool)
        in_time = row_groups_in_time(self._sidecar, self._columns, self._pruner.required)
        places = None if in_time is None else np.arange(in_time.start, in_time.stop)
        if among is not None:
            places = np.flatnonzero(among) if places is None else places[among[places]]
        row_groups = _RowGroups(self._sidecar, self._columns, places)
        left[row_groups.places] = self._pruner.judge(len(row_groups), row_groups.bounds_of).may_match
        return left

    def by_others(self, kept: Mask, others: OthersOf) -> Mask:
        """The row groups, of those that may match, that bounds leave where others complete them."""
        row_groups = _RowGroups(self._sidecar, self._columns, np.flatnonzero(kept), others)
        left = np.zeros(len(kept), bool)
        left[row_groups.places] = self._pruner.judge(len(row_groups), row_groups.bounds_of).may_match
        return left

    def _count(self) -> int:
        return len(next(iter(self._bounds.values())).count)

    def verdict(self, others: OthersOf | None = None) -> Verdict:
        """What null counts and bounds prove of all row groups, completed by others."""
        row_groups = _RowGroups(self._sidecar, self._columns, others=others)
        return self._pruner.judge(len(row_groups), row_groups.bounds_of)

    def by_filters(self, kept: Mask, read: Read | None) -> Mask:
        """The row groups, of those that may match, that bloom filters leave."""
        if not self._pruner.point_columns & self._columns.keys() or not kept.any():
            return kept
        if read is None and not len(self._sidecar.bloom_columns):
            return kept
        row_groups = _RowGroups(self._sidecar, self._columns, np.flatnonzero(kept))

        def holds(name: str, points: tuple[Any, ...]) -> Mask:
            held = _may_hold(self._sidecar, row_groups.places, self._columns[name], points, read)
            return held | row_groups.hides_values(self._columns[name])

        left = np.zeros(len(kept), bool)
        left[row_groups.places] = self._pruner.judge(len(row_groups), row_groups.bounds_of, holds).may_match
        return left

    def by_keys(self, kept: Mask) -> list[Granules]:
        """What the keys of granules leave of the row groups that may match."""
        places = np.flatnonzero(kept).tolist()
        if self._sidecar.row_group_count > FEW_ROW_GROUPS:
            granules = self._keyed(places)
            masks = granules.split(self._pruner.judge(len(granules), granules.bounds_of).may_match)
            return [Granules(place, masks.get(place)) for place in places]
        granules = self._all_keyed()
        some = granules.some(places)
        masks = some.split(self._pruner.judge(len(some.units), some.bounds_of).may_match)
        return [Granules(place, masks.get(place)) for place in places]

    def _keyed(self, places: Sequence[int]) -> GranuleBounds:
        """The granules of those row groups that have keys."""
        return self._granules({place: index for place, index in self._indexes(places).items() if index.keys})

    def _all_keyed(self) -> GranuleBounds:
        """Those of all row groups, whose bounds are joined once."""
        key = "granules", *self._columns.items()
        found: GranuleBounds | None = self._sidecar.judged.get(key)
        if found is None:
            found = self._keyed(range(self._sidecar.row_group_count))
            if len(self._sidecar.judged) >= MOST_JUDGED:
                self._sidecar.judged.clear()
            self._sidecar.judged[key] = found
        return found

    def by_pages(self, some: Sequence[Granules], pages: PageIndexes) -> list[Granules]:
        """What page indexes leave of granules, where these are many enough for an index to pay.

        If the indexes of the first row groups leave out nothing, those of the others are not read.
        """
        left, counts = dict(some), self._sidecar.extensions.granule_counts
        worth = [at for at, kept in some if (counts[at] if kept is None else kept.sum()) >= _WORTH_AN_INDEX]
        for places in (worth[:_FIRST_INDEXES], worth[_FIRST_INDEXES:]):
            granules = self._granules(self._indexes(places))
            if not places or granules.are_bounded_by_keys():
                break
            masks = granules.split(self._pruner.judge(len(granules), granules.with_pages(pages)).may_match)
            before = {
                place: np.ones(len(mask), bool) if (kept := left[place]) is None else kept
                for place, mask in masks.items()
            }
            if all((mask | ~before[place]).all() for place, mask in masks.items()):
                break
            left |= {place: mask & before[place] for place, mask in masks.items()}
        return [Granules(place, left[place]) for place, _ in some]

    def _indexes(self, places: Sequence[int]) -> dict[int, GranuleIndex]:
        """The granule indexes of the row groups that have one."""
        indexes = {place: self._sidecar.extensions.granules(place) for place in places}
        return {place: index for place, index in indexes.items() if index is not None}

    def _granules(self, indexes: Mapping[int, GranuleIndex]) -> GranuleBounds:
        row_groups = _RowGroups(self._sidecar, self._columns, np.array([*indexes], np.int64))
        return GranuleBounds(indexes, row_groups.bounds_of, self._columns)


class _RowGroups:
    """Row groups of a sidecar, all or some, and the bounds of their columns, which `others` complete."""

    def __init__(
        self,
        sidecar: Sidecar,
        columns: Mapping[str, FlatColumn],
        places: _Places | None = None,
        others: OthersOf | None = None,
    ) -> None:
        self.places = np.arange(sidecar.row_group_count) if places is None else places
        self._sidecar = sidecar
        self._columns = columns
        self._cached: dict[str, Bounds] = {}
        self._chosen = None if places is None else self.places
        self._others = others

    def __len__(self) -> int:
        return len(self.places)

    def bounds_of(self, name: str) -> Bounds | None:
        """The bounds of a column in every row group."""
        column = self._columns.get(name)
        if column is not None and name not in self._cached:
            more = None if self._others is None else self._others(name, column.type)
            bounds = self._bounds(column)
            self._cached[name] = bounds if more is None else completed(bounds, more.take(self.places))
        return self._cached.get(name)

    def hides_values(self, column: FlatColumn) -> Mask:
        """Row groups that count nulls of a column without a level for them.

        What stands for null there, such as the least number, is a value to everybody else, and in no bound or filter.
        """
        if column.nullable:
            return np.zeros(len(self.places), bool)
        return _counts_nulls(self._sidecar.column(column.position, self._chosen))

    def _bounds(self, column: FlatColumn) -> Bounds:
        chunks = self._sidecar.column(column.position, self._chosen)
        minimum, has_minimum = _values(chunks.minimum, column)
        maximum, has_maximum = _values(chunks.maximum, column)
        is_float = column.type.family is Family.FLOAT
        free = is_float and nan_free(self._sidecar, column.position, self.places)
        count, counted = chunks.null_count
        if not column.nullable:
            trusted = ~_counts_nulls(chunks)
            has_minimum, has_maximum, counted = has_minimum & trusted, has_maximum & trusted, counted & trusted
        return Bounds(minimum, maximum, has_minimum, has_maximum, count, counted, chunks.records["num_values"], free)


def _counts_nulls(chunks: ColumnChunks) -> Mask:
    count, counted = chunks.null_count
    counts: Mask = counted & (count > 0)
    return counts


def nan_free(sidecar: Sidecar, position: int, places: _Places) -> Mask:
    """The row groups, of those at the places, in which a column holds no NaN for certain."""
    table = sidecar.extensions.tables[SnapshotCode.PAGES]
    if table is None:
        return np.zeros(len(places), bool)
    records = table[places]
    flags = sidecar.words[np.where(records > 0, records + position * layout.PAGES_WORDS + _FLAGS_WORD, 0)]
    free: Mask = (records > 0) & ((flags & np.uint64(PageFlag.NAN_FREE)) != 0)
    return free


def _values(bound: Bound, column: FlatColumn) -> tuple[NDArray[Any], Mask]:
    if column.type.family is Family.NUMBER and column.physical_type == PhysicalType.BYTE_ARRAY:
        bound = bound.where(bound.exact)  # a number that lost its last bytes is another number
    return stored_values(bound.values, bound.present, column.type, column.length)


def _may_hold(
    sidecar: Sidecar, places: _Places, column: FlatColumn, points: tuple[Any, ...], read: Read | None
) -> Mask:
    """The row groups whose filter does not rule out all of the values."""
    from windrow.parquet.bloom import BloomFilter, hash_binary

    may_hold = np.ones(len(places), bool)
    cells = cells_of(points, column.type, NUMBERS.get(column.physical_type), column.length)
    if cells is None or column.physical_type == PhysicalType.BOOLEAN:
        return may_hold
    limits = np.cumsum([0, *map(len, cells)], dtype=np.int64)
    hashes = hash_binary(b"".join(cells), limits)
    for unit, row_group in enumerate(places.tolist()):
        bits = _filter_bits(sidecar, row_group, column.position, read)
        if bits is not None:
            may_hold[unit] = BloomFilter(bits).might_contain(hashes).any()
    return may_hold


def _filter_bits(sidecar: Sidecar, row_group: int, position: int, read: Read | None) -> bytes | memoryview | None:
    bits: bytes | memoryview | None = sidecar.bloom(row_group, position)
    if bits is None and read is not None:
        bits = _external_bits(sidecar, row_group, position, read)
    return bits if bits is not None and len(bits) and len(bits) % _FILTER_BLOCK == 0 else None


def _external_bits(sidecar: Sidecar, row_group: int, position: int, read: Read) -> bytes | None:
    """The bits of a filter in the Parquet file: where a slot says that they are, or behind their header."""
    from windrow.parquet.bloom import read_bloom

    slot = sidecar.external_bloom(row_group, position)
    if slot is not None:
        return read(*slot) if sum(slot) <= sidecar.parquet_size else None
    records = sidecar.extensions.page_records(row_group)
    if records is None:
        return None
    offset, length = int(records["bloom_offset"][position]), int(records["bloom_length"][position])
    if offset <= 0 or length <= 0 or offset + length > sidecar.parquet_size:
        return None
    return read_bloom(read(offset, length), name=sidecar.name)

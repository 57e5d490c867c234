"""Phase 1: in which order the rows of sorted inputs lie when they are merged.

Rows of all inputs are numbered through, input by input. All sort columns but the last become runs of numbers that
compare as their values do; cut at each other's ends these are the runs of series, whose numbers are packed into one of
64 bits. Series are merged by it, and rows inside a series by the number of the last sort column. Rows that tie keep the
order of their inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InvariantViolation
from windrow.model.ordering import packed_keys
from windrow.model.sort_schema import Direction, SortColumn, SortSchema
from windrow.parquet.page_reader import Coded, CodedRows, Fixed

__all__ = ["Key", "Keys", "MergeOrder", "Merged", "key_of", "merge_order"]

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
Values: TypeAlias = Any
"""A column in memory: Coded, Fixed or an Arrow array."""

SAMPLES, SCATTERED = 256, 0.3
"""Where runs of a series lie in each other by this share, by so many samples, rows are merged faster than runs."""
SORTED_BITS = 20
"""Keys of up to so many bits for each doubling of the inputs are sorted faster than merged."""
_SIGN = {4: np.uint32(1 << 31), 8: np.uint64(1 << 63)}


class Key(NamedTuple):
    """Numbers that compare as the values of a sort column: for runs that end before `ends`, or for each row."""

    numbers: npt.NDArray[Any]
    ends: Longs | None
    bits: int
    scattered: bool = False
    """Whether rows hardly repeat."""


def key_of(values: Values, dtype: np.dtype[Any] | None, column: SortColumn) -> Key:
    """The key of a sort column."""
    ends = None
    if isinstance(values, Coded | CodedRows):
        highest = len(values.texts)
        numbers: npt.NDArray[Any] = np.where(values.codes < 0, np.int32(highest), values.codes)
        if isinstance(values, Coded):
            numbers, ends = numbers.astype(np.uint64), values.ends
    elif isinstance(values, Fixed) and values.valid is None and dtype is not None and dtype.kind == "i":
        numbers, highest = _from_least(values.values.view(dtype))
    elif isinstance(values, Fixed):
        numbers, highest = _packed(_ascending(values.values, dtype), values.valid)
    else:
        numbers, highest = _ranks(values, column)
    if column.direction is Direction.DESCENDING:
        numbers = numbers.dtype.type(highest) - numbers
    return Key(numbers, ends, int(highest).bit_length(), isinstance(values, CodedRows))


def _from_least(numbers: npt.NDArray[Any]) -> tuple[Words, int]:
    """Signed numbers counted from the least of them, and the highest of these: as times are, which are many."""
    if not numbers.size:
        return numbers.astype(np.uint64), 0
    low, high = int(numbers.min()), int(numbers.max())
    # bits that overflow are those of the difference
    bits = numbers.view(f"u{numbers.itemsize}")
    return np.subtract(bits, bits.dtype.type(low % 256**bits.itemsize)).astype(np.uint64, copy=False), high - low


def _ascending(values: npt.NDArray[Any], dtype: np.dtype[Any] | None) -> npt.NDArray[Any]:
    """Unsigned numbers that compare as the values do; all NaN are one, above every number, and both zeros are one."""
    if dtype is None or dtype.kind == "u":
        return values
    sign: Any = _SIGN[values.itemsize]
    if dtype.kind == "i":
        return np.asarray(values ^ sign)
    numbers = values.view(dtype)
    bits = np.where(np.isnan(numbers), np.array(np.nan, dtype), numbers + np.array(0, dtype)).view(values.dtype)
    return np.asarray(np.where(bits & sign, ~bits, bits | sign))


def _packed(numbers: npt.NDArray[Any], valid: npt.NDArray[np.uint8] | None) -> tuple[Words, int]:
    """The numbers counted from the least, null behind the greatest, and the highest of all."""
    if not numbers.size:
        return numbers.astype(np.uint64), 0
    present = numbers if valid is None else numbers[valid != 0]
    if not present.size:
        return np.zeros(numbers.size, np.uint64), 0
    low, high = int(present.min()), int(present.max())
    packed = np.subtract(numbers, numbers.dtype.type(low), dtype=np.uint64)
    if valid is None:
        return packed, high - low
    if high - low < 2**64 - 1:
        return np.where(valid != 0, packed, np.uint64(high - low + 1)), high - low + 1
    distinct, ranks = np.unique(present, return_inverse=True)
    packed = np.full(numbers.size, distinct.size, np.uint64)
    packed[valid != 0] = ranks
    return packed, distinct.size


def _ranks(values: pa.ChunkedArray, column: SortColumn) -> tuple[Words, int]:
    """Numbers for values of any type that has an order, and the highest of them."""
    ascending = SortSchema((SortColumn(column.name, Direction.ASCENDING),))
    keys = packed_keys(pa.table({column.name: values}), ascending)
    return (keys[0], int(keys[0].max())) if keys else (np.zeros(len(values), np.uint64), 0)


class Keys(NamedTuple):
    """Runs of series of all inputs, whose numbers have at most so many bits."""

    numbers: Words
    ends: Longs
    bits: int = 0


@dataclass(frozen=True, eq=False)
class MergeOrder:
    """The order as runs of rows."""

    starts: npt.NDArray[Any]
    counts: npt.NDArray[Any] | None
    """How many rows each run has; None when each has one."""
    input_ends: Longs
    owners: npt.NDArray[np.int32] | None = None

    @cached_property
    def inputs(self) -> npt.NDArray[np.int32]:
        """The input of each run."""
        if self.owners is not None:
            return self.owners
        return np.searchsorted(self.input_ends, self.starts, side="right").astype(np.int32)

    @cached_property
    def lengths(self) -> npt.NDArray[Any]:
        """How many rows each run has."""
        return np.ones_like(self.starts) if self.counts is None else self.counts

    @cached_property
    def ends(self) -> Longs:
        """The place in the order that each run ends before."""
        return np.cumsum(self.lengths, dtype=np.int64)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        if self.counts is None:
            return self.starts.size
        return int(self.ends[-1]) if self.ends.size else 0

    @cached_property
    def indices(self) -> npt.NDArray[Any]:
        """The rows one by one."""
        if self.counts is None:
            return self.starts
        return np.repeat(self.starts - (self.ends - self.counts), self.counts) + np.arange(self.rows)

    def slice(self, first: int, last: int) -> MergeOrder:
        """The part of the order from one place to another; what can be shared with the whole is."""
        if first == 0 and last == self.rows:
            return self
        if self.counts is None:
            return MergeOrder(self.starts[first:last], None, self.input_ends)
        low, high = np.searchsorted(self.ends, first, side="right"), np.searchsorted(self.ends, last, side="left")
        starts, counts = self.starts[low : high + 1], self.counts[low : high + 1].copy()
        if counts.size:
            before = int(self.ends[low] - self.counts[low])
            counts[-1] -= max(int(self.ends[low + counts.size - 1]) - last, 0)
            if first > before:
                starts = starts.copy()
                starts[0] += first - before
                counts[0] -= first - before
        return MergeOrder(starts, counts, self.input_ends, self.inputs[low : high + 1])

    def without(self, dropped: Sequence[tuple[int, int]]) -> MergeOrder:
        """The order without some stretches of places, which ascend."""
        if not dropped:
            return self
        stretches = islice(pairwise([0, *(place for stretch in dropped for place in stretch), self.rows]), 0, None, 2)
        parts = [self.slice(low, high) for low, high in stretches if low < high] or [self.slice(0, 0)]
        starts = np.concatenate([part.starts for part in parts])
        if self.counts is None:
            return MergeOrder(starts, None, self.input_ends)
        counts = np.concatenate([part.lengths for part in parts])
        return MergeOrder(starts, counts, self.input_ends, np.concatenate([part.inputs for part in parts]))

    def renumbered(self, starts: Longs, new: Longs) -> MergeOrder:
        """The order of rows that are numbered from `new` on where it numbers them from `starts` on, piece by piece."""
        shift = (starts - new)[np.searchsorted(starts, self.starts, side="right") - 1]
        owners = None if self.counts is None else self.inputs
        return MergeOrder((self.starts - shift).astype(self.starts.dtype), self.counts, self.input_ends, owners)

    def rows_at(self, places: Longs) -> Longs:
        """The rows at some places in the order."""
        if self.counts is None:
            return self.starts[places].astype(np.int64)
        runs = np.searchsorted(self.ends, places, side="right")
        return np.asarray(self.starts[runs] + self.counts[runs] - (self.ends[runs] - places))

    def row_at(self, place: int) -> int:
        """The row at a place in the order."""
        if self.counts is None:
            return int(self.starts[place])
        run = int(np.searchsorted(self.ends, place, side="right"))
        return int(self.starts[run] + self.counts[run] - (self.ends[run] - place))

    def rows_before(self, place: int) -> Longs:
        """How many rows of each input come before a place; those behind it are counted where they are fewer."""
        every = np.diff(self.input_ends, prepend=0)
        if 2 * place > self.rows == every.sum():
            return every - self.slice(place, self.rows).rows_of_inputs()
        return self.slice(0, place).rows_of_inputs()

    def rows_of_inputs(self) -> Longs:
        """How many rows of each input there are."""
        return np.bincount(self.inputs, self.lengths, self.input_ends.size).astype(np.int64)


@dataclass(frozen=True, eq=False)
class RunKeys:
    """The keys of rows: that of a series for each run, and that of the last sort column for each row."""

    series: Keys
    last_key: Words

    def key_at(self, row: int) -> tuple[int, int]:
        """The key of a row, by its number among all rows of the inputs."""
        run = int(np.searchsorted(self.series.ends, row, side="right"))
        return int(self.series.numbers[run]), int(self.last_key[row])

    def place_of(self, key: tuple[int, int], order: MergeOrder) -> int:
        """The first place in the order whose key is not less."""
        low, high = 0, order.rows
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.key_at(order.row_at(middle)) < key else (low, middle)
        return low


@dataclass(frozen=True, eq=False)
class RowKeys:
    """The keys of rows: one number for all sort columns."""

    numbers: Words
    ordered: Words

    def key_at(self, row: int) -> tuple[int, int]:
        """The key of a row, by its number among all rows of the inputs."""
        return int(self.numbers[row]), 0

    def place_of(self, key: tuple[int, int], order: MergeOrder) -> int:
        """The first place in the order whose key is not less."""
        return int(np.searchsorted(self.ordered[: order.rows], np.uint64(max(key[0], 0))))


@dataclass(frozen=True, eq=False)
class Merged:
    """The order of all rows of a batch, and the keys that it comes from."""

    order: MergeOrder
    keys: RunKeys | RowKeys
    group_ends: Longs
    """The places in the order that end a run of rows which agree in all sort columns but the last."""
    group_rows: npt.NDArray[Any]
    """A row of each such run."""
    series_starts: Longs
    """The places in the order at which another series begins; the first is left out."""

    def key_at(self, row: int) -> tuple[int, int]:
        """The key of a row, by its number among all rows of the inputs."""
        return self.keys.key_at(row)

    def place_of(self, key: tuple[int, int]) -> int:
        """The first place in the order whose key is not less."""
        return self.keys.place_of(key, self.order)

    def place_of_row(self, row: int) -> int:
        """The place of a row in the order."""
        first = self.keys.place_of(self.key_at(row), self.order)
        matches, step = np.empty(0, np.int64), 64
        while not matches.size:
            # rows with the same key follow each other
            places = np.arange(first, min(first + step, self.order.rows))
            matches, first, step = places[self.order.rows_at(places) == row], first + step, 2 * step
        return int(matches[0])


def merge_order(keys: Sequence[Key], names: Sequence[str], rows: Sequence[int], series_columns: int) -> Merged:
    """The order of inputs that are called `names` and have so many rows each, by the keys of their sort columns.

    A series is what agrees in the first `series_columns` of them.
    """
    input_ends = np.cumsum(rows, dtype=np.int64)
    # rows without any sort column tie
    keys = keys or [Key(np.zeros(int(input_ends[-1]), np.uint64), None, 0)]
    if any(key.scattered for key in keys[:-1]) and sum(key.bits for key in keys) <= 64:
        return _by_rows(keys, names, input_ends, series_columns)
    return _by_runs(keys, names, input_ends, series_columns)


def _by_rows(keys: Sequence[Key], names: Sequence[str], input_ends: Longs, series_columns: int) -> Merged:
    """The order by merging row by row: where it jumps at almost every row there is nothing to gain from runs."""
    from windrow.kernels.merge import check_rows, merge_rows
    from windrow.kernels.sorting import sort_rows

    numbers, bits = _row_numbers(keys, int(input_ends[-1])), sum(key.bits for key in keys)
    wrong = check_rows(numbers, input_ends)
    if wrong >= 0:
        raise _unsorted(wrong, names, input_ends)
    # a merge goes over all rows once for each doubling of the inputs, a sort once for each digit
    many = bits <= SORTED_BITS * input_ends.size.bit_length()
    ordered, rows = sort_rows(numbers, input_ends, bits, keys[-1].bits) if many else merge_rows(numbers, input_ends)
    ends = _changes(ordered, keys[-1].bits)
    inner = sum(key.bits for key in keys[series_columns:])
    borders = (ends if inner == keys[-1].bits else _changes(ordered, inner))[:-1]
    firsts = rows[np.append(0, ends[:-1])] if ends.size else rows
    return Merged(MergeOrder(rows, None, input_ends), RowKeys(numbers, ordered), ends, firsts, borders)


def _row_numbers(keys: Sequence[Key], rows: int) -> Words:
    """The numbers of all keys packed into one for each row."""
    from windrow.kernels.merge import append_rows, append_runs, pack_rows

    numbers: Words | None = None
    runs = Keys(np.zeros(1, np.uint64), np.array([rows]))
    for key in keys:
        if key.ends is not None:
            # runs meet in fewer runs than there are rows
            runs = _combined(runs, key.numbers, key.ends, key.bits)
        elif numbers is None:
            numbers = np.empty(rows, np.uint64)
            pack_rows(runs.numbers, runs.ends, key.numbers, key.bits, numbers)
            runs = Keys(np.zeros(1, np.uint64), np.array([rows]))
        else:
            if runs.bits:
                append_runs(numbers, *runs)
                runs = Keys(np.zeros(1, np.uint64), np.array([rows]))
            append_rows(numbers, key.numbers, key.bits)
    if numbers is None:
        return np.repeat(runs.numbers, np.diff(runs.ends, prepend=0))
    if runs.bits:
        append_runs(numbers, *runs)
    return numbers


def _combined(runs: Keys, numbers: Words, ends: Longs, bits: int) -> Keys:
    """Runs cut at the ends of those of another column, whose numbers are appended."""
    from windrow.kernels.merge import combine_runs

    most = runs.ends.size + ends.size
    out, out_ends = np.empty(most, np.uint64), np.empty(most, np.int64)
    count = combine_runs(runs.numbers, runs.ends, numbers, ends, bits, out, out_ends)
    return Keys(out[:count], out_ends[:count], runs.bits + bits)


def _changes(ordered: Words, bits: int) -> Longs:
    """Where rows end whose keys agree in all but so many bits."""
    from windrow.kernels.sorting import changes

    ends = np.empty(ordered.size + 1, np.int64)
    return ends[: changes(ordered, bits, ends)]


def _by_runs(keys: Sequence[Key], names: Sequence[str], input_ends: Longs, series_columns: int) -> Merged:
    """The order by merging runs of series, and rows inside of them."""
    from windrow.kernels.merge import check_runs, merge_scattered, scattered_share
    from windrow.kernels.merge import merge_order as merge

    series, last_key = _series(keys[:-1], input_ends), _by_row(keys[-1])
    begins, inputs = np.empty(series.ends.size, np.int64), np.empty(series.ends.size, np.int32)
    wrong = check_runs(series.numbers, series.ends, input_ends, last_key, begins, inputs)
    if wrong >= 0:
        raise _unsorted(wrong, names, input_ends)
    entries, total = np.argsort(series.numbers, kind="stable"), last_key.size
    ends, rows = np.empty(entries.size, np.int64), np.empty(entries.size, np.int64)
    share = scattered_share(entries, series.numbers, begins, series.ends, last_key, SAMPLES)
    groups = -1
    if share > SCATTERED and total < 2**31:
        taken, bits = np.empty(total, np.int32), keys[-1].bits
        groups = merge_scattered(entries, series.numbers, begins, series.ends, last_key, bits, taken, ends, rows)
        order = MergeOrder(taken, None, input_ends)
    if groups < 0:
        # memory follows the runs of the order: where every row is one, half of it counts
        place: Any = np.int32 if total < 2**31 else np.int64
        starts, counts, owners = np.empty(total, place), np.empty(total, place), np.empty(total, np.int32)
        runs, groups = merge(
            entries, series.numbers, begins, series.ends, inputs, last_key, starts, counts, owners, ends, rows
        )
        order = MergeOrder(starts[:runs], counts[:runs], input_ends, owners[:runs])
    group_ends, group_rows = ends[:groups], rows[:groups]
    borders = group_ends[:-1]
    if series_columns < len(keys) - 1:
        wider = _series(keys[:series_columns], input_ends)
        numbers = wider.numbers[np.searchsorted(wider.ends, group_rows, side="right")]
        borders = borders[numbers[1:] != numbers[:-1]]
    return Merged(order, RunKeys(series, last_key), group_ends, group_rows, borders)


def _series(keys: Sequence[Key], input_ends: Longs) -> Keys:
    """The runs of all keys, cut at each other's ends and at those of the inputs; none of them is empty."""
    ends = np.unique(input_ends[np.diff(input_ends, prepend=0) > 0])
    joined = Keys(np.zeros(ends.size, np.uint64), ends)
    for key in keys:
        numbers, key_ends, width = _as_runs(key)
        if joined.bits + width > 64:
            distinct, ranks = np.unique(joined.numbers, return_inverse=True)
            joined = Keys(ranks.astype(np.uint64), joined.ends, int(distinct.size - 1).bit_length())
        if joined.bits + width > 64:
            distinct, ranks = np.unique(numbers, return_inverse=True)
            numbers, width = ranks.astype(np.uint64), int(distinct.size - 1).bit_length()
        joined = _combined(joined, numbers, key_ends, width)
    return joined


def _as_runs(key: Key) -> tuple[Words, Longs, int]:
    if key.ends is not None:
        return key.numbers, key.ends, key.bits
    last = np.flatnonzero(np.append(key.numbers[1:] != key.numbers[:-1], np.ones(min(key.numbers.size, 1), bool)))
    return key.numbers[last].astype(np.uint64), last + 1, key.bits


def _by_row(key: Key) -> Words:
    if key.ends is None:
        return key.numbers.astype(np.uint64, copy=False)
    return np.repeat(key.numbers, np.diff(key.ends, prepend=0))


def _unsorted(row: int, names: Sequence[str], input_ends: Longs) -> InvariantViolation:
    source = int(np.searchsorted(input_ends, row, side="right"))
    place = row - int(input_ends[source - 1] if source else 0)
    return InvariantViolation(
        "SS-1",
        f"{names[source]} is not sorted: row {place} of those that were loaded must come before the row ahead of it; "
        "write that split again",
    )

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
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InvariantViolation
from windrow.model.ordering import packed_keys
from windrow.model.sort_schema import Direction, SortColumn, SortSchema
from windrow.parquet.page_reader import Coded, Fixed

__all__ = ["Key", "Keys", "MergeOrder", "Merged", "key_of", "merge_order"]

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
Values: TypeAlias = Any
"""A column in memory: Coded, Fixed or an Arrow array."""

MANY_RUNS = 0.7
"""With more runs of series than this share of the rows, sorting rows is faster than merging runs."""
_SIGN = {4: np.uint32(1 << 31), 8: np.uint64(1 << 63)}


class Key(NamedTuple):
    """Numbers that compare as the values of a sort column: for runs that end before `ends`, or for each row."""

    numbers: Words
    ends: Longs | None
    bits: int


def key_of(values: Values, dtype: np.dtype[Any] | None, column: SortColumn) -> Key:
    """The key of a sort column."""
    if isinstance(values, Coded):
        highest = len(values.texts)
        numbers, ends = np.where(values.codes < 0, highest, values.codes).astype(np.uint64), values.ends
    elif isinstance(values, Fixed):
        numbers, highest = _packed(_ascending(values.values, dtype), values.valid)
        ends = None
    else:
        numbers, highest, ends = *_ranks(values, column), None
    if column.direction is Direction.DESCENDING:
        numbers = np.uint64(highest) - numbers
    return Key(numbers, ends, int(highest).bit_length())


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
    known = numbers if valid is None else numbers[valid != 0]
    if not known.size:
        return np.zeros(numbers.size, np.uint64), 0
    low, high = int(known.min()), int(known.max())
    packed = np.subtract(numbers, numbers.dtype.type(low), dtype=np.uint64)
    if valid is None:
        return packed, high - low
    if high - low < 2**64 - 1:
        return np.where(valid != 0, packed, np.uint64(high - low + 1)), high - low + 1
    distinct, ranks = np.unique(known, return_inverse=True)
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
    counts: npt.NDArray[Any]
    inputs: npt.NDArray[np.int32]

    @cached_property
    def ends(self) -> Longs:
        """The place in the order that each run ends before."""
        return np.cumsum(self.counts, dtype=np.int64)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.ends[-1]) if self.ends.size else 0

    def slice(self, first: int, last: int) -> MergeOrder:
        """The part of the order from one place to another; what can be shared with the whole is."""
        if first == 0 and last == self.rows:
            return self
        low, high = np.searchsorted(self.ends, first, side="right"), np.searchsorted(self.ends, last, side="left")
        starts, counts = self.starts[low : high + 1], self.counts[low : high + 1].copy()
        if counts.size:
            before = int(self.ends[low] - self.counts[low])
            counts[-1] -= max(int(self.ends[low + counts.size - 1]) - last, 0)
            if first > before:
                starts = starts.copy()
                starts[0] += first - before
                counts[0] -= first - before
        return MergeOrder(starts, counts, self.inputs[low : high + 1])

    def row_at(self, place: int) -> int:
        """The row at a place in the order."""
        run = int(np.searchsorted(self.ends, place, side="right"))
        return int(self.starts[run] + self.counts[run] - (self.ends[run] - place))


@dataclass(frozen=True, eq=False)
class Merged:
    """The order of all rows of a batch, and the keys that it comes from."""

    order: MergeOrder
    keys: Keys
    last_key: Words
    group_ends: Longs
    """The places in the order that end a run of rows which agree in all sort columns but the last."""
    group_rows: Longs
    """A row of each such run."""
    series_starts: Longs
    """The places in the order at which another series begins; the first is left out."""

    def key_at(self, row: int) -> tuple[int, int]:
        """The key of a row, by its number among all rows of the inputs."""
        run = int(np.searchsorted(self.keys.ends, row, side="right"))
        return int(self.keys.numbers[run]), int(self.last_key[row])

    def place_of(self, key: tuple[int, int]) -> int:
        """The first place in the order whose key is not less."""
        low, high = 0, self.order.rows
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.key_at(self.order.row_at(middle)) < key else (low, middle)
        return low


def merge_order(keys: Sequence[Key], names: Sequence[str], rows: Sequence[int], series_columns: int) -> Merged:
    """The order of inputs that are called `names` and have so many rows each, by the keys of their sort columns.

    A series is what agrees in the first `series_columns` of them.
    """
    from windrow.kernels.merge import check_runs

    input_ends = np.cumsum(rows, dtype=np.int64)
    total = int(input_ends[-1])
    # rows without any sort column tie
    keys = keys or [Key(np.zeros(total, np.uint64), None, 0)]
    series, last_key = _series(keys[:-1], input_ends), _by_row(keys[-1])
    begins, inputs = np.empty(series.ends.size, np.int64), np.empty(series.ends.size, np.int32)
    wrong = check_runs(series.numbers, series.ends, input_ends, last_key, begins, inputs)
    if wrong >= 0:
        raise _unsorted(wrong, names, input_ends)
    if series.ends.size > MANY_RUNS * total and series.bits + keys[-1].bits < 64:
        order, group_ends, group_rows = _by_sorting(series, last_key, keys[-1].bits, input_ends)
    else:
        order, group_ends, group_rows = _by_merging(series, last_key, begins, inputs)
    borders = group_ends[:-1]
    if series_columns < len(keys) - 1:
        wider = _series(keys[:series_columns], input_ends)
        numbers = wider.numbers[np.searchsorted(wider.ends, group_rows, side="right")]
        borders = borders[numbers[1:] != numbers[:-1]]
    return Merged(order, series, last_key, group_ends, group_rows, borders)


def _by_merging(
    series: Keys, last_key: Words, begins: Longs, inputs: npt.NDArray[np.int32]
) -> tuple[MergeOrder, Longs, Longs]:
    """The order by merging runs; and of each group of rows in one series where it ends, and a row of it."""
    from windrow.kernels.merge import merge_order as merge

    entries, total = np.argsort(series.numbers, kind="stable"), last_key.size
    # memory follows the runs of the order: where every row is one, half of it counts
    place: Any = np.int32 if total < 2**31 else np.int64
    starts, counts, owners = np.empty(total, place), np.empty(total, place), np.empty(total, np.int32)
    ends, rows = np.empty(entries.size, np.int64), np.empty(entries.size, np.int64)
    runs, groups = merge(
        entries, series.numbers, begins, series.ends, inputs, last_key, starts, counts, owners, ends, rows
    )
    return MergeOrder(starts[:runs], counts[:runs], owners[:runs]), ends[:groups], rows[:groups]


def _by_sorting(series: Keys, last_key: Words, bits: int, input_ends: Longs) -> tuple[MergeOrder, Longs, Longs]:
    """The same by a stable sort of all rows: with runs of hardly more than a row there is nothing to gain from them."""
    numbers = np.repeat(series.numbers, np.diff(series.ends, prepend=0))
    rows = np.argsort(numbers << np.uint64(bits) | last_key, kind="stable")
    owners = np.repeat(np.arange(input_ends.size, dtype=np.int32), np.diff(input_ends, prepend=0))[rows]
    numbers = numbers[rows]
    ends = np.append(np.flatnonzero(numbers[1:] != numbers[:-1]) + 1, numbers.size)
    place: Any = np.int32 if rows.size < 2**31 else np.int64
    order = MergeOrder(rows.astype(place), np.ones(rows.size, place), owners)
    return order, ends, rows[np.append(0, ends[:-1])]


def _series(keys: Sequence[Key], input_ends: Longs) -> Keys:
    """The runs of all keys, cut at each other's ends and at those of the inputs; none of them is empty."""
    from windrow.kernels.merge import combine_runs

    ends = np.unique(input_ends[np.diff(input_ends, prepend=0) > 0])
    found = Keys(np.zeros(ends.size, np.uint64), ends)
    for key in keys:
        numbers, key_ends, width = _as_runs(key)
        if found.bits + width > 64:
            distinct, ranks = np.unique(found.numbers, return_inverse=True)
            found = Keys(ranks.astype(np.uint64), found.ends, int(distinct.size - 1).bit_length())
        if found.bits + width > 64:
            distinct, ranks = np.unique(numbers, return_inverse=True)
            numbers, width = ranks.astype(np.uint64), int(distinct.size - 1).bit_length()
        most = found.ends.size + key_ends.size
        out, out_ends = np.empty(most, np.uint64), np.empty(most, np.int64)
        runs = combine_runs(found.numbers, found.ends, numbers, key_ends, width, out, out_ends)
        found = Keys(out[:runs], out_ends[:runs], found.bits + width)
    return found


def _as_runs(key: Key) -> tuple[Words, Longs, int]:
    if key.ends is not None:
        return key.numbers, key.ends, key.bits
    last = np.flatnonzero(np.append(key.numbers[1:] != key.numbers[:-1], np.ones(min(key.numbers.size, 1), bool)))
    return key.numbers[last], last + 1, key.bits


def _by_row(key: Key) -> Words:
    return key.numbers if key.ends is None else np.repeat(key.numbers, np.diff(key.ends, prepend=0))


def _unsorted(row: int, names: Sequence[str], input_ends: Longs) -> InvariantViolation:
    source = int(np.searchsorted(input_ends, row, side="right"))
    place = row - int(input_ends[source - 1] if source else 0)
    return InvariantViolation(
        "SS-1",
        f"{names[source]} is not sorted: row {place} of those that were loaded must come before the row ahead of it; "
        "write that split again",
    )

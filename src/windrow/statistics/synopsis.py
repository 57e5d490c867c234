"""Bounds and null counts of row groups, as queries met them: for skipping where a file says nothing of its own.

A synopsis is about some row groups that follow each other, since a file has at most so many; it proves something once
all of them were read. Bounds of long texts are shortened outwards. NaN is in no bound, but it is on record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.learning_settings import MOST_SYNOPSES
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.types import ColumnType, Family
from windrow.statistics.values import column_type_of, decimals_of, extent_of, numbers_of, used_values

__all__ = ["LONGEST_BOUND", "MOST_SYNOPSES", "Facts", "Synopses", "facts_of", "facts_of_parts", "group_size_for"]

LONGEST_BOUND = 64
"""Bytes of a bound that is text or binary."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What some values of a column are like."""

    minimum: Any = None
    """As `ColumnType` stores it; None where there is no value but nulls and NaN, or no order."""
    maximum: Any = None
    null_count: int = 0
    has_nan: bool = False
    is_exact: tuple[bool, bool] = (True, True)
    """Whether the minimum is a value, and whether the maximum is one, not a shortened one."""
    is_empty: bool = True
    """Whether there are no values in order: no bound is then one that got lost."""

    def plus(self, other: Facts) -> Facts:
        """Both together."""
        if self.is_empty or other.is_empty:
            known = other if self.is_empty else self
            return replace(known, null_count=self.null_count + other.null_count, has_nan=self.has_nan or other.has_nan)
        low, low_exact = _outer(min, (self.minimum, self.is_exact[0]), (other.minimum, other.is_exact[0]))
        high, high_exact = _outer(max, (self.maximum, self.is_exact[1]), (other.maximum, other.is_exact[1]))
        nulls, has_nan = self.null_count + other.null_count, self.has_nan or other.has_nan
        return Facts(low, high, nulls, has_nan, (low_exact, high_exact), is_empty=False)


def _outer(choose: Any, one: tuple[Any, bool], other: tuple[Any, bool]) -> tuple[Any, bool]:
    if one[0] is None or other[0] is None:
        return None, False
    value = choose(one[0], other[0])
    return value, any(each[1] for each in (one, other) if each[0] == value)


def facts_of(values: pa.Array, used: pa.Array | None = None) -> Facts:
    """The facts of an array; `used` are its values that are not null, where these are there already."""
    used = used_values(values) if used is None else used
    (low, high), has_nan = extent_of(used)
    if low is None:
        return Facts(null_count=values.null_count, has_nan=has_nan)
    low, low_exact = _shortened(low, up=False)
    high, high_exact = _shortened(high, up=True)
    return Facts(_plain(low), _plain(high), values.null_count, has_nan, (low_exact, high_exact), is_empty=False)


def facts_of_parts(values: pa.Array, bounds: npt.NDArray[np.int64]) -> list[Facts]:
    """The facts of parts of an array without nulls, by where each begins and the last ends."""
    places = list(pairwise(bounds.tolist()))
    column_type = column_type_of(values.type)
    numbers = None
    if column_type.dtype != "object" and column_type.family not in (Family.TEXT, Family.BINARY, Family.OPAQUE):
        numbers = decimals_of(values)[0] if pa.types.is_decimal(values.type) else numbers_of(values)
    if numbers is None or (column_type.family is Family.FLOAT and np.isnan(numbers).any()):
        return [facts_of(part, part) for part in (values.slice(first, end - first) for first, end in places)]
    filled = [first for first, end in places if end > first]
    if not filled:
        return [Facts()] * len(places)
    ends = zip(
        np.minimum.reduceat(numbers, filled).tolist(), np.maximum.reduceat(numbers, filled).tolist(), strict=True
    )
    return [Facts(*next(ends), is_empty=False) if end > first else Facts() for first, end in places]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _shortened(bound: Any, *, up: bool) -> tuple[Any, bool]:
    """A bound of at most so many bytes, moved outwards where it was longer; None where there is none so short."""
    if not isinstance(bound, bytes) or len(bound) <= LONGEST_BOUND:
        return bound, True
    head = bound[:LONGEST_BOUND]
    if not up:
        return head, False
    head = head.rstrip(b"\xff")
    return (head[:-1] + bytes([head[-1] + 1]) if head else None), False


def group_size_for(row_groups: int, most: int = MOST_SYNOPSES) -> int:
    """How many row groups one synopsis is about."""
    return max(1, -(-row_groups // most))


@dataclass(frozen=True, eq=False, slots=True)
class Synopses:
    """The synopses of one column of a file."""

    type: ColumnType
    group_size: int
    facts: tuple[Facts, ...]
    """Of each group of row groups, as far as they were read."""
    covered: Mask
    """Row groups that were read."""

    @classmethod
    def empty(cls, kind: pa.DataType, rows: npt.NDArray[np.int64], most: int = MOST_SYNOPSES) -> Synopses:
        """Synopses of a column that nobody has read, in row groups of so many rows each."""
        size = group_size_for(rows.size, most)
        return cls(column_type_of(kind), size, (Facts(),) * -(-rows.size // size), rows == 0)

    def with_row_group(self, row_group: int, facts: Facts) -> Synopses:
        """The same after one more row group was read; a second time changes nothing."""
        return self.with_row_groups({row_group: facts})

    def with_row_groups(self, read: Mapping[int, Facts]) -> Synopses:
        """The same after some more row groups were read."""
        if all(self.covered[row_group] for row_group in read):
            return self
        covered, known = self.covered.copy(), list(self.facts)
        for row_group, facts in read.items():
            if not covered[row_group]:
                covered[row_group] = True
                place = row_group // self.group_size
                known[place] = known[place].plus(facts)
        return replace(self, facts=tuple(known), covered=covered)

    def union(self, other: Synopses) -> Synopses:
        """What both know. Of a group that both read in part, and differently, the part of one of them remains."""
        if self.group_size != other.group_size:
            return max(self, other, key=lambda each: (int(each.covered.sum()), -each.group_size))
        facts, covered = list(self.facts), self.covered.copy()
        for place, theirs in enumerate(other.facts):
            part = slice(place * self.group_size, (place + 1) * self.group_size)
            own_rows, their_rows = self.covered[part], other.covered[part]
            if not (own_rows & their_rows).any():
                facts[place] = facts[place].plus(theirs)
                covered[part] |= their_rows
            elif their_rows.sum() > own_rows.sum():
                facts[place], covered[part] = theirs, their_rows
        return replace(self, facts=tuple(facts), covered=covered)

    @property
    def known(self) -> Mask:
        """Groups of which all row groups were read."""
        size, count = self.group_size, len(self.facts)
        padded = np.ones(count * size, bool)
        padded[: self.covered.size] = self.covered
        known: Mask = np.logical_and.reduce(padded.reshape(count, size), axis=1)
        return known

    @property
    def whole(self) -> Facts:
        """What is known of the values that were read, all together."""
        total = Facts()
        for each in self.facts:
            total = total.plus(each)
        return total

    def bounds(self, rows: npt.NDArray[np.int64]) -> Bounds:
        """What is proven of each row group, of so many rows each: what is proven of its group."""
        known, facts = self.known, self.facts
        minimum, has_minimum = self._ends([each.minimum for each in facts])
        maximum, has_maximum = self._ends([each.maximum for each in facts])
        groups = np.arange(self.covered.size) // self.group_size
        of_groups = np.bincount(groups, rows, len(facts)).astype(np.int64)
        nulls = np.array([each.null_count for each in facts], np.int64)
        nan_free = known & ~np.array([each.has_nan for each in facts], bool)
        return Bounds(
            minimum, maximum, has_minimum & known, has_maximum & known, nulls, known, of_groups, nan_free
        ).take(groups)

    def _ends(self, values: list[Any]) -> tuple[npt.NDArray[Any], Mask]:
        filler = b"" if self.type.family in (Family.TEXT, Family.BINARY) else 0
        ends = np.full(len(values), filler, self.type.dtype)
        there = np.array([value is not None for value in values], bool)
        for place in np.flatnonzero(there).tolist():
            ends[place] = values[place]
        return ends, there

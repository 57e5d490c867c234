"""The rows of the newest time of each series: row groups are looked at newest first, until no other can have one.

Which series a row group holds is decoded from its key columns, as runs; times only of those row groups, and of those of
their runs, whose latest time is not before what was found of the series. All rows that share the newest time count, and
so do all rows of row groups that may hold rows without a time: an engine answers from a superset of what matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.model.predicate import And, Predicate, columns_of
from windrow.questions.naming import Newest, NewestBuckets
from windrow.reading.matching import matching_texts, matching_values
from windrow.reading.series import Columns, Runs, UnreadableError

__all__ = ["Extent", "newest_rows", "start_of_buckets"]

_Longs = NDArray[np.int64]
_Mask = NDArray[np.bool_]
_NEVER = -(2**63)
_NO_TIME = _NEVER + 1
"""No row has it, nor is it what stands for rows that do not count."""
_MOST_UNSURE = 2**16
"""Rows that are taken whatever their times are."""
_MOST_GROUPS = 8
"""Row groups that are looked at for buckets."""


class Extent(NamedTuple):
    """The times of row groups, in the order of a virtual file."""

    latest: _Longs
    """In microseconds; no row has a later one."""
    is_sure: _Mask
    """Whether every row has a time."""
    newest_first: bool | None = None
    """Whether times fall, or else rise, wherever all keys stay the same; None where they do neither."""


def newest_rows(columns: Columns, extent: Extent, newest: Newest, timestamp: str) -> dict[int, _Longs]:
    """The rows that may be the newest of their series, by row group; `UnreadableError` where engines have to look."""
    unsure = np.flatnonzero(~extent.is_sure)
    if int(columns.rows[unsure].sum()) > _MOST_UNSURE:
        raise UnreadableError
    sure = np.flatnonzero(extent.is_sure)
    ordered = extent._replace(latest=extent.latest[sure])
    found = _Search(columns, _Series.of(columns, newest, sure), ordered, newest, timestamp).run()
    for name in newest.filled:
        if any(columns.nulls(name, group, rows) for group, rows in found.items()):
            raise UnreadableError
    return found | {group: np.arange(columns.rows[group]) for group in unsure.tolist() if columns.rows[group]}


class _Series(NamedTuple):
    """The runs of all series in some row groups, one behind the other."""

    groups: _Longs
    """The row groups."""
    owners: _Longs
    """Which of these each run is in."""
    series: _Longs
    """Which series each run is of."""
    starts: _Longs
    """Where in its row group it begins, and ends."""
    ends: _Longs

    may_pass: _Mask
    """Whether rows of the run may count, by its keys."""

    @classmethod
    def of(cls, columns: Columns, newest: Newest, groups: _Longs) -> _Series:
        keys = [columns.runs(name, groups.tolist()) for name in newest.by]
        passing = [
            _passing_keys(name, runs, newest.where, is_text=columns.column(name).dtype is None)
            for name, runs in zip(newest.by, keys, strict=True)
        ]
        if not keys:
            ends: Sequence[_Longs] = [columns.rows[[group]] for group in groups.tolist()]
            series, may_pass = np.zeros(len(groups), np.int64), np.ones(len(groups), bool)
        elif len(keys) == 1:
            series, may_pass, ends = keys[0].codes + 1, passing[0], keys[0].ends
        else:
            series, may_pass, ends = _joined(keys, passing)
        counts = np.array([len(each) for each in ends], np.int64)
        last = np.concatenate([np.empty(0, np.int64), *ends])
        starts = np.append(0, last)[:-1]
        starts[(np.cumsum(counts) - counts)[counts > 0]] = 0
        return cls(groups, np.repeat(np.arange(len(counts)), counts), series, starts, last, may_pass)


def _passing_keys(name: str, runs: Runs, where: Predicate | None, *, is_text: bool) -> _Mask:
    """Which runs of a key may pass the tests of it."""
    passes = np.ones(len(runs.codes), bool)
    for test in _parts(where):
        if is_text and columns_of(test) == {name}:
            # The number of null is the last one.
            passes &= np.append(_known(matching_texts(test, runs.numbers.texts)), False)[runs.codes]
    return passes


def _joined(keys: Sequence[Runs], passing: Sequence[_Mask]) -> tuple[_Longs, _Mask, Sequence[_Longs]]:
    """Runs of several columns as runs of the series that they tell apart."""
    ends = [np.unique(np.concatenate(some)) for some in zip(*(each.ends for each in keys), strict=True)]
    count = sum(map(len, ends))
    series, may_pass = np.zeros(count, np.int64), np.ones(count, bool)
    for runs, of_column in zip(keys, passing, strict=True):
        firsts = np.cumsum([0, *map(len, runs.ends)]).tolist()[:-1]
        places = [
            first + np.searchsorted(own, every, "left")
            for first, own, every in zip(firsts, runs.ends, ends, strict=True)
        ]
        at = np.concatenate([np.empty(0, np.int64), *places])
        codes = runs.codes[at] + 1
        may_pass &= of_column[at]
        series = np.unique(series * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return series, may_pass, ends


class _Looked(NamedTuple):
    """A row group whose times were looked at: all of them, and the latest of each run."""

    group: int
    owner: int
    times: _Longs
    latest: _Longs


class _Search:
    """One search for the newest rows."""

    def __init__(self, columns: Columns, series: _Series, extent: Extent, newest: Newest, timestamp: str) -> None:
        self._columns = columns
        self._series = series
        self._latest = extent.latest
        # Rows that do not count may lie anywhere in a run.
        self._newest_first = None if newest.where is not None else extent.newest_first
        self._newest = newest
        self._timestamp = timestamp
        self._best = np.full(int(series.series.max(initial=-1)) + 1, _NEVER)

    def run(self) -> dict[int, _Longs]:
        """The rows of the newest time of each series, by row group."""
        looked: list[_Looked] = []
        pending, together = np.ones(len(self._latest), bool), 1
        while True:
            open_ = pending[self._series.owners] & self._is_open()
            owners = np.unique(self._series.owners[open_])
            if not len(owners):
                break
            # Some series may have ended long ago: so few rounds look at all row groups.
            for owner in owners[np.argsort(-self._latest[owners], kind="stable")][:together].tolist():
                looked.append(self._look(owner))
                pending[owner] = False
            together *= 2
        return dict(self._chosen(looked))

    def _is_open(self) -> _Mask:
        """Runs that may have the newest time of their series, as far as it was found."""
        is_open: _Mask = self._best[self._series.series] <= self._latest[self._series.owners]
        return is_open & self._series.may_pass

    def _look(self, owner: int) -> _Looked:
        """Find the latest times of the series of a row group, of those that may matter."""
        group, first, stop = int(self._series.groups[owner]), *self._span(owner)
        series, times = self._series.series[first:stop], self._times(group)
        if self._newest_first is None:
            latest = np.maximum.reduceat(times, self._series.starts[first:stop])
        else:
            latest = times[self._first_rows(slice(first, stop))]
        np.maximum.at(self._best, series, latest)
        return _Looked(group, owner, times, latest)

    def _span(self, owner: int) -> tuple[int, int]:
        """The places of the runs of a row group."""
        first, stop = np.searchsorted(self._series.owners, [owner, owner + 1]).tolist()
        return first, stop

    def _chosen(self, looked: Sequence[_Looked]) -> Iterator[tuple[int, _Longs]]:
        for group, owner, times, latest in looked:
            runs = slice(*self._span(owner))
            is_newest = (latest == self._best[self._series.series[runs]]) & (latest > _NEVER)
            if is_newest.any() and self._newest_first is not None:
                yield group, self._tied(times, runs, is_newest)
            elif is_newest.any():
                lengths = self._series.ends[runs] - self._series.starts[runs]
                yield group, np.flatnonzero(times == np.repeat(np.where(is_newest, latest, _NO_TIME), lengths))

    def _first_rows(self, runs: slice) -> _Longs:
        """The row of each run that has its latest time."""
        return self._series.starts[runs] if self._newest_first else self._series.ends[runs] - 1

    def _tied(self, times: _Longs, runs: slice, is_newest: _Mask) -> _Longs:
        """The rows of some runs that have the latest time, which lie at one end of each."""
        step = 1 if self._newest_first else -1
        starts, ends = self._series.starts[runs][is_newest], self._series.ends[runs][is_newest]
        rows, found = self._first_rows(runs)[is_newest], list[_Longs]()
        while len(rows):
            found.append(rows)
            inside = (rows + step >= starts) & (rows + step < ends)
            rows, starts, ends = rows[inside], starts[inside], ends[inside]
            tied = times[rows + step] == times[rows]
            rows, starts, ends = rows[tied] + step, starts[tied], ends[tied]
        return np.sort(np.concatenate(found))

    def _times(self, group: int) -> _Longs:
        """The time of each row of a row group; such as do not count are before all others."""
        found, where = self._columns.fixed(self._timestamp, group), self._newest.where
        if found.valid is not None:
            raise UnreadableError
        if where is None:
            return found.values
        return np.where(_passing_rows(self._columns, group, np.arange(len(found.values)), where), found.values, _NEVER)


def _passing_rows(columns: Columns, group: int, at: _Longs, where: Predicate) -> _Mask:
    """Which rows of a row group pass a condition, exactly."""
    passes = np.ones(len(at), bool)
    for test in _parts(where):
        names = columns_of(test)
        if len(names) != 1:
            raise UnreadableError
        [name] = names
        passes &= _passing(columns, group, at, name, test)
    return passes


def _parts(where: Predicate | None) -> tuple[Predicate, ...]:
    """What a row must meet, each by itself."""
    return where.parts if isinstance(where, And) else () if where is None else (where,)


def _passing(columns: Columns, group: int, at: _Longs, name: str, test: Predicate) -> _Mask:
    column = columns.column(name)
    if column.dtype is None:
        numbers, codes, [ends] = columns.runs(name, [group])
        # The number of null is the last one.
        passing = np.append(_known(matching_texts(test, numbers.texts)), False)
        of_texts: _Mask = passing[codes[np.searchsorted(ends, at, "right")]]
        return of_texts
    found = columns.fixed(name, group)
    if found.values.dtype.kind == "f":
        raise UnreadableError  # neighbours of a literal, and NaN, pass there
    passes = _known(matching_values(test, found.values[at], column.type))
    return passes if found.valid is None else passes & (found.valid[at] != 0)


def _known(passing: _Mask | None) -> _Mask:
    if passing is None:
        raise UnreadableError
    return passing


def start_of_buckets(columns: Columns, extent: Extent, buckets: NewestBuckets, timestamp: str) -> int | None:
    """A time before which no row of the newest buckets is; None where too few buckets were found to say.

    Two times that are as far apart as the longest bucket are in different ones.
    """
    newest = np.empty(0, np.int64)
    for group in np.argsort(-extent.latest, kind="stable")[:_MOST_GROUPS].tolist():
        found = columns.fixed(timestamp, group)
        at = np.arange(len(found.values)) if found.valid is None else np.flatnonzero(found.valid)
        if buckets.where is not None:
            at = at[_passing_rows(columns, group, at, buckets.where)]
        newest = np.union1d(newest, found.values[at])
        start = _after(newest, buckets)
        if start is not None:
            return start
    return None


def _after(times: _Longs, buckets: NewestBuckets) -> int | None:
    """Where so many buckets begin at the earliest; `times` are in order."""
    place, latest = len(times), 0
    for _ in range(buckets.count):
        if not place:
            return None
        latest = int(times[place - 1])
        place = int(np.searchsorted(times, latest - buckets.step, "right"))
    return latest - buckets.step if buckets.count else None

"""Which of some splits may hold a row that matches, by their zone maps alone: bounds, null counts, regular expressions.

The zones of a column become arrays, which the evaluator of all bounds judges at once. The answer "no" is a proof;
whatever is not understood may match. Times in zones are microseconds, rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import re2
from numpy.typing import NDArray

from windrow.bounded import memo
from windrow.model.moments import microseconds
from windrow.model.operators import Literal, Test, literals_of, operator_of, with_literals
from windrow.model.predicate import (
    And,
    Not,
    Or,
    Predicate,
    columns_of,
    negation_normal_form,
    value_tests,
    with_tests,
)
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.zones import ColumnZone, SortColumnValue, ValueKind
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.pruner import compile_predicate
from windrow.pruning.types import FLOAT, OPAQUE, SIGNED, TEXT, WHOLE, ColumnType, utf8

__all__ = ["Zones", "prune_splits"]

_LARGEST = 2**63 - 1
_ENOUGH, _WORTH = 1000, 20
"""After so many splits, regular expressions are tried only if they leave out more than every twentieth."""
_TYPES = {ValueKind.STRING: TEXT, ValueKind.I64: SIGNED, ValueKind.U64: WHOLE, ValueKind.F64: FLOAT}
_WHOLE = {ValueKind.I64, ValueKind.U64}
_NOTHING: dict[ColumnType, Any] = {TEXT: b"", OPAQUE: b"", SIGNED: 0, WHOLE: 0, FLOAT: 0.0}
_QUIET = re2.Options()
_QUIET.log_errors = False


def prune_splits(predicate: Predicate, splits: Sequence[SplitMetadata]) -> list[SplitMetadata]:
    """Return the splits that may hold a row that matches."""
    places = Zones(splits).prune(predicate, np.arange(len(splits)))
    return [splits[place] for place in places.tolist()]


class _Column(NamedTuple):
    """The zones of one column."""

    type: ColumnType
    bounds: Bounds
    complete: Mask
    """Splits whose zone has bounds, or says that all is null."""
    regexes: list[str | None]
    codes: NDArray[np.int64]
    """Which of these each split has."""


class Zones:
    """The zone maps of some splits; columns become arrays when a predicate first names them."""

    def __init__(self, splits: Sequence[SplitMetadata]) -> None:
        self._splits = splits
        self._rows = np.array([split.row_count for split in splits], np.int64)
        self._columns: dict[tuple[str, bool], _Column] = {}
        self._answers: dict[str, tuple[int, int]] = {}
        """By column: for how many splits regular expressions were tried, and how many of these they left out."""

    def prune(self, predicate: Predicate, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the places whose split may hold a row that matches."""
        tested = with_tests(negation_normal_form(predicate), _in_microseconds)
        times = {test.column for test in value_tests(predicate) if any(isinstance(v, date) for v in literals_of(test))}
        columns = {name: self._column(name, is_time=name in times) for name in columns_of(tested)}
        pruner = compile_predicate(tested, {name: column.type for name, column in columns.items()})
        may_match = pruner.judge(len(places), lambda name: columns[name].bounds.take(places)).may_match
        left = places[may_match]
        return left[self._by_regexes(tested, left)] if len(left) else left

    def tells(self, columns: Sequence[str], places: NDArray[np.int64]) -> bool:
        """Whether zones say of these columns all that the statistics of a lone row group could."""
        return all(bool(self._column(name).complete[places].all()) for name in columns)

    def _column(self, name: str, *, is_time: bool = False) -> _Column:
        if (name, is_time) not in self._columns:
            zones = [_zone_of(split, name) for split in self._splits]
            self._columns[name, is_time] = _column(zones, self._rows, is_time=is_time)
        return self._columns[name, is_time]

    def _by_regexes(self, predicate: Predicate, places: NDArray[np.int64]) -> Mask:
        match predicate:
            case And(parts):
                return _joined(np.logical_and, [_all(places), *(self._by_regexes(part, places) for part in parts)])
            case Or(parts):
                masks = [self._by_regexes(part, places) for part in parts]
                return _joined(np.logical_or, masks) if masks else _all(places)
            case Not():
                return _all(places)
        intervals = operator_of(predicate).intervals
        accepted = () if intervals is None else intervals(predicate)
        if accepted and all(interval.is_point for interval in accepted):
            return self._fits(predicate.column, literals_of(predicate), places)
        return _all(places)

    def _fits(self, name: str, values: Sequence[Literal], places: NDArray[np.int64]) -> Mask:
        column = self._column(name)
        if len(column.regexes) == 1 and column.regexes[0] is None:
            return _all(places)
        tried, left_out = self._answers.get(name, (0, 0))
        if tried > _ENOUGH and left_out * _WORTH < tried:
            return _all(places)
        codes = column.codes[places]
        fits = np.ones(len(column.regexes), bool)
        for code in np.unique(codes).tolist():
            regex = column.regexes[code]
            fits[code] = regex is None or any(_fits_regex(regex, value) for value in values)
        fitting: Mask = fits[codes]
        self._answers[name] = tried + len(places), left_out + int((~fitting).sum())
        return fitting


def _joined(how: np.ufunc, masks: Sequence[Mask]) -> Mask:
    joined: Mask = how.reduce(masks)
    return joined


def _all(places: NDArray[np.int64]) -> Mask:
    return np.ones(len(places), bool)


def _column(zones: Sequence[ColumnZone | None], rows: NDArray[np.int64], *, is_time: bool) -> _Column:
    ends = [end for zone in zones if zone is not None for end in (zone.minimum, zone.maximum)]
    kinds = [end.kind for end in ends if end.kind is not ValueKind.NULL]
    column_type = OPAQUE if not kinds else WHOLE if {*kinds} >= _WHOLE else _TYPES[kinds[0]]
    minimum, has_minimum = _ends([None if zone is None else zone.minimum for zone in zones], column_type)
    maximum, has_maximum = _ends([None if zone is None else zone.maximum for zone in zones], column_type)
    if is_time and column_type in (SIGNED, WHOLE):
        # Times are rounded down, so what lies above the last whole microsecond is still below the next one.
        maximum = np.where(maximum < _LARGEST, maximum + 1, maximum)
    has_zone = np.array([zone is not None for zone in zones], bool)
    nulls = np.array([0 if zone is None else zone.null_count for zone in zones], np.int64)
    # More nulls than rows say as much as all of them.
    bounds = Bounds(minimum, maximum, has_minimum, has_maximum, np.minimum(nulls, rows), has_zone, rows)
    regexes: dict[str | None, int] = {}
    codes = [regexes.setdefault(None if zone is None else zone.regex, len(regexes)) for zone in zones]
    complete = has_zone & ((has_minimum & has_maximum) | (nulls >= rows))
    return _Column(column_type, bounds, complete, list(regexes), np.array(codes, np.int64))


def _ends(values: Sequence[SortColumnValue | None], column_type: ColumnType) -> tuple[NDArray[Any], Mask]:
    """One end of all zones; those of another kind than the first are as good as none."""
    kinds = _WHOLE if column_type is WHOLE else {kind for kind, each in _TYPES.items() if each is column_type}
    ends = np.full(len(values), _NOTHING[column_type], column_type.dtype)
    there = np.zeros(len(values), bool)
    for place, value in enumerate(values):
        if value is not None and value.kind in kinds:
            there[place] = True
            ends[place] = utf8(value.value) if isinstance(value.value, str) else value.value
    return ends, there


def _in_microseconds(test: Test) -> Test:
    """The test with times as zones hold them."""
    changed: Test = with_literals(test, tuple(map(_plain, literals_of(test))))
    return changed


def _plain(value: Literal) -> Literal:
    return microseconds(value) if isinstance(value, date) else value


def _fits_regex(regex: str, value: Any) -> bool:
    """False only when the regular expression of a zone proves that a value is not there."""
    pattern = _pattern(regex) if isinstance(value, str) else None
    return pattern is None or pattern.fullmatch(value) is not None


def _zone_of(split: SplitMetadata, column: str) -> ColumnZone | None:
    """The zone of a column; None where there is none."""
    position = _positions(split.scope.sort_schema).get(column)
    return split.zones[position] if position is not None and position < len(split.zones) else None


@memo("places in sort schemas", 256)
def _positions(sort_schema: str) -> dict[str, int]:
    if not sort_schema:
        return {}
    return {name: place for place, name in enumerate(SortSchema.parse(sort_schema).column_names)}


@memo("regular expressions", 4096)
def _pattern(regex: str) -> Any:
    """Return the compiled expression, or None when it cannot be used: then it proves nothing."""
    try:
        return re2.compile(regex, _QUIET)
    except re2.error:
        return None

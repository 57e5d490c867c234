"""Zone maps of many splits as arrays: one judgement for all of them.

It says what `windrow.pruning.zones.may_match` says of each split, or less: a split that may match stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.bounded import BoundedCache
from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    StartsWith,
    columns_of,
    negation_normal_form,
)
from windrow.model.split import SplitMetadata
from windrow.model.zones import ColumnZone, ValueKind
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.pruner import compile_predicate
from windrow.pruning.selection import literals_of, value_tests
from windrow.pruning.types import FLOAT, OPAQUE, SIGNED, TEXT, ColumnType
from windrow.pruning.zones import fits_regex, zone_of

__all__ = ["Zones"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63 - 1
_MOST_COLUMNS = 256
_ENOUGH, _WORTH = 1000, 20
"""After so many splits, regular expressions are asked only if they leave out more than every twentieth."""
_TYPES = {ValueKind.STRING: TEXT, ValueKind.I64: SIGNED, ValueKind.F64: FLOAT}
_NOTHING: dict[str, Any] = {"object": b"", "int64": 0, "float64": 0.0}


class _Column(NamedTuple):
    """The zones of one column."""

    type: ColumnType
    bounds: Bounds
    known: Mask
    """Splits whose zone has bounds, or says that all is null."""
    regexes: list[str | None]
    codes: NDArray[np.int64]
    """Which of these each split has."""


class Zones:
    """The zone maps of some splits; columns become arrays when they are first asked about."""

    def __init__(self, splits: Sequence[SplitMetadata]) -> None:
        self._splits = splits
        self._rows = np.array([split.row_count for split in splits], np.int64)
        self._columns: BoundedCache[tuple[str, bool], _Column] = BoundedCache("zones of columns", _MOST_COLUMNS)
        self._answers: BoundedCache[str, tuple[int, int]] = BoundedCache("expressions of columns", _MOST_COLUMNS)
        """Of how many splits the regular expressions of a column were asked, and how many of these they left out."""

    def prune(self, predicate: Predicate, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the places whose split may hold a row that matches."""
        asked = _in_microseconds(negation_normal_form(predicate))
        times = {test.column for test in value_tests(predicate) if any(isinstance(v, date) for v in literals_of(test))}
        columns = {name: self._column(name, is_time=name in times) for name in columns_of(asked)}
        pruner = compile_predicate(asked, {name: column.type for name, column in columns.items()})
        kept = pruner.judge(len(places), lambda name: columns[name].bounds.take(places)).may_match
        left = places[kept]
        return left[self._by_regexes(asked, left)] if len(left) else left

    def tells(self, columns: Sequence[str], places: NDArray[np.int64]) -> bool:
        """Whether zones say of these columns all that the statistics of a lone row group could."""
        return all(bool(self._column(name).known[places].all()) for name in columns)

    def _column(self, name: str, *, is_time: bool = False) -> _Column:
        def made() -> _Column:
            return _column([zone_of(split, name) for split in self._splits], self._rows, is_time=is_time)

        return self._columns.get_or_make((name, is_time), made)

    def _by_regexes(self, predicate: Predicate, places: NDArray[np.int64]) -> Mask:
        match predicate:
            case And(parts):
                return _joined(np.logical_and, [_all(places), *(self._by_regexes(part, places) for part in parts)])
            case Or(parts) if parts:
                return _joined(np.logical_or, [self._by_regexes(part, places) for part in parts])
            case Comparison(column, Op.EQUAL, value):
                return self._fits(column, (value,), places)
            case In(column, values):
                return self._fits(column, values, places)
        return _all(places)

    def _fits(self, name: str, values: Sequence[Literal], places: NDArray[np.int64]) -> Mask:
        column = self._column(name)
        if len(column.regexes) == 1 and column.regexes[0] is None:
            return _all(places)
        asked, left_out = self._answers.get(name) or (0, 0)
        if asked > _ENOUGH and left_out * _WORTH < asked:
            return _all(places)
        codes = column.codes[places]
        fits = np.ones(len(column.regexes), bool)
        for code in np.unique(codes).tolist():
            regex = column.regexes[code]
            fits[code] = regex is None or any(fits_regex(regex, value) for value in values)
        fitting: Mask = fits[codes]
        self._answers.put(name, (asked + len(places), left_out + int((~fitting).sum())))
        return fitting


def _joined(how: np.ufunc, masks: Sequence[Mask]) -> Mask:
    joined: Mask = how.reduce(masks)
    return joined


def _all(places: NDArray[np.int64]) -> Mask:
    return np.ones(len(places), bool)


def _column(zones: Sequence[ColumnZone | None], rows: NDArray[np.int64], *, is_time: bool) -> _Column:
    kinds = [zone.minimum.kind for zone in zones if zone is not None and zone.minimum.kind is not ValueKind.NULL]
    kind = kinds[0] if kinds else ValueKind.NULL
    column_type = _TYPES.get(kind, OPAQUE)
    minimum, has_minimum = _ends([None if zone is None else zone.minimum for zone in zones], kind, column_type)
    maximum, has_maximum = _ends([None if zone is None else zone.maximum for zone in zones], kind, column_type)
    if kind is ValueKind.I64 and is_time:
        # Times are rounded down, so what lies above the last whole microsecond is still below the next one.
        maximum = np.where(maximum < _LARGEST, maximum + 1, maximum)
    has_zone = np.array([zone is not None for zone in zones], bool)
    nulls = np.array([0 if zone is None else zone.null_count for zone in zones], np.int64)
    # More nulls than rows say as much as all of them.
    bounds = Bounds(minimum, maximum, has_minimum, has_maximum, np.minimum(nulls, rows), has_zone, rows)
    regexes: dict[str | None, int] = {}
    codes = [regexes.setdefault(None if zone is None else zone.regex, len(regexes)) for zone in zones]
    known = has_zone & ((has_minimum & has_maximum) | (nulls >= rows))
    return _Column(column_type, bounds, known, list(regexes), np.array(codes, np.int64))


def _ends(values: Sequence[Any], kind: ValueKind, column_type: ColumnType) -> tuple[NDArray[Any], Mask]:
    """One end of all zones; those of another kind than most are as good as none."""
    there = [column_type is not OPAQUE and value is not None and value.kind is kind for value in values]
    ends = np.full(len(values), _NOTHING[column_type.dtype], column_type.dtype)
    for place, (value, is_there) in enumerate(zip(values, there, strict=True)):
        if is_there:
            ends[place] = value.value.encode("utf-8", "surrogatepass") if kind is ValueKind.STRING else value.value
    return ends, np.array(there, bool)


def _in_microseconds(predicate: Predicate) -> Predicate:
    """The predicate with times as zones hold them."""
    match predicate:
        case And(parts):
            return And(tuple(map(_in_microseconds, parts)))
        case Or(parts):
            return Or(tuple(map(_in_microseconds, parts)))
        case Not(part):
            return Not(_in_microseconds(part))
        case Comparison(value=value):
            plain = _plain(value)
            return predicate if plain is value else replace(predicate, value=plain)
        case Between(low=low, high=high):
            return replace(predicate, low=_plain(low), high=_plain(high))
        case In(values=values):
            return replace(predicate, values=tuple(map(_plain, values)))
        case IsNull() | IsNotNull() | StartsWith():
            return predicate


def _plain(value: Literal) -> Literal:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days * 86_400_000_000
    return value

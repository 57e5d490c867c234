"""Whether any row of a split can match, by its zone maps alone: bounds, null counts and regular expressions.

The answer "no" is a proof; whatever is not understood may match. Times in zones are microseconds, rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import re2

from windrow.bounded import memo
from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Op,
    Or,
    Predicate,
    StartsWith,
    negation_normal_form,
)
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.zones import ColumnZone, SortColumnValue, ValueKind

__all__ = ["fits_regex", "may_match", "zone_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_QUIET = re2.Options()
_QUIET.log_errors = False


def may_match(predicate: Predicate, split: SplitMetadata) -> bool:
    """Return False only when no row of the split can match."""
    return _may(negation_normal_form(predicate), split)


def _may(predicate: Predicate, split: SplitMetadata) -> bool:
    match predicate:
        case And(parts):
            return all(_may(part, split) for part in parts)
        case Or(parts):
            return any(_may(part, split) for part in parts)
        case Comparison() | In() | Between() | IsNull() | IsNotNull() | StartsWith():
            zone = zone_of(split, predicate.column)
            return zone is None or _column_may(predicate, zone, split.row_count)
        case _:
            return True


def _column_may(predicate: Predicate, zone: ColumnZone, row_count: int) -> bool:
    if isinstance(predicate, IsNull):
        return zone.null_count > 0
    if zone.null_count >= row_count:
        return False
    match predicate:
        case Comparison(_, op, value):
            return _TESTS[op](zone, _bound(value))
        case In(_, values):
            return any(_equal(zone, _bound(value)) for value in values)
        case Between(_, low, high):
            return _at_most(zone, _bound(high)) and _at_least(zone, _bound(low))
        case StartsWith(_, prefix):
            return _starts_with(zone, prefix)
    return True


def _equal(zone: ColumnZone, value: Any) -> bool:
    if not (_at_most(zone, value) and _reaches(zone, value)):
        return False
    return zone.regex is None or fits_regex(zone.regex, value)


def fits_regex(regex: str, value: Any) -> bool:
    """Return False only when the regular expression of a zone proves that a value is not there."""
    pattern = _pattern(regex) if isinstance(value, str) else None
    return pattern is None or pattern.fullmatch(value) is not None


def _below(zone: ColumnZone, value: Any) -> bool:
    return not _comparable(zone.minimum, value) or zone.minimum.value < value


def _at_most(zone: ColumnZone, value: Any) -> bool:
    return not _comparable(zone.minimum, value) or zone.minimum.value <= value


def _reaches(zone: ColumnZone, value: Any) -> bool:
    return not _comparable(zone.maximum, value) or zone.maximum.value >= value


def _at_least(zone: ColumnZone, value: Any) -> bool:
    # NaN is greater than any number and is in no float's maximum, so such a maximum proves nothing.
    # Times are rounded down, so a maximum that equals the value may lie above it: `>` is tested like `>=`.
    return zone.maximum.kind is ValueKind.F64 or _reaches(zone, value)


def _any(_: ColumnZone, __: Any) -> bool:
    return True


_TESTS: dict[Op, Callable[[ColumnZone, Any], bool]] = {
    Op.EQUAL: _equal,
    Op.NOT_EQUAL: _any,
    Op.LESS: _below,
    Op.LESS_OR_EQUAL: _at_most,
    Op.GREATER: _at_least,
    Op.GREATER_OR_EQUAL: _at_least,
}


def _starts_with(zone: ColumnZone, prefix: str) -> bool:
    low, high = zone.minimum, zone.maximum
    if not isinstance(low.value, str) or not isinstance(high.value, str) or not isinstance(prefix, str):
        return True
    return low.value[: len(prefix)] <= prefix <= high.value


def _comparable(bound: SortColumnValue, value: Any) -> bool:
    if bound.kind is ValueKind.NULL or value is None:
        return False
    return isinstance(value, str) == (bound.kind is ValueKind.STRING)


def _bound(value: Literal) -> Any:
    """Return a literal as zones hold it, or None when it cannot be compared with them."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days * 86_400_000_000
    if isinstance(value, bytes) or (isinstance(value, float | Decimal) and math.isnan(value)):
        return None
    return value


def zone_of(split: SplitMetadata, column: str) -> ColumnZone | None:
    """Return the zone of a column; None where there is none."""
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

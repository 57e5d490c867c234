"""From a condition in a query to a predicate that every row of the answer fulfils.

The predicate may select more rows than the condition and never fewer, so that files can be passed over by it while the
engine still filters every row. An AND drops parts without a predicate; an OR needs all of its parts; a NOT needs
an exact predicate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlglot import exp

from windrow.errors import InvalidInput
from windrow.model.operators import mirrored
from windrow.model.predicate import And, Comparison, In, IsNotNull, Not, Op, Or, Predicate, StartsWith
from windrow.questions.where import OPS, Reading, listed, literal_of, predicate_of

__all__ = ["TOO_FINE", "all_of", "any_of", "each_test", "to_exact_predicate", "to_predicate", "truncation_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIXED_UNITS = {
    "MICROSECOND": timedelta(microseconds=1),
    "MILLISECOND": timedelta(milliseconds=1),
    "SECOND": timedelta(seconds=1),
    "MINUTE": timedelta(minutes=1),
    "HOUR": timedelta(hours=1),
    "DAY": timedelta(days=1),
    "WEEK": timedelta(weeks=1),
}
_LONG_UNITS = {"MONTH": timedelta(days=31), "QUARTER": timedelta(days=92), "YEAR": timedelta(days=366)}
_UNITS = _FIXED_UNITS | _LONG_UNITS
_LEAST_MONTH = timedelta(days=28)
_TYPES = {*exp.DataType.NUMERIC_TYPES, *exp.DataType.TEXT_TYPES} | {
    exp.DataType.Type[name] for name in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "BOOLEAN", "INTERVAL")
}
TOO_FINE = re.compile(r":\d+\.\d{7}")
"""A time with more digits than a value of Python can have."""
_MOMENTS = {exp.DataType.Type[name] for name in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ")}
_STABLE = (
    *(exp.Boolean, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Cast, exp.Interval),
    *(exp.Var, exp.Identifier, exp.Placeholder, exp.CurrentTimestamp, exp.CurrentDate),
    *(exp.TimestampTrunc, exp.DateTrunc, exp.DateBin, exp.TimeToUnix, exp.UnixToTime),
)
_STABLE_CALLS = ("now", "today", "current_timestamp", "make_timestamp", "make_date", "epoch_us", "epoch_ns")
"""The parts of a constant: they have one value for all rows of a query, before it runs."""


def to_predicate(
    condition: exp.Expr, column: Callable[[exp.Column], str | None], constant: Callable[[exp.Expr], Any]
) -> Predicate | None:
    """Return a predicate on some columns that all rows of a condition fulfil; None when there is none.

    `column` gives the name of a column in the predicate, None for other columns. `constant` gives the
    value of an expression without columns, or raises InvalidInput.
    """
    return _implied(condition, _reading(column, constant), negated=False)


def to_exact_predicate(
    condition: exp.Expr, column: Callable[[exp.Column], str | None], constant: Callable[[exp.Expr], Any]
) -> Predicate | None:
    """Return the predicate that selects exactly the rows of a condition; None when there is none."""
    return _exactly(condition, _reading(column, constant))


def _reading(column: Callable[[exp.Column], str | None], constant: Callable[[exp.Expr], Any]) -> Reading:
    def named(part: exp.Expr) -> str:
        name = column(part) if isinstance(part, exp.Column) else None
        if name is None:
            raise InvalidInput("another column")
        return name

    def value(part: exp.Expr) -> Any:
        if not all(map(_is_stable, part.walk())):
            raise InvalidInput("no constant")
        try:
            return literal_of(part)
        except InvalidInput:
            return constant(part)

    return Reading(named, value)


def _implied(condition: exp.Expr, reading: Reading, *, negated: bool) -> Predicate | None:
    match condition:
        case exp.Paren():
            return _implied(condition.this, reading, negated=negated)
        case exp.Not():
            return _implied(condition.this, reading, negated=not negated)
        case exp.And() | exp.Or():
            parts = [_implied(part, reading, negated=negated) for part in condition.flatten()]
            return all_of(parts) if isinstance(condition, exp.And) != negated else any_of(parts)
        case _:
            leaf = _exactly(condition, reading) or (None if negated else _about(condition, reading))
            return Not(leaf) if leaf is not None and negated else leaf


def all_of(parts: Sequence[Predicate | None]) -> Predicate | None:
    """Return the AND of the parts; those that are None are dropped."""
    predicates = [part for part in parts if part is not None]
    return predicates[0] if len(predicates) == 1 else And(tuple(predicates)) if predicates else None


def any_of(parts: Sequence[Predicate | None]) -> Predicate | None:
    """Return the OR of the parts; None if one of them is None."""
    predicates = [part for part in parts if part is not None]
    if not predicates or len(predicates) < len(parts):
        return None
    return predicates[0] if len(predicates) == 1 else Or(tuple(predicates))


# ---- one test of one column


def _exactly(condition: exp.Expr, reading: Reading) -> Predicate | None:
    """Return the predicate equal to the condition, for nulls too."""
    try:
        return predicate_of(condition, reading)
    except InvalidInput:
        return None


def _is_stable(node: exp.Expr) -> bool:
    if isinstance(node, exp.DataType):
        return node.this in _TYPES
    if isinstance(node, exp.Literal):
        return not TOO_FINE.search(node.name)
    return isinstance(node, _STABLE) or node.name.lower() in _STABLE_CALLS


def _about(condition: exp.Expr, reading: Reading) -> Predicate | None:
    """Return a predicate that holds wherever the condition does."""
    try:
        match condition:
            case exp.Column():
                return Comparison(reading.column(condition), Op.EQUAL, value=True)
            case exp.Like():
                return _prefix(condition, reading)
            case exp.In():
                return _listed(condition, reading)
            case exp.NullSafeEQ():
                return _exactly(exp.EQ(this=condition.this, expression=condition.expression), reading)
            case exp.Between() if not condition.args.get("symmetric"):
                low = exp.GTE(this=condition.this, expression=condition.args["low"])
                high = exp.LTE(this=condition.this, expression=condition.args["high"])
                return all_of([_about(low, reading), _about(high, reading)])
            case _ if type(condition) in OPS:
                return _truncated(condition, reading) or _counted(condition, reading)
    except InvalidInput:
        pass
    return None


def _prefix(condition: exp.Like, reading: Reading) -> Predicate | None:
    pattern, name = reading.constant(condition.expression), reading.column(condition.this)
    if not isinstance(pattern, str) or condition.args.get("negate"):
        return None
    prefix = pattern[: min((pattern.find(wild) for wild in "%_" if wild in pattern), default=len(pattern))]
    if prefix == pattern:
        return Comparison(name, Op.EQUAL, pattern)
    return StartsWith(name, prefix) if prefix else IsNotNull(name)


def _listed(condition: exp.In, reading: Reading) -> Predicate | None:
    """A NULL in a list selects no more rows; only NOT IN would differ."""
    values = tuple(reading.constant(each) for each in listed(condition) if not isinstance(each, exp.Null))
    return In(reading.column(condition.this), values)


# ---- times that are cut down to a day, an hour, a bucket


@dataclass(frozen=True, slots=True)
class _Cut:
    """A time cut down to a multiple of a step: less than `step` before the time itself."""

    column: str
    step: timedelta


def truncation_of(
    part: exp.Expr, column: Callable[[exp.Column], str | None], constant: Callable[[exp.Expr], Any]
) -> tuple[str, timedelta] | None:
    """Return the column of times that an expression cuts down to multiples of a step, and the step."""
    try:
        cut = _cut(part, _reading(column, constant))
    except InvalidInput:
        return None
    return None if cut is None else (cut.column, cut.step)


def _truncated(condition: exp.Expr, reading: Reading) -> Predicate | None:
    op, left, right = OPS[type(condition)], condition.this, condition.expression
    cut = _cut(left, reading)
    if cut is None:
        cut, op, right = _cut(right, reading), mirrored(op), left
    if cut is None:
        return None
    value = _as_time(reading.constant(right))
    after = Comparison(cut.column, Op.GREATER if op is Op.GREATER else Op.GREATER_OR_EQUAL, value)
    before = Comparison(cut.column, Op.LESS, value + cut.step)
    return _bounded(op, after, before)


def _cut(part: exp.Expr, reading: Reading) -> _Cut | None:
    match part:
        case exp.Paren():
            return _cut(part.this, reading)
        case exp.Cast() if part.to.this == exp.DataType.Type.DATE and isinstance(part.this, exp.Column):
            return _Cut(reading.column(part.this), timedelta(days=1))
        case exp.Cast() if part.to.this in _MOMENTS and isinstance(part.this, exp.Column):
            # Nanoseconds are cut down to the microsecond before them.
            return _Cut(reading.column(part.this), timedelta(microseconds=1))
        case exp.TimestampTrunc() | exp.DateTrunc() if isinstance(part.this, exp.Column):
            unit = part.args["unit"].name.upper()
            return _Cut(reading.column(part.this), _UNITS[unit]) if unit in _UNITS else None
        case exp.DateBin() if isinstance(part.expression, exp.Column) and not part.args.get("zone"):
            step: object = reading.constant(part.this)
            return _Cut(reading.column(part.expression), _longest(step)) if isinstance(step, timedelta) else None
    return None


def _longest(step: timedelta) -> timedelta:
    """The longest bucket of a step, of which months count 30 days."""
    return step + step / 20 if step >= _LEAST_MONTH else step


# ---- integers that are made times


def _counted(condition: exp.Expr, reading: Reading) -> Predicate | None:
    """A time that is made of a column of integers, as `epoch_ms(ts)`: what the integers lie between."""
    op, made, right = OPS[type(condition)], condition.this, condition.expression
    if not isinstance(made, exp.UnixToTime):
        op, made, right = mirrored(op), right, made
    if not (isinstance(made, exp.UnixToTime) and isinstance(made.this, exp.Column)):
        return None
    scale = made.args.get("scale")
    ticks = 10 ** int(scale.name) if scale is not None else 1
    moment = _as_time(reading.constant(right))
    microseconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    # The next integer on either side: doubles on the way to a time may be rounded.
    at, name = microseconds // timedelta(microseconds=1) * ticks // 10**6, reading.column(made.this)
    after = Comparison(name, Op.GREATER_OR_EQUAL, at - 1)
    before = Comparison(name, Op.LESS_OR_EQUAL, at + 1)
    return _bounded(op, after, before)


def _as_time(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a time without a zone is UTC
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError as error:
            raise InvalidInput(f"{value!r} is no time") from error
    raise InvalidInput(f"{value!r} is no time")


def each_test(predicate: Predicate, change: Callable[[Any], Predicate | None]) -> Predicate | None:
    """Return the predicate with every single test changed; tests that become None are dropped.

    NOT stands before nothing but single tests, so that a dropped test selects more rows.
    """
    match predicate:
        case And(parts):
            return all_of([each_test(part, change) for part in parts])
        case Or(parts):
            return any_of([each_test(part, change) for part in parts])
        case Not(part):
            inner = change(part)
            return None if inner is None else Not(inner)
    return change(predicate)


def _bounded(op: Op, after: Comparison, before: Comparison) -> Predicate | None:
    """The comparison of a value that lies between two bounds."""
    match op:
        case Op.EQUAL:
            return And((after, before))
        case Op.GREATER | Op.GREATER_OR_EQUAL:
            return after
        case Op.LESS | Op.LESS_OR_EQUAL:
            return before
    return None

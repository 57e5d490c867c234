"""From the text of a SQL condition to a predicate.

Other conditions are refused, by name: arithmetic, functions, comparisons of two columns, patterns that are no prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from windrow.errors import InvalidInput
from windrow.model.operators import comparisons_of, mirrored
from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    ILike,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    RegexpMatches,
    StartsWith,
)

__all__ = ["OPS", "Reading", "listed", "literal_of", "parse_condition", "parse_where", "predicate_of"]

OPS: dict[type[exp.Expr], Op] = {getattr(exp, name): op for name, op in comparisons_of("sqlglot").items()}
"""The operator of each comparison of SQL."""
_TIMES = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPNTZ)


@dataclass(frozen=True, slots=True)
class Reading:
    """How names and values in a condition are read; both raise InvalidInput for other expressions."""

    column: Callable[[exp.Expr], str]
    """The name that an expression has as a column."""
    constant: Callable[[exp.Expr], Literal]
    """The value of an expression without columns."""


def parse_where(text: str) -> Predicate:
    """Return the predicate of the text of a WHERE clause, or refuse it with the part that has none."""
    return predicate_of(parse_condition(text))


def parse_condition(text: str) -> exp.Expr:
    """Return the text of a WHERE clause, parsed; anything but one condition is refused."""
    try:
        parsed = parse_one(f"SELECT 1 WHERE {text}", read="duckdb")
    except (SqlglotError, RecursionError) as error:
        raise InvalidInput(f"condition {text!r} cannot be read: {str(error).splitlines()[0]}") from error
    more = {name for name, value in parsed.args.items() if value} - {"expressions", "where"}
    if not isinstance(parsed, exp.Select) or more:
        raise InvalidInput(f"condition {text!r} is more than a condition; give what stands behind WHERE alone")
    condition: exp.Expr = parsed.args["where"].this
    return condition


def predicate_of(condition: exp.Expr, reading: Reading | None = None) -> Predicate:
    """Return the predicate equal to a parsed condition, for nulls too."""
    reading = reading or _AS_WRITTEN
    for kind, read in _READERS.items():
        if isinstance(condition, kind):
            return read(condition, reading)
    if type(condition) in OPS:
        return _comparison(condition, reading)
    raise _unsupported(condition)


def _comparison(condition: exp.Expr, reading: Reading) -> Predicate:
    op = OPS[type(condition)]
    left, right = condition.this, condition.expression
    if isinstance(left, exp.Column):
        return Comparison(reading.column(left), op, reading.constant(right))
    if isinstance(right, exp.Column):
        return Comparison(reading.column(right), mirrored(op), reading.constant(left))
    raise _unsupported(condition)


def _is(condition: exp.Is, reading: Reading) -> Predicate:
    if not isinstance(condition.expression, exp.Null):
        raise _unsupported(condition)
    return IsNull(reading.column(condition.this))


def _not(condition: exp.Not, reading: Reading) -> Predicate:
    inner = predicate_of(condition.this, reading)
    return IsNotNull(inner.column) if isinstance(inner, IsNull) else Not(inner)


def _in(condition: exp.In, reading: Reading) -> Predicate:
    return In(reading.column(condition.this), tuple(reading.constant(each) for each in listed(condition)))


def listed(condition: exp.In) -> list[exp.Expr]:
    """Return the expressions of a written list; a subquery is none."""
    if any(condition.args.get(part) for part in ("query", "unnest", "field")):
        raise _unsupported(condition)
    return condition.expressions


def _between(condition: exp.Between, reading: Reading) -> Predicate:
    if condition.args.get("symmetric"):
        raise _unsupported(condition)
    low, high = (reading.constant(condition.args[side]) for side in ("low", "high"))
    return Between(reading.column(condition.this), low, high)


def _like(condition: exp.Like, reading: Reading) -> Predicate:
    pattern = _pattern(condition, reading)
    prefix, wildcard = pattern[:-1], pattern[-1:]
    if wildcard != "%" or "%" in prefix or "_" in prefix:
        raise InvalidInput(f"{condition.sql('duckdb')}: only a prefix can be looked for, such as LIKE 'cpu%'")
    test = StartsWith(reading.column(condition.this), prefix)
    return Not(test) if condition.args.get("negate") else test


def _starts_with(condition: exp.StartsWith, reading: Reading) -> Predicate:
    prefix = reading.constant(condition.expression)
    if not isinstance(prefix, str):
        raise _unsupported(condition)
    return StartsWith(reading.column(condition.this), prefix)


def _regexp(condition: exp.RegexpLike, reading: Reading) -> Predicate:
    # The operator `~` has the same node but matches the whole text; only calls have a place in the query.
    if condition.args.get("flag") is not None or "start" not in condition.meta:
        raise _unsupported(condition)
    return RegexpMatches(reading.column(condition.this), _pattern(condition, reading))


def _ilike(condition: exp.ILike, reading: Reading) -> Predicate:
    test = ILike(reading.column(condition.this), _pattern(condition, reading))
    return Not(test) if condition.args.get("negate") else test


def _pattern(condition: exp.Binary, reading: Reading) -> str:
    pattern = reading.constant(condition.expression)
    if not isinstance(pattern, str):
        raise _unsupported(condition)
    return pattern


_READERS: dict[type[exp.Expr], Callable[[Any, Reading], Predicate]] = {
    exp.Paren: lambda each, reading: predicate_of(each.this, reading),
    exp.And: lambda each, reading: And(tuple(predicate_of(part, reading) for part in each.flatten())),
    exp.Or: lambda each, reading: Or(tuple(predicate_of(part, reading) for part in each.flatten())),
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.StartsWith: _starts_with,
    exp.RegexpLike: _regexp,
    exp.ILike: _ilike,
}


def _column(expression: exp.Expr) -> str:
    if not isinstance(expression, exp.Column):
        raise _unsupported(expression)
    return expression.name


def literal_of(expression: exp.Expr) -> Literal:
    """Return the value that a parsed expression is, if it is one as it stands."""
    if isinstance(expression, exp.Paren):
        return literal_of(expression.this)
    if isinstance(expression, exp.Neg):
        value = literal_of(expression.this)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return -value
    if isinstance(expression, exp.Boolean):
        return bool(expression.this)
    if isinstance(expression, exp.Literal):
        return expression.this if expression.is_string else _number(expression.this)
    if isinstance(expression, exp.Cast):
        return _cast(expression)
    if isinstance(expression, exp.Null):
        raise InvalidInput("a comparison with NULL selects nothing; write IS NULL")
    raise _unsupported(expression)


def _number(text: str) -> int | float | Decimal:
    """SQL takes a number with a point for a decimal, and one with an exponent for a float."""
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _cast(expression: exp.Cast) -> Literal:
    kind, inner = expression.to.this, expression.this
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        raise _unsupported(expression)
    try:
        if kind == exp.DataType.Type.DATE:
            return date.fromisoformat(inner.this)
        if kind in _TIMES:
            return datetime.fromisoformat(inner.this)
        if kind == exp.DataType.Type.DOUBLE:
            return float(inner.this)
    except ValueError as error:
        problem = f"{expression.sql('duckdb')}: {error}; write times as 2026-01-31 12:00:00 and numbers as 1.5"
        raise InvalidInput(problem) from error
    raise _unsupported(expression)


def _unsupported(expression: exp.Expr) -> InvalidInput:
    return InvalidInput(
        f"{expression.sql('duckdb')}: metadata cannot answer this; use comparisons of a column with a value, IN, "
        "BETWEEN, IS NULL, LIKE 'prefix%', ILIKE, regexp_matches, AND, OR and NOT"
    )


_AS_WRITTEN = Reading(_column, literal_of)

"""From the text of a SQL condition to a predicate.

What a predicate cannot say is refused, by name: arithmetic, functions, comparisons of two columns, patterns that are no
prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from windrow.errors import InvalidInput
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
)

__all__ = ["parse_where", "predicate_of"]

_OPS: dict[type[exp.Expression], Op] = {
    exp.EQ: Op.EQUAL,
    exp.NEQ: Op.NOT_EQUAL,
    exp.LT: Op.LESS,
    exp.LTE: Op.LESS_OR_EQUAL,
    exp.GT: Op.GREATER,
    exp.GTE: Op.GREATER_OR_EQUAL,
}
_MIRRORED = {
    Op.EQUAL: Op.EQUAL,
    Op.NOT_EQUAL: Op.NOT_EQUAL,
    Op.LESS: Op.GREATER,
    Op.LESS_OR_EQUAL: Op.GREATER_OR_EQUAL,
    Op.GREATER: Op.LESS,
    Op.GREATER_OR_EQUAL: Op.LESS_OR_EQUAL,
}
_TIMES = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPNTZ)


def parse_where(text: str) -> Predicate:
    """Return the predicate that the text of a WHERE clause says, or refuse it with the part that cannot be said."""
    try:
        parsed = parse_one(f"SELECT 1 WHERE {text}", read="duckdb")
    except SqlglotError as error:
        raise InvalidInput(f"condition {text!r} cannot be read: {str(error).splitlines()[0]}") from error
    more = {name for name, value in parsed.args.items() if value} - {"expressions", "where"}
    if not isinstance(parsed, exp.Select) or more:
        raise InvalidInput(f"condition {text!r} is more than a condition; give what stands behind WHERE alone")
    return predicate_of(parsed.args["where"].this)


def predicate_of(condition: exp.Expression) -> Predicate:
    """Return the predicate that a parsed condition says."""
    for kind, read in _READERS.items():
        if isinstance(condition, kind):
            return read(condition)
    if type(condition) in _OPS:
        return _comparison(condition)
    raise _unsaid(condition)


def _comparison(condition: exp.Expression) -> Predicate:
    op = _OPS[type(condition)]
    left, right = condition.this, condition.expression
    if isinstance(left, exp.Column):
        return Comparison(_column(left), op, _literal(right))
    if isinstance(right, exp.Column):
        return Comparison(_column(right), _MIRRORED[op], _literal(left))
    raise _unsaid(condition)


def _is(condition: exp.Expression) -> Predicate:
    if not isinstance(condition.expression, exp.Null):
        raise _unsaid(condition)
    return IsNull(_column(condition.this))


def _not(condition: exp.Expression) -> Predicate:
    inner = predicate_of(condition.this)
    return IsNotNull(inner.column) if isinstance(inner, IsNull) else Not(inner)


def _in(condition: exp.Expression) -> Predicate:
    if condition.args.get("query") or condition.args.get("unnest"):
        raise _unsaid(condition)
    return In(_column(condition.this), tuple(_literal(each) for each in condition.expressions))


def _between(condition: exp.Expression) -> Predicate:
    return Between(_column(condition.this), _literal(condition.args["low"]), _literal(condition.args["high"]))


def _like(condition: exp.Expression) -> Predicate:
    pattern = condition.expression
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise _unsaid(condition)
    prefix, wildcard = pattern.this[:-1], pattern.this[-1:]
    if wildcard != "%" or "%" in prefix or "_" in prefix:
        raise InvalidInput(f"{condition.sql('duckdb')}: only a prefix can be looked for, such as LIKE 'cpu%'")
    return StartsWith(_column(condition.this), prefix)


def _starts_with(condition: exp.Expression) -> Predicate:
    prefix = condition.expression
    if not (isinstance(prefix, exp.Literal) and prefix.is_string):
        raise _unsaid(condition)
    return StartsWith(_column(condition.this), prefix.this)


_READERS: dict[type[exp.Expression], Callable[[Any], Predicate]] = {
    exp.Paren: lambda each: predicate_of(each.this),
    exp.And: lambda each: And(tuple(predicate_of(part) for part in each.flatten())),
    exp.Or: lambda each: Or(tuple(predicate_of(part) for part in each.flatten())),
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.StartsWith: _starts_with,
}


def _column(expression: exp.Expression) -> str:
    if not isinstance(expression, exp.Column):
        raise _unsaid(expression)
    return expression.name


def _literal(expression: exp.Expression) -> Literal:
    if isinstance(expression, exp.Paren):
        return _literal(expression.this)
    if isinstance(expression, exp.Neg):
        value = _literal(expression.this)
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
    raise _unsaid(expression)


def _number(text: str) -> int | float | Decimal:
    """SQL takes a number with a point for a decimal, and one with an exponent for a float."""
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _cast(expression: exp.Cast) -> Literal:
    kind, inner = expression.to.this, expression.this
    if not (isinstance(inner, exp.Literal) and inner.is_string):
        raise _unsaid(expression)
    try:
        if kind == exp.DataType.Type.DATE:
            return date.fromisoformat(inner.this)
        if kind in _TIMES:
            return datetime.fromisoformat(inner.this)
    except ValueError as error:
        raise InvalidInput(f"{expression.sql('duckdb')}: {error}; write it as 2026-01-31 12:00:00") from error
    if kind == exp.DataType.Type.DOUBLE:
        return float(inner.this)
    raise _unsaid(expression)


def _unsaid(expression: exp.Expression) -> InvalidInput:
    return InvalidInput(
        f"{expression.sql('duckdb')}: this cannot be asked of metadata; use comparisons of a column with a value, IN, "
        "BETWEEN, IS NULL, LIKE 'prefix%', AND, OR and NOT"
    )

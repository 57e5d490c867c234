"""Questions about rows, as values, with the meaning that SQL gives them.

A comparison with null is neither true nor false, and only rows for which the whole question is true are selected.
Values compare as they sort: NaN equals NaN and is greater than any number, as in DuckDB; a time without a zone is UTC.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias

from windrow.errors import InvalidInput
from windrow.model.ordering import comparable

__all__ = [
    "And",
    "Between",
    "Comparison",
    "In",
    "IsNotNull",
    "IsNull",
    "Literal",
    "Not",
    "Op",
    "Or",
    "Predicate",
    "StartsWith",
    "columns_of",
    "matches",
    "negation_normal_form",
]

Literal: TypeAlias = str | bytes | int | float | bool | Decimal | datetime | date

Truth: TypeAlias = bool | None
"""None is unknown."""

_LITERALS = (str, bytes, int, float, bool, Decimal, datetime, date)


class Op(StrEnum):
    """How a column is compared with a literal."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


_TESTS = {
    Op.EQUAL: operator.eq,
    Op.NOT_EQUAL: operator.ne,
    Op.LESS: operator.lt,
    Op.LESS_OR_EQUAL: operator.le,
    Op.GREATER: operator.gt,
    Op.GREATER_OR_EQUAL: operator.ge,
}

_OPPOSITES = {
    Op.EQUAL: Op.NOT_EQUAL,
    Op.NOT_EQUAL: Op.EQUAL,
    Op.LESS: Op.GREATER_OR_EQUAL,
    Op.LESS_OR_EQUAL: Op.GREATER,
    Op.GREATER: Op.LESS_OR_EQUAL,
    Op.GREATER_OR_EQUAL: Op.LESS,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The column compared with a literal."""

    column: str
    op: Op
    value: Literal

    def __post_init__(self) -> None:
        _check_column(self.column)
        _check_literals(self.column, (self.value,))
        if not isinstance(self.op, Op):
            raise InvalidInput(f"predicate on {self.column!r}: {self.op!r} is no operator; use one of Op")


@dataclass(frozen=True, slots=True)
class In:
    """The column equals one of the values; never so when there are none."""

    column: str
    values: tuple[Literal, ...]

    def __post_init__(self) -> None:
        _check_column(self.column)
        if not isinstance(self.values, tuple):
            raise InvalidInput(f"predicate on {self.column!r}: In takes a tuple of values, found {self.values!r}")
        _check_literals(self.column, self.values)


@dataclass(frozen=True, slots=True)
class Between:
    """The column lies between two literals, or equals one of them."""

    column: str
    low: Literal
    high: Literal

    def __post_init__(self) -> None:
        _check_column(self.column)
        _check_literals(self.column, (self.low, self.high))


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column is null, or the row lacks it."""

    column: str

    def __post_init__(self) -> None:
        _check_column(self.column)


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """The column has a value."""

    column: str

    def __post_init__(self) -> None:
        _check_column(self.column)


@dataclass(frozen=True, slots=True)
class StartsWith:
    """The column starts with some text."""

    column: str
    prefix: str

    def __post_init__(self) -> None:
        _check_column(self.column)
        if not isinstance(self.prefix, str):
            raise InvalidInput(f"predicate on {self.column!r}: a prefix is text, found {self.prefix!r}")


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; so it is when there are none."""

    parts: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        _check_parts("And", self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """At least one part holds; never so when there are none."""

    parts: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        _check_parts("Or", self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The part is false."""

    part: Predicate

    def __post_init__(self) -> None:
        _check_parts("Not", (self.part,))


Predicate: TypeAlias = Comparison | In | Between | IsNull | IsNotNull | StartsWith | And | Or | Not


def matches(predicate: Predicate, row: Mapping[str, object]) -> bool:
    """Say whether a row is selected."""
    return _truth(predicate, row) is True


def columns_of(predicate: Predicate) -> frozenset[str]:
    """Return the columns that the predicate asks about."""
    match predicate:
        case And(parts) | Or(parts):
            return frozenset[str]().union(*map(columns_of, parts))
        case Not(part):
            return columns_of(part)
    return frozenset({predicate.column})


def negation_normal_form(predicate: Predicate) -> Predicate:
    """Return a predicate of the same meaning, for nulls too, in which Not stands before nothing but StartsWith."""
    match predicate:
        case And(parts):
            return And(tuple(map(negation_normal_form, parts)))
        case Or(parts):
            return Or(tuple(map(negation_normal_form, parts)))
        case Not(part):
            return _negated(part)
    return predicate


def _negated(predicate: Predicate) -> Predicate:
    """Return the normal form of the opposite: true where the predicate is false, unknown where it is unknown."""
    match predicate:
        case Comparison(column, op, value):
            return Comparison(column, _OPPOSITES[op], value)
        case In() | Between() | IsNotNull():
            return _negated(_spelled_out(predicate))
        case IsNull(column):
            return IsNotNull(column)
        case And(parts) | Or(parts):
            dual = Or if isinstance(predicate, And) else And
            return dual(tuple(map(_negated, parts)))
        case Not(part):
            return negation_normal_form(part)
    return Not(predicate)


def _spelled_out(predicate: In | Between | IsNotNull) -> Predicate:
    """Return what the predicate is short for."""
    match predicate:
        case In(column, values):
            return Or(tuple(Comparison(column, Op.EQUAL, value) for value in values))
        case Between(column, low, high):
            return And((Comparison(column, Op.GREATER_OR_EQUAL, low), Comparison(column, Op.LESS_OR_EQUAL, high)))
        case IsNotNull(column):
            return Not(IsNull(column))


def _truth(predicate: Predicate, row: Mapping[str, object]) -> Truth:
    match predicate:
        case And(parts):
            return _all(_truth(part, row) for part in parts)
        case Or(parts):
            return _opposite(_all(_opposite(_truth(part, row)) for part in parts))
        case Not(part):
            return _opposite(_truth(part, row))
        case In() | Between() | IsNotNull():
            return _truth(_spelled_out(predicate), row)
        case IsNull(column):
            return row.get(column) is None
    return _test(predicate, row.get(predicate.column))


def _all(truths: Iterable[Truth]) -> Truth:
    found = set(truths)
    if False in found:
        return False
    return None if None in found else True


def _opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _test(predicate: Comparison | StartsWith, value: object) -> Truth:
    if value is None:
        return None
    if isinstance(predicate, StartsWith):
        if not isinstance(value, str):
            raise _not_comparable(predicate.column, value, predicate.prefix)
        return value.startswith(predicate.prefix)
    try:
        return bool(_TESTS[predicate.op](_sign(value, predicate.value), 0))
    except TypeError:
        raise _not_comparable(predicate.column, value, predicate.value) from None


def _sign(left: object, right: object) -> int:
    """Return -1, 0 or 1; values that have no common order are a TypeError, also when asked for equality."""
    this, that = comparable(left), comparable(right)
    return (this > that) - (this < that)


def _not_comparable(column: str, value: object, literal: object) -> InvalidInput:
    return InvalidInput(
        f"predicate on {column!r}: a column of {type(value).__name__} is not comparable with {literal!r}; "
        "use a literal of the column's type"
    )


def _check_column(column: str) -> None:
    if not column or not isinstance(column, str):
        raise InvalidInput(f"predicate on {column!r}: expected the name of a column")


def _check_literals(column: str, values: tuple[object, ...]) -> None:
    for value in values:
        if value is None:
            raise InvalidInput(f"predicate on {column!r}: nothing compares with null; use IsNull or IsNotNull")
        if not isinstance(value, _LITERALS):
            kinds = ", ".join(kind.__name__ for kind in _LITERALS)
            raise InvalidInput(f"predicate on {column!r}: {value!r} is a {type(value).__name__}; use one of {kinds}")


def _check_parts(what: str, parts: tuple[Predicate, ...]) -> None:
    if not isinstance(parts, tuple):
        raise InvalidInput(f"{what} takes a tuple of predicates, found {parts!r}")
    for part in parts:
        if not isinstance(part, Predicate):
            raise InvalidInput(f"{what} takes predicates, found {part!r}")

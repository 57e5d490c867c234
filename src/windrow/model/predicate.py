"""Questions about rows, as values, with the meaning that SQL gives them.

A comparison with null is neither true nor false, and only rows for which the whole question is true are selected.
Values compare as they sort: NaN equals NaN and is greater than any number, as in DuckDB; a time without a zone is UTC.
Tests of one column, and what is particular to each operator, are in `windrow.model.operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from windrow.errors import InvalidInput
from windrow.model.operators import (
    Between,
    Comparison,
    ILike,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Op,
    RegexpMatches,
    StartsWith,
    Test,
    Truth,
    operator_of,
)

__all__ = [
    "And",
    "Between",
    "Comparison",
    "ILike",
    "In",
    "IsNotNull",
    "IsNull",
    "Literal",
    "Not",
    "Op",
    "Or",
    "Predicate",
    "RegexpMatches",
    "StartsWith",
    "Test",
    "columns_of",
    "matches",
    "negation_normal_form",
    "value_tests",
    "with_tests",
]


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


Predicate: TypeAlias = Test | And | Or | Not


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


def value_tests(predicate: Predicate) -> Iterator[Test]:
    """Yield the tests of values in a predicate; whether a column is null is none."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from value_tests(part)
        case Not(part):
            yield from value_tests(part)
        case _ if operator_of(predicate).wants_null is None:
            yield predicate


def with_tests(predicate: Predicate, change: Callable[[Test], Predicate]) -> Predicate:
    """Return the predicate with every test changed."""
    match predicate:
        case And(parts):
            return And(tuple(with_tests(part, change) for part in parts))
        case Or(parts):
            return Or(tuple(with_tests(part, change) for part in parts))
        case Not(part):
            return Not(with_tests(part, change))
    return change(predicate)


def negation_normal_form(predicate: Predicate) -> Predicate:
    """Return a predicate of the same meaning, for nulls too, in which Not stands before tests without an opposite."""
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
        case And(parts) | Or(parts):
            dual = Or if isinstance(predicate, And) else And
            return dual(tuple(map(_negated, parts)))
        case Not(part):
            return negation_normal_form(part)
    operator = operator_of(predicate)
    if operator.unfolded is not None:
        tests, needs_all = operator.unfolded(predicate)
        return (Or if needs_all else And)(tuple(map(_negated, tests)))
    return Not(predicate) if operator.opposite is None else operator.opposite(predicate)


def _truth(predicate: Predicate, row: Mapping[str, object]) -> Truth:
    match predicate:
        case And(parts):
            return _all(_truth(part, row) for part in parts)
        case Or(parts):
            return _any(_truth(part, row) for part in parts)
        case Not(part):
            return _opposite(_truth(part, row))
    operator = operator_of(predicate)
    if operator.unfolded is not None:
        tests, needs_all = operator.unfolded(predicate)
        return (_all if needs_all else _any)(_truth(test, row) for test in tests)
    return None if operator.truth is None else operator.truth(predicate, row.get(predicate.column))


def _all(truths: Iterable[Truth]) -> Truth:
    values = set(truths)
    if False in values:
        return False
    return None if None in values else True


def _any(truths: Iterable[Truth]) -> Truth:
    return _opposite(_all(map(_opposite, truths)))


def _opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _check_parts(what: str, parts: tuple[Predicate, ...]) -> None:
    if not isinstance(parts, tuple):
        raise InvalidInput(f"{what} takes a tuple of predicates, found {parts!r}")
    for part in parts:
        if not isinstance(part, Predicate):
            raise InvalidInput(f"{what} takes predicates, found {part!r}")

"""The operators of predicates: each is a class of tests and one record of everything that is particular to it.

Pruning, matching, fitting of literals and spelling look an operator up here and name none of them. A new operator is a
class, a record, and a line where a front end parses it.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput
from windrow.model.ordering import comparable
from windrow.model.patterns import any_case_prefixes, any_case_regex, compiled, matches_any_case, regex_prefix

__all__ = [
    "Between",
    "Comparison",
    "Engine",
    "ILike",
    "In",
    "Interval",
    "IsNotNull",
    "IsNull",
    "Literal",
    "Op",
    "Operator",
    "RegexpMatches",
    "StartsWith",
    "Test",
    "Truth",
    "Unfolded",
    "comparisons_of",
    "literals_of",
    "mirrored",
    "operator_of",
    "with_literals",
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


class Engine(StrEnum):
    """Engines for which predicates are spelled."""

    DUCKDB = "duckdb"
    SPARK = "spark"


# ---- tests of one column


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
class RegexpMatches:
    """A regular expression of RE2 matches in the column."""

    column: str
    pattern: str

    def __post_init__(self) -> None:
        _check_column(self.column)
        _check_pattern(self.column, self.pattern)
        if compiled(self.pattern) is None:
            raise InvalidInput(f"predicate on {self.column!r}: {self.pattern!r} is no regular expression of RE2")


@dataclass(frozen=True, slots=True)
class ILike:
    """The column is LIKE a pattern, whatever the case."""

    column: str
    pattern: str

    def __post_init__(self) -> None:
        _check_column(self.column)
        _check_pattern(self.column, self.pattern)


Test: TypeAlias = Comparison | In | Between | IsNull | IsNotNull | StartsWith | RegexpMatches | ILike


# ---- what a record says


class Interval(NamedTuple):
    """Values between two literals; None is no end."""

    low: Literal | None = None
    high: Literal | None = None
    low_open: bool = False
    high_open: bool = False
    is_point: bool = False
    """Whether it is one value, as bloom filters hold."""

    @classmethod
    def point(cls, value: Literal) -> Interval:
        """One value."""
        return cls(value, value, is_point=True)

    @classmethod
    def below(cls, value: Literal) -> Interval:
        """What is less than a value."""
        return cls(high=value, high_open=True)

    @classmethod
    def above(cls, value: Literal) -> Interval:
        """What is greater than a value."""
        return cls(low=value, low_open=True)

    @classmethod
    def prefixed(cls, prefix: str) -> Interval:
        """All text that starts so; the last byte can be raised, as none in UTF-8 is 255."""
        raw = prefix.encode("utf-8", "surrogatepass")
        return cls(prefix, raw[:-1] + bytes([raw[-1] + 1]), high_open=True) if raw else cls()


class Unfolded(NamedTuple):
    """What a test is short for."""

    tests: tuple[Test, ...]
    needs_all: bool
    """Whether all of the tests must hold, or one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Everything that is particular to one operator; a test of it is passed to each function."""

    literals: Callable[[Any], tuple[Literal, ...]] = lambda _: ()
    """The values that the column is compared with."""
    with_literals: Callable[[Any, tuple[Any, ...]], Any] = lambda test, _: test
    """The same test with other values."""
    truth: Callable[[Any, Any], Truth] | None = None
    """How a row answers by its value, which may be None; unused for a test that is unfolded."""
    unfolded: Callable[[Any], Unfolded] | None = None
    """The tests of other operators that a test is short for."""
    opposite: Callable[[Any], Test] | None = None
    """The test that is true where this one is false, and unknown where it is unknown; without one, NOT stays."""
    intervals: Callable[[Any], tuple[Interval, ...]] | None = None
    """How bounds answer: the values that may pass lie in one of these. None where it is not about values."""
    is_exact: bool = True
    """Whether all values in the intervals pass."""
    wants_null: bool | None = None
    """Whether null passes, and nothing else, or whether all but null does; None where it is about values."""
    is_about_text: bool = False
    """Whether no literal fits a column of another type."""
    texts: Callable[[Any, pa.Array], pa.Array] | None = None
    """Which of some texts may pass; without it, intervals answer."""
    sql: Mapping[Engine, str]
    """How engines spell it, with `{column}`, `{values}` or `{0}`; one that reads it in another way is left out."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The name that front ends have for it, where all they need is that: `sqlglot`, `polars` and `spark`."""


def operator_of(test: Test) -> Operator:
    """Return the record of a test."""
    return _COMPARISONS[test.op] if isinstance(test, Comparison) else _OPERATORS[type(test)]


def literals_of(test: Test) -> tuple[Literal, ...]:
    """Return the values that the column is compared with."""
    return operator_of(test).literals(test)


def with_literals(test: Any, literals: tuple[Literal, ...]) -> Any:
    """Return the test with other values; the test itself where these are its own."""
    operator = operator_of(test)
    if all(map(python.is_, literals, operator.literals(test))):
        return test
    return operator.with_literals(test, literals)


def mirrored(op: Op) -> Op:
    """Return the comparison that says the same with its sides exchanged."""
    return _MIRRORED.get(op, op)


def comparisons_of(front_end: str) -> dict[str, Op]:
    """Return the comparisons by the names that a front end has for them."""
    return {record.names[front_end]: op for op, record in _COMPARISONS.items() if front_end in record.names}


# ---- the records


def _sql(everywhere: str) -> Mapping[Engine, str]:
    return dict.fromkeys(Engine, everywhere)


def _comparison(
    op: Op,
    opposite: Op,
    holds: Callable[[int, int], bool],
    intervals: Callable[[Any], tuple[Interval, ...]],
    *names: str,
) -> Operator:
    def truth(test: Comparison, value: object) -> Truth:
        if value is None:
            return None
        try:
            return bool(holds(_sign(value, test.value), 0))
        except TypeError:
            raise _not_comparable(test.column, value, test.value) from None

    return Operator(
        literals=lambda test: (test.value,),
        with_literals=lambda test, literals: replace(test, value=literals[0]),
        truth=truth,
        opposite=lambda test: Comparison(test.column, opposite, test.value),
        intervals=intervals,
        sql=_sql(f"({{column}} {op} {{0}})"),
        names=dict(zip(("sqlglot", "polars", "spark"), names, strict=False)),
    )


_COMPARISONS: dict[Op, Operator] = {
    Op.EQUAL: _comparison(
        *(Op.EQUAL, Op.NOT_EQUAL, python.eq, lambda test: (Interval.point(test.value),)),
        *("EQ", "Eq", "EqualTo"),
    ),
    Op.NOT_EQUAL: _comparison(
        *(Op.NOT_EQUAL, Op.EQUAL, python.ne, lambda test: (Interval.below(test.value), Interval.above(test.value))),
        *("NEQ", "NotEq"),
    ),
    Op.LESS: _comparison(
        *(Op.LESS, Op.GREATER_OR_EQUAL, python.lt, lambda test: (Interval.below(test.value),)),
        *("LT", "Lt", "LessThan"),
    ),
    Op.LESS_OR_EQUAL: _comparison(
        *(Op.LESS_OR_EQUAL, Op.GREATER, python.le, lambda test: (Interval(high=test.value),)),
        *("LTE", "LtEq", "LessThanOrEqual"),
    ),
    Op.GREATER: _comparison(
        *(Op.GREATER, Op.LESS_OR_EQUAL, python.gt, lambda test: (Interval.above(test.value),)),
        *("GT", "Gt", "GreaterThan"),
    ),
    Op.GREATER_OR_EQUAL: _comparison(
        *(Op.GREATER_OR_EQUAL, Op.LESS, python.ge, lambda test: (Interval(low=test.value),)),
        *("GTE", "GtEq", "GreaterThanOrEqual"),
    ),
}
_MIRRORED = {
    Op.LESS: Op.GREATER,
    Op.LESS_OR_EQUAL: Op.GREATER_OR_EQUAL,
    Op.GREATER: Op.LESS,
    Op.GREATER_OR_EQUAL: Op.LESS_OR_EQUAL,
}


def _equals_one(test: In) -> Unfolded:
    return Unfolded(tuple(Comparison(test.column, Op.EQUAL, value) for value in test.values), needs_all=False)


def _within(test: Between) -> Unfolded:
    low = Comparison(test.column, Op.GREATER_OR_EQUAL, test.low)
    return Unfolded((low, Comparison(test.column, Op.LESS_OR_EQUAL, test.high)), needs_all=True)


def _starts_with(test: StartsWith, value: object) -> Truth:
    return None if value is None else _text(test.column, value, test.prefix).startswith(test.prefix)


def _finds(test: RegexpMatches, value: object) -> Truth:
    return None if value is None else bool(compiled(test.pattern).search(_text(test.column, value, test.pattern)))


def _is_alike(test: ILike, value: object) -> Truth:
    return None if value is None else matches_any_case(test.pattern, _text(test.column, value, test.pattern))


def _may_be_alike(test: ILike, texts: pa.Array) -> pa.Array:
    """The texts that are alike, and those outside of ASCII, of which RE2 knows other cases than DuckDB."""
    return pc.or_(pc.invert(pc.string_is_ascii(texts)), pc.match_substring_regex(texts, any_case_regex(test.pattern)))


_OPERATORS: dict[type, Operator] = {
    In: Operator(
        literals=lambda test: test.values,
        with_literals=lambda test, literals: In(test.column, literals),
        unfolded=_equals_one,
        intervals=lambda test: tuple(map(Interval.point, test.values)),
        sql=_sql("({column} IN ({values}))"),
    ),
    Between: Operator(
        literals=lambda test: (test.low, test.high),
        with_literals=lambda test, literals: Between(test.column, *literals),
        unfolded=_within,
        intervals=lambda test: (Interval(test.low, test.high),),
        sql=_sql("({column} BETWEEN {0} AND {1})"),
    ),
    IsNull: Operator(
        truth=lambda _, value: value is None,
        opposite=lambda test: IsNotNull(test.column),
        wants_null=True,
        sql=_sql("({column} IS NULL)"),
    ),
    IsNotNull: Operator(
        truth=lambda _, value: value is not None,
        opposite=lambda test: IsNull(test.column),
        wants_null=False,
        sql=_sql("({column} IS NOT NULL)"),
    ),
    StartsWith: Operator(
        literals=lambda test: (test.prefix,),
        with_literals=lambda test, literals: StartsWith(test.column, *literals),
        truth=_starts_with,
        intervals=lambda test: (Interval.prefixed(test.prefix),),
        is_about_text=True,
        texts=lambda test, texts: pc.starts_with(texts, test.prefix),
        sql={Engine.DUCKDB: "starts_with({column}, {0})", Engine.SPARK: "startswith({column}, {0})"},
    ),
    RegexpMatches: Operator(
        literals=lambda test: (test.pattern,),
        with_literals=lambda test, literals: RegexpMatches(test.column, *literals),
        truth=_finds,
        intervals=lambda test: (Interval.prefixed(regex_prefix(test.pattern)),),
        is_exact=False,
        is_about_text=True,
        texts=lambda test, texts: pc.match_substring_regex(texts, test.pattern),
        # Spark's regular expressions are Java's.
        sql={Engine.DUCKDB: "regexp_matches({column}, {0})"},
    ),
    ILike: Operator(
        literals=lambda test: (test.pattern,),
        with_literals=lambda test, literals: ILike(test.column, *literals),
        truth=_is_alike,
        intervals=lambda test: tuple(map(Interval.prefixed, any_case_prefixes(test.pattern))),
        is_exact=False,
        is_about_text=True,
        texts=_may_be_alike,
        # Spark's lower case of a text is not that of its characters.
        sql={Engine.DUCKDB: "({column} ILIKE {0})"},
    ),
}


# ---- what tests refuse


def _sign(left: object, right: object) -> int:
    """Return -1, 0 or 1; values that have no common order are a TypeError, also for equality."""
    this, that = comparable(left), comparable(right)
    return (this > that) - (this < that)


def _text(column: str, value: object, literal: str) -> str:
    if not isinstance(value, str):
        raise _not_comparable(column, value, literal)
    return value


def _not_comparable(column: str, value: object, literal: object) -> InvalidInput:
    return InvalidInput(
        f"predicate on {column!r}: a column of {type(value).__name__} is not comparable with {literal!r}; "
        "use a literal of the column's type"
    )


def _check_column(column: str) -> None:
    if not column or not isinstance(column, str):
        raise InvalidInput(f"predicate on {column!r}: expected the name of a column")


def _check_pattern(column: str, pattern: object) -> None:
    if not isinstance(pattern, str):
        raise InvalidInput(f"predicate on {column!r}: a pattern is text, found {pattern!r}")


def _check_literals(column: str, values: tuple[object, ...]) -> None:
    for value in values:
        if value is None:
            raise InvalidInput(f"predicate on {column!r}: nothing compares with null; use IsNull or IsNotNull")
        if not isinstance(value, _LITERALS):
            kinds = ", ".join(kind.__name__ for kind in _LITERALS)
            raise InvalidInput(f"predicate on {column!r}: {value!r} is a {type(value).__name__}; use one of {kinds}")

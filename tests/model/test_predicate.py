"""Predicates: what they refuse, and that they select the rows that DuckDB selects from a table of its own."""

from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Or,
    StartsWith,
    columns_of,
    matches,
    negation_normal_form,
)

NUMBERS = [0, 1, 2]
FLOATS = [-inf, -1.5, 0.0, -0.0, 2.0, inf, nan]
TEXTS = ["", "a", "ab", "b", "é", "%_"]
SCHEMA = pa.schema({"i": pa.int64(), "f": pa.float64(), "s": pa.string()})


def leaves(column, values):
    value = st.sampled_from(values)
    return st.one_of(
        st.builds(Comparison, st.just(column), st.sampled_from(Op), value),
        st.builds(In, st.just(column), st.lists(value, max_size=3).map(tuple)),
        st.builds(Between, st.just(column), value, value),
        st.builds(IsNull, st.just(column)),
        st.builds(IsNotNull, st.just(column)),
    )


prefixes = st.builds(StartsWith, st.just("s"), st.sampled_from(TEXTS))
predicates = st.recursive(
    leaves("i", NUMBERS) | leaves("f", FLOATS) | leaves("s", TEXTS) | prefixes,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)
rows = st.fixed_dictionaries(
    {
        "i": st.none() | st.sampled_from(NUMBERS),
        "f": st.none() | st.sampled_from(FLOATS),
        "s": st.none() | st.sampled_from(TEXTS),
    }
)


def sql_literal(value):
    if isinstance(value, float):
        return f"'{value}'::double"
    return repr(value)


def sql_leaf(predicate):
    match predicate:
        case Comparison(column, op, value):
            return f"{column} {op} {sql_literal(value)}"
        case In(column, values):
            return f"{column} in ({', '.join(map(sql_literal, values))})" if values else "false"
        case Between(column, low, high):
            return f"{column} between {sql_literal(low)} and {sql_literal(high)}"
        case StartsWith(column, prefix):
            return f"starts_with({column}, {sql_literal(prefix)})"
    return f"{predicate.column} is {'null' if isinstance(predicate, IsNull) else 'not null'}"


def sql(predicate):
    match predicate:
        case And(parts):
            return "(" + " and ".join(["true", *map(sql, parts)]) + ")"
        case Or(parts):
            return "(" + " or ".join(["false", *map(sql, parts)]) + ")"
        case Not(part):
            return f"(not ({sql(part)}))"
    return sql_leaf(predicate)


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connection:
        connection.execute("create table points (n bigint, i bigint, f double, s varchar)")
        yield connection


@settings(deadline=None)
@given(predicate=predicates, points=st.lists(rows, min_size=1, max_size=8))
def test_the_rows_that_duckdb_selects(connection, predicate, points):
    table = pa.Table.from_pylist(points, SCHEMA).add_column(0, "n", pa.array(range(len(points))))
    connection.register("arrived", table)
    connection.execute("delete from points; insert into points select * from arrived")
    selected = connection.execute(f"select n from points where {sql(predicate)} order by n").fetchall()
    assert [n for n, row in enumerate(points) if matches(predicate, row)] == [n for (n,) in selected]


def truth(predicate, row):
    """True, False or None, seen from outside: unknown is what neither the predicate nor its opposite selects."""
    return True if matches(predicate, row) else False if matches(Not(predicate), row) else None


def negations(predicate):
    match predicate:
        case And(parts) | Or(parts):
            return [found for part in parts for found in negations(part)]
        case Not(part):
            return [part, *negations(part)]
    return []


@settings(deadline=None)
@given(predicates, rows)
def test_the_normal_form_means_the_same_and_negates_prefixes_only(predicate, row):
    normal = negation_normal_form(predicate)
    assert truth(normal, row) is truth(predicate, row)
    assert all(isinstance(negated, StartsWith) for negated in negations(normal))
    assert negation_normal_form(normal) == normal


LESS, EQUAL = Comparison("a", Op.LESS, 5), Comparison("b", Op.EQUAL, "x")


@pytest.mark.parametrize(
    ("predicate", "normal"),
    [
        (Not(LESS), Comparison("a", Op.GREATER_OR_EQUAL, 5)),
        (Not(Not(LESS)), LESS),
        (Not(And((LESS, EQUAL))), Or((Comparison("a", Op.GREATER_OR_EQUAL, 5), Comparison("b", Op.NOT_EQUAL, "x")))),
        (Not(Or((LESS, Not(EQUAL)))), And((Comparison("a", Op.GREATER_OR_EQUAL, 5), EQUAL))),
        (Not(In("a", (1, 2))), And((Comparison("a", Op.NOT_EQUAL, 1), Comparison("a", Op.NOT_EQUAL, 2)))),
        (Not(Between("a", 1, 2)), Or((Comparison("a", Op.LESS, 1), Comparison("a", Op.GREATER, 2)))),
        (Not(IsNull("a")), IsNotNull("a")),
        (Not(IsNotNull("a")), IsNull("a")),
        (Not(StartsWith("b", "x")), Not(StartsWith("b", "x"))),
        (In("a", (1, 2)), In("a", (1, 2))),
        (And((Not(Not(LESS)),)), And((LESS,))),
        (Not(And(())), Or(())),
    ],
)
def test_not_is_pushed_inwards(predicate, normal):
    assert negation_normal_form(predicate) == normal


def test_columns_are_those_asked_about():
    question = And((LESS, Not(Or((EQUAL, IsNull("c"), StartsWith("d", "x")))), In("e", ()), Between("b", 1, 2)))
    assert columns_of(question) == {"a", "b", "c", "d", "e"}
    assert columns_of(And(())) == frozenset()


@pytest.mark.parametrize("row", [{"a": None}, {}])
def test_null_is_not_selected_unless_asked_for(row):
    for question in (LESS, Not(LESS), In("a", (1,)), Not(In("a", (1,))), StartsWith("a", ""), Between("a", 1, 2)):
        assert not matches(question, row)
    assert matches(IsNull("a"), row)
    assert not matches(IsNotNull("a"), row)


def test_unknown_is_overruled_by_a_false_and_and_by_a_true_or():
    unknown, true = Comparison("missing", Op.EQUAL, 1), IsNotNull("a")
    row = {"a": 1}
    assert truth(And((unknown, Not(true))), row) is False
    assert truth(And((unknown, true)), row) is None
    assert truth(Or((unknown, true)), row) is True
    assert truth(Or((unknown, Not(true))), row) is None


NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "op", "literal", "expected"),
    [
        (nan, Op.EQUAL, nan, True),
        (nan, Op.GREATER, inf, True),
        (nan, Op.LESS, 5, False),
        (5, Op.LESS, nan, True),
        (-0.0, Op.EQUAL, 0, True),
        (Decimal("1.50"), Op.EQUAL, 1.5, True),
        (Decimal("0.1"), Op.LESS, 1, True),
        (True, Op.GREATER, False, True),
        (b"\xff", Op.GREATER, b"a", True),
        ("Z", Op.LESS, "a", True),
        (NOON, Op.EQUAL, NOON.replace(tzinfo=None), True),
        (NOON, Op.GREATER, date(2024, 1, 1), True),
        (date(2024, 1, 2), Op.GREATER, NOON, True),
        (2**53 + 1, Op.GREATER, 2**53, True),
    ],
)
def test_values_compare_as_they_sort(value, op, literal, expected):
    assert matches(Comparison("x", op, literal), {"x": value}) is expected


@pytest.mark.parametrize(
    ("predicate", "value"),
    [
        (Comparison("x", Op.LESS, "a"), 1),
        (Comparison("x", Op.EQUAL, "a"), 1),
        (Comparison("x", Op.NOT_EQUAL, 1), "a"),
        (Comparison("x", Op.EQUAL, b"a"), "a"),
        (Comparison("x", Op.EQUAL, NOON), 1.5),
        (In("x", ("a",)), 1),
        (Between("x", 1, 2), "a"),
        (StartsWith("x", "a"), 1),
        (StartsWith("x", "a"), b"a"),
    ],
)
def test_values_of_another_kind_are_refused(predicate, value):
    with pytest.raises(InvalidInput, match=r"predicate on 'x': a column of .* is not comparable with"):
        matches(predicate, {"x": value})


@pytest.mark.parametrize(
    "build",
    [
        lambda: Comparison("x", Op.EQUAL, None),
        lambda: In("x", (1, None)),
        lambda: Between("x", None, 1),
        lambda: Between("x", 1, None),
    ],
)
def test_nothing_is_compared_with_null(build):
    with pytest.raises(InvalidInput, match="use IsNull or IsNotNull"):
        build()


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: Comparison("x", "=", 1), "no operator; use one of Op"),
        (lambda: Comparison("x", Op.EQUAL, [1]), "is a list; use one of str, bytes"),
        (lambda: Comparison("x", Op.EQUAL, np.int64(1)), "is a int64; use one of str, bytes"),
        (lambda: Comparison("", Op.EQUAL, 1), "expected the name of a column"),
        (lambda: IsNull(None), "expected the name of a column"),
        (lambda: In("x", [1]), "In takes a tuple"),
        (lambda: In("x", "abc"), "In takes a tuple"),
        (lambda: StartsWith("x", b"a"), "a prefix is text"),
        (lambda: And([LESS]), "And takes a tuple of predicates"),
        (lambda: Or(("x",)), "Or takes predicates, found 'x'"),
        (lambda: Not(None), "Not takes predicates, found None"),
    ],
)
def test_a_question_is_checked_when_it_is_built(build, problem):
    with pytest.raises(InvalidInput) as caught:
        build()
    assert problem in str(caught.value)

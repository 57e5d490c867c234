"""The records of operators: each way in which one answers agrees with how it answers a row."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.model.operators import (
    Between,
    Comparison,
    ILike,
    In,
    IsNotNull,
    IsNull,
    Op,
    RegexpMatches,
    StartsWith,
    comparisons_of,
    literals_of,
    mirrored,
    operator_of,
    with_literals,
)
from windrow.model.predicate import Not, columns_of, matches, value_tests, with_tests
from windrow.questions.spelling import spelled

TEXTS = ["", "a", "aB", "Ab", "b", "é", "ab\n", "K\u212a", "\u0130", "%_", "\\"]
WORDS = st.sampled_from(TEXTS)
EXPRESSIONS = st.sampled_from(
    ["^a", "^aB?", "^", "b$", "^a|b", "^(a)", "(?i)^ab", "^a*b", "^K", r"^\\x", "^ab+", "^^a", "."]
)
PATTERNS = st.text("aAbkKiI%_\\\u212a\u0130é", max_size=3)
TESTS = st.one_of(
    st.builds(Comparison, st.just("x"), st.sampled_from(Op), WORDS),
    st.builds(In, st.just("x"), st.lists(WORDS, max_size=3).map(tuple)),
    st.builds(Between, st.just("x"), WORDS, WORDS),
    st.builds(IsNull, st.just("x")),
    st.builds(IsNotNull, st.just("x")),
    st.builds(StartsWith, st.just("x"), WORDS),
    st.builds(RegexpMatches, st.just("x"), EXPRESSIONS),
    st.builds(ILike, st.just("x"), PATTERNS),
)


def utf8(value):
    return value if isinstance(value, bytes) else value.encode()


def lies_in(interval, text):
    raw = text.encode()
    above = interval.low is None or raw > utf8(interval.low) or (raw == utf8(interval.low) and not interval.low_open)
    below = (
        interval.high is None or raw < utf8(interval.high) or (raw == utf8(interval.high) and not interval.high_open)
    )
    return above and below


@given(TESTS, WORDS)
def test_values_that_pass_lie_in_the_intervals(test, text):
    operator = operator_of(test)
    if operator.intervals is None:
        assert operator.wants_null is matches(test, {"x": None})
        return
    passes, inside = matches(test, {"x": text}), any(lies_in(each, text) for each in operator.intervals(test))
    assert passes == inside if operator.is_exact else passes <= inside


@given(TESTS, st.none() | WORDS)
def test_an_opposite_is_true_where_the_test_is_false(test, text):
    operator = operator_of(test)
    if operator.opposite is not None:
        assert matches(operator.opposite(test), {"x": text}) == matches(Not(test), {"x": text})


@given(TESTS)
def test_literals_are_exchanged(test):
    literals = literals_of(test)
    assert with_literals(test, literals) is test
    assert literals_of(with_literals(test, tuple(f"{each}!" for each in literals))) == tuple(f"{e}!" for e in literals)


@pytest.fixture(scope="module")
def rows():
    with duckdb.connect() as connection:
        connection.execute("create table rows as select unnest(?) as x union all select null", [TEXTS])
        yield connection


@settings(deadline=None)
@given(TESTS, st.booleans())
def test_duckdb_selects_the_same_rows_by_its_spelling(rows, test, negated):
    predicate = Not(test) if negated else test
    found = rows.execute(f"select x from rows where {spelled(predicate)}").fetchall()
    assert {x for (x,) in found} == {x for x in [*TEXTS, None] if matches(predicate, {"x": x})}


@pytest.mark.parametrize("front_end", ["sqlglot", "polars", "spark"])
def test_front_ends_name_comparisons(front_end):
    named = comparisons_of(front_end)
    assert len(set(named.values())) == len(named)
    assert set(Op) - set(named.values()) <= {Op.NOT_EQUAL}


@given(st.sampled_from(Op), st.integers(0, 2), st.integers(0, 2))
def test_a_mirrored_comparison_says_the_same(op, left, right):
    assert matches(Comparison("x", op, right), {"x": left}) == matches(
        Comparison("x", mirrored(op), left), {"x": right}
    )


def test_each_test_of_a_predicate_is_changed_and_looked_at():
    predicate = Not(Comparison("x", Op.EQUAL, 1))
    assert with_tests(predicate, lambda test: IsNull(test.column)) == Not(IsNull("x"))
    assert columns_of(predicate) == {"x"}
    assert [*value_tests(predicate)] == [Comparison("x", Op.EQUAL, 1)]
    assert [*value_tests(Not(IsNull("x")))] == []


@pytest.mark.parametrize("kind", [StartsWith, RegexpMatches, ILike])
def test_a_pattern_is_text(kind):
    with pytest.raises(InvalidInput, match="found 1"):
        kind("x", 1)

"""Tests of a predicate on decoded values: the same as row by row, or nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    ILike,
    In,
    IsNull,
    Not,
    Op,
    Or,
    RegexpMatches,
    StartsWith,
    matches,
)
from windrow.reading.matching import matching_texts, matching_values

TEXTS = ["", "a", "ab", "b", "é", "z\0", "Ab\n", "K"]
WORDS = st.sampled_from([*TEXTS, "c"])
OPS = st.sampled_from(list(Op))
TEXT_TESTS = st.one_of(
    st.builds(Comparison, st.just("x"), OPS, WORDS),
    st.builds(In, st.just("x"), st.lists(WORDS, min_size=1).map(tuple)),
    st.builds(Between, st.just("x"), WORDS, WORDS),
    st.builds(StartsWith, st.just("x"), WORDS),
    st.builds(RegexpMatches, st.just("x"), st.sampled_from(["^a", "b", "^a.*b", "b$", "^(a|é)", ""])),
)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
NUMBER_TESTS = st.one_of(
    st.builds(Comparison, st.just("x"), OPS, NUMBERS),
    st.builds(In, st.just("x"), st.lists(NUMBERS, min_size=1).map(tuple)),
    st.builds(Between, st.just("x"), NUMBERS, NUMBERS),
)


@given(TEXT_TESTS | st.lists(TEXT_TESTS, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts))))
def test_texts_pass_as_each_of_them_would(test):
    found = matching_texts(test, pa.array(TEXTS))
    assert found is None or found.tolist() == [matches(test, {"x": text}) for text in TEXTS]


@given(st.text("aAbBkK%_é\u0130\u212a\\", max_size=3), st.lists(st.text("aAbBkKiI\u212a\u0130\u017f\n", max_size=3)))
def test_texts_of_ascii_are_alike_exactly_and_others_never_left_out(pattern, texts):
    test = ILike("x", pattern)
    found = matching_texts(test, pa.array(texts, pa.string())).tolist()
    alike = [matches(test, {"x": text}) for text in texts]
    assert all(passes for passes, is_alike in zip(found, alike, strict=True) if is_alike)
    plain = [place for place, text in enumerate(texts) if text.isascii()]
    assert [found[place] for place in plain] == [alike[place] for place in plain]


@given(NUMBER_TESTS, st.lists(NUMBERS))
def test_numbers_pass_as_each_of_them_would(test, values):
    found = matching_values(test, np.array(values, np.int64), pa.int64())
    assert found is None or found.tolist() == [matches(test, {"x": value}) for value in values]


@given(NUMBER_TESTS, st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_small_numbers_are_compared_with_large_ones(test, values):
    found = matching_values(test, np.array(values, np.int32), pa.int32())
    assert found is None or found.tolist() == [matches(test, {"x": value}) for value in values]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_are_compared_by_microseconds(zone):
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    asked = at if zone else at.replace(tzinfo=None)
    micros = int(at.timestamp()) * 10**6
    values = np.array([micros - 1, micros, micros + 1], np.int64)
    kind = pa.timestamp("us", zone)
    assert matching_values(Comparison("x", Op.GREATER_OR_EQUAL, asked), values, kind).tolist() == [False, True, True]
    assert matching_values(In("x", (asked,)), values, kind).tolist() == [False, True, False]
    later = asked + timedelta(hours=1)
    assert matching_values(Between("x", asked, later), values, kind).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "test", [IsNull("x"), Not(Comparison("x", Op.EQUAL, "a")), And(()), Comparison("x", Op.EQUAL, 1)]
)
def test_what_is_not_understood_rules_nothing_out(test):
    assert matching_texts(test, pa.array(TEXTS)) is None
    assert matching_texts(Or((Comparison("x", Op.EQUAL, "a"), test)), pa.array(TEXTS)) is None


def test_a_value_that_is_no_text_rules_nothing_out():
    assert matching_texts(Comparison("x", Op.EQUAL, "\ud800"), pa.array(TEXTS)) is None


FLOATS = st.floats() | st.integers(-3, 3).map(float)
FLOAT_VALUES = (
    st.floats(allow_nan=False) | st.integers(-3, 3) | st.sampled_from([Decimal("0.1"), Decimal(10) ** 400, 2**70, 0.1])
)
FLOAT_TESTS = st.one_of(
    st.builds(Comparison, st.just("x"), OPS, FLOAT_VALUES),
    st.builds(In, st.just("x"), st.lists(FLOAT_VALUES, min_size=1).map(tuple)),
    st.builds(Between, st.just("x"), FLOAT_VALUES, FLOAT_VALUES),
)


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@given(test=FLOAT_TESTS, values=st.lists(FLOATS))
def test_no_float_that_passes_is_left_out(kind, test, values):
    with np.errstate(over="ignore"):
        values = np.array(values, np.float64).astype(kind.to_pandas_dtype())
    found = matching_values(test, values, kind)
    for place, value in enumerate(values.tolist()):
        assert found is None or found[place] or not matches(test, {"x": value})


def test_floats_that_are_far_from_passing_are_left_out():
    values = np.array([89.0, 90.0, 91.0, np.nan, np.inf, -np.inf])
    found = matching_values(Comparison("x", Op.GREATER, 90), values, pa.float64())
    assert found.tolist() == [False, True, True, True, True, False]
    assert matching_values(In("x", (89, 91)), values, pa.float64()).tolist() == [True, False, True, True, False, False]
    for odd in ("text", True, float("nan")):
        assert matching_values(Comparison("x", Op.GREATER, odd), values, pa.float64()) is None

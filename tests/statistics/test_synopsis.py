"""Synopses leave no row group out that holds a row which matches, whatever was read and however they were united."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics.files import VALUES, columns, parts_of

from windrow.model.predicate import Comparison, IsNull, Not, Op, matches
from windrow.pruning.pruner import compile_predicate
from windrow.statistics.synopsis import LONGEST_BOUND, Facts, Synopses, facts_of, group_size_for

KINDS = tuple(kind for kind in VALUES if kind not in (pa.null(), pa.bool_()))


def synopses_of(column, rows, only=None, most=100) -> Synopses:
    synopses = Synopses.empty(column.type, np.array(rows), most)
    for row_group, part in enumerate(parts_of(column, rows)):
        if only is None or row_group in only:
            synopses = synopses.with_row_group(row_group, facts_of(part))
    return synopses


def judge(predicate, columns, rows):
    """What synopses prove of each row group of a file, of so many rows each."""
    pruner = compile_predicate(predicate, {name: synopses.type for name, synopses in columns.items()})
    return pruner.judge(rows.size, {name: synopses.bounds(rows) for name, synopses in columns.items()}.get)


def above(value) -> Comparison:
    return Comparison("x", Op.GREATER, value)


@given(columns(KINDS), st.data())
@settings(deadline=None)
def test_a_row_group_that_is_left_out_holds_no_row_that_matches(found, data):
    column, rows = found
    kind = column.type
    only = data.draw(st.sets(st.integers(0, len(rows) - 1)))
    literals = [value for value in column.to_pylist() if value is not None]
    literal = data.draw(st.sampled_from(literals) if literals else VALUES[kind])
    tests = [*(Comparison("x", op, literal) for op in Op), IsNull("x")]
    test = data.draw(st.sampled_from([*tests, *map(Not, tests)]))
    most = data.draw(st.integers(1, 6))
    verdict = judge(test, {"x": synopses_of(column, rows, only, most)}, np.array(rows))
    for part, may, every in zip(parts_of(column, rows), *verdict, strict=True):
        passed = [matches(test, {"x": value}) for value in part.to_pylist()]
        assert may or not any(passed)
        assert all(passed) or not every


@given(columns(), st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5)), st.integers(1, 6))
@settings(deadline=None)
def test_what_two_learnt_is_united_without_counting_twice(found, one, other, most):
    column, rows = found
    ours, theirs = synopses_of(column, rows, one, most), synopses_of(column, rows, other, most)
    both = ours.union(theirs)
    expected = synopses_of(column, rows, np.flatnonzero(both.covered), most)
    assert [(each.null_count, each.has_nan) for each in both.facts] == [
        (each.null_count, each.has_nan) for each in expected.facts
    ]
    assert np.array_equal(both.bounds(np.array(rows)).has_minimum, expected.bounds(np.array(rows)).has_minimum)
    assert not (both.covered & ~(ours.covered | theirs.covered)).any()
    assert (both.covered.sum() >= max(ours.covered.sum(), theirs.covered.sum())) or most < len(rows)


@given(columns(), st.integers(1, 6))
@settings(deadline=None)
def test_bounds_and_nulls_are_those_of_the_values(found, most):
    column, rows = found
    whole = synopses_of(column, rows, most=most).whole
    values = [value for value in column.to_pylist() if value is not None]
    numbers = [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    assert whole.null_count == column.null_count
    assert whole.has_nan == (len(numbers) < len(values))
    assert whole.is_empty == (not numbers or column.type == pa.null())


def test_there_are_at_most_so_many():
    assert [group_size_for(count) for count in (0, 1, 100, 101, 200, 201, 32_767)] == [1, 1, 1, 2, 2, 3, 328]
    column = pa.array(range(250))
    assert len(synopses_of(column, [1] * 250).facts) == 84


def test_a_group_proves_nothing_before_all_of_it_was_read():
    column, rows = pa.array(range(6)), np.array([1] * 6)
    half = synopses_of(column, rows, {0, 2, 3}, most=3)
    assert half.known.tolist() == [False, True, False]
    verdict = judge(above(10), {"x": half}, rows)
    assert verdict.may_match.tolist() == [True, True, False, False, True, True]


def test_row_groups_without_rows_are_known_from_the_start():
    assert Synopses.empty(pa.int64(), np.array([0, 5])).covered.tolist() == [True, False]


def test_a_reading_again_changes_nothing():
    once = synopses_of(pa.array([1, None]), [2])
    assert once.with_row_group(0, Facts(null_count=1)) is once


class TestLongTexts:
    def test_bounds_are_shortened_outwards(self):
        facts = facts_of(pa.array(["b" * 1000, "a" * 2**20]))
        assert (facts.minimum, facts.maximum) == (b"a" * LONGEST_BOUND, b"b" * (LONGEST_BOUND - 1) + b"c")
        assert facts.is_exact == (False, False)

    def test_a_bound_of_the_greatest_bytes_is_none(self):
        facts = facts_of(pa.array([b"\xff" * 100, b"a"]))
        assert (facts.minimum, facts.maximum) == (b"a", None)
        assert facts.plus(facts_of(pa.array([b"b"]))).maximum is None
        verdict = judge(above("zzz"), {"x": synopses_of(pa.array(["\U0010ffff" * 99]), [1])}, np.array([1]))
        assert verdict.may_match.all()

    @given(st.binary(max_size=80), st.binary(max_size=80))
    def test_a_shortened_bound_lies_beyond_the_value(self, one, other):
        facts = facts_of(pa.array([one, other]))
        assert facts.minimum <= min(one, other)
        assert facts.maximum is None or facts.maximum >= max(one, other)

    def test_of_an_exact_and_a_shortened_bound_the_outer_one_remains(self):
        low, high = facts_of(pa.array(["a"])), facts_of(pa.array(["b" * 100]))
        assert low.plus(high).is_exact == high.plus(low).is_exact == (True, False)


class TestNan:
    def test_nan_is_greater_than_any_number(self):
        synopses = synopses_of(pa.array([1.0, math.nan, 1.0]), [1, 1, 1])
        verdict = judge(above(5.0), {"x": synopses}, np.array([1, 1, 1]))
        assert verdict.may_match.tolist() == [False, True, False]

    @pytest.mark.parametrize("values", [[math.nan, math.nan], [None, None], [math.nan, None], []])
    def test_columns_of_nan_and_nulls_alone_have_no_bounds(self, values):
        column = pa.array(values, pa.float64())
        synopses = synopses_of(column, [len(values)])
        assert synopses.whole.minimum is None
        assert synopses.whole.is_empty
        # NaN is greater than any number, so that nothing of this is less than one but where there are no bounds at all
        verdict = judge(Comparison("x", Op.LESS, 5.0), {"x": synopses}, np.array([len(values)]))
        assert verdict.may_match[0] == any(value is not None for value in values)

    def test_nulls_are_proven(self):
        synopses = synopses_of(pa.array([None, None, 1, 2]), [2, 2])
        assert judge(IsNull("x"), {"x": synopses}, np.array([2, 2])).may_match.tolist() == [True, False]
        assert judge(Not(IsNull("x")), {"x": synopses}, np.array([2, 2])).may_match.tolist() == [False, True]


def test_columns_without_synopses_prove_nothing():
    assert judge(Comparison("y", Op.EQUAL, 1), {}, np.array([5])).may_match.all()

"""Whole predicates over units of several columns: never a false skip, and no proof that is not one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    Predicate,
    StartsWith,
    matches,
)
from windrow.pruning.bounds import Bounds
from windrow.pruning.pruner import Pruner, Verdict, compile_predicate
from windrow.pruning.types import FLOAT, SIGNED, TEXT

TYPES = {"n": SIGNED, "x": FLOAT, "s": TEXT}
VALUES = {
    "n": st.integers(-3, 3),
    "x": st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5, float("nan")]),
    "s": st.text("ab", max_size=3),
}
Row = dict[str, Any]
Unit = list[Row]

ROWS = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})
UNITS = st.lists(st.lists(ROWS, max_size=4), min_size=1, max_size=6)


def leaves(column: str) -> st.SearchStrategy[Predicate]:
    literals = VALUES[column] if column == "s" else VALUES["n"] | VALUES["x"]
    kinds = [
        st.builds(Comparison, st.just(column), st.sampled_from(Op), literals),
        st.builds(In, st.just(column), st.lists(literals, max_size=3).map(tuple)),
        st.builds(Between, st.just(column), literals, literals),
        st.builds(IsNull, st.just(column)),
        st.builds(IsNotNull, st.just(column)),
    ]
    return st.one_of(*kinds, *([st.builds(StartsWith, st.just("s"), literals)] if column == "s" else []))


PREDICATES = st.recursive(
    st.sampled_from(sorted(VALUES)).flatmap(leaves),
    lambda parts: st.one_of(
        st.builds(And, st.lists(parts, max_size=3).map(tuple)),
        st.builds(Or, st.lists(parts, max_size=3).map(tuple)),
        st.builds(Not, parts),
    ),
    max_leaves=6,
)


def bounds_of(units: Sequence[Unit], column: str) -> Bounds:
    """The exact bounds of a column: smallest and largest value of each unit, nulls and NaN left out."""
    stored = [[row[column] for row in unit if row[column] is not None] for unit in units]
    numbers = [[v.encode() if column == "s" else v for v in values if v == v] for values in stored]  # noqa: PLR0124
    filler = b"" if column == "s" else 0
    low, high = (np.array([*(pick(v, default=filler) for v in numbers), None])[:-1] for pick in (min, max))
    known = np.array([bool(values) for values in numbers], bool)
    return Bounds(
        low.astype(TYPES[column].dtype),
        high.astype(TYPES[column].dtype),
        known,
        known,
        np.array([len(unit) - len(values) for unit, values in zip(units, stored, strict=True)], int),
        np.ones(len(units), bool),
        np.array([len(unit) for unit in units], int),
    )


def judge(predicate: Predicate, units: Sequence[Unit]) -> Verdict:
    return compile_predicate(predicate, TYPES).judge(len(units), lambda column: bounds_of(units, column))


class TestAnyPredicate:
    """What holds for all predicates and rows."""

    @settings(max_examples=300, deadline=None)
    @given(PREDICATES, UNITS)
    def test_units_with_a_matching_row_are_kept(self, predicate: Predicate, units: list[Unit]) -> None:
        kept = judge(predicate, units).may_match.tolist()
        matching = [any(matches(predicate, row) for row in unit) for unit in units]
        assert [unit for unit, (keep, match) in enumerate(zip(kept, matching, strict=True)) if match and not keep] == []

    @settings(max_examples=300, deadline=None)
    @given(PREDICATES, UNITS)
    def test_all_rows_match_where_it_says_so(self, predicate: Predicate, units: list[Unit]) -> None:
        verdict = judge(predicate, units)
        for unit, proven in zip(units, verdict.all_match.tolist(), strict=True):
            assert not proven or all(matches(predicate, row) for row in unit)

    @settings(deadline=None)
    @given(PREDICATES, UNITS)
    def test_what_is_not_known_proves_nothing_new(self, predicate: Predicate, units: list[Unit]) -> None:
        nothing = compile_predicate(predicate, {}).judge(len(units), lambda _: None)
        known = judge(predicate, units)
        assert not (known.may_match & ~nothing.may_match).any()
        assert not (nothing.all_match & ~known.all_match & known.may_match).any()

    @settings(deadline=None)
    @given(PREDICATES, UNITS)
    def test_counts_alone_prove_less_than_bounds(self, predicate: Predicate, units: list[Unit]) -> None:
        pruner = compile_predicate(predicate, TYPES)
        counts = pruner.judge(len(units), lambda column: bounds_of(units, column).without_values())
        assert not (judge(predicate, units).may_match & ~counts.may_match).any()


def numbers(*values: int | None) -> Unit:
    return [{"n": value, "x": None, "s": None} for value in values]


FIVE, SIX = Comparison("n", Op.EQUAL, 5), Comparison("n", Op.EQUAL, 6)
UNKNOWN = Comparison("elsewhere", Op.EQUAL, 1)
UNITS_OF_NUMBERS = [numbers(5, 5), numbers(5, 6), numbers(7, 7), numbers(None, None), numbers(5, None)]


@pytest.mark.parametrize(
    ("predicate", "may_match", "all_match"),
    [
        (FIVE, "11001", "10000"),
        (Not(FIVE), "01100", "00100"),
        (And((FIVE, SIX)), "01000", "00000"),
        (Or((FIVE, SIX)), "11001", "10000"),
        (Not(Or((FIVE, SIX))), "01100", "00100"),
        (Not(And((FIVE, SIX))), "11101", "10100"),
        (IsNull("n"), "00011", "00010"),
        (IsNotNull("n"), "11101", "11100"),
        (Not(IsNull("n")), "11101", "11100"),
        (Or((FIVE, IsNull("n"))), "11011", "10010"),
        (And((FIVE, IsNotNull("n"))), "11001", "10000"),
        (And(()), "11111", "11111"),
        (Or(()), "00000", "00000"),
        (UNKNOWN, "11111", "00000"),
        (And((FIVE, UNKNOWN)), "11001", "00000"),
        (Or((FIVE, UNKNOWN)), "11111", "10000"),
        (Not(UNKNOWN), "11111", "00000"),
        (IsNull("elsewhere"), "11111", "00000"),
        (Comparison("n", Op.EQUAL, "5"), "11101", "00000"),
        (Not(StartsWith("n", "5")), "11101", "00000"),
    ],
)
def test_how_parts_are_joined(predicate: Predicate, may_match: str, all_match: str) -> None:
    units = UNITS_OF_NUMBERS
    pruner = compile_predicate(predicate, TYPES)
    verdict = pruner.judge(len(units), lambda name: bounds_of(units, name) if name in TYPES else None)
    assert "".join(map(str, map(int, verdict.may_match))) == may_match
    assert "".join(map(str, map(int, verdict.all_match))) == all_match


def test_no_row_matches_where_there_is_none() -> None:
    assert judge(Comparison("n", Op.NOT_EQUAL, 5), [[]]).may_match.tolist() == [False]


class TestAsking:
    """Columns are asked for when they matter, the cheap ones first."""

    def asked(self, predicate: Predicate, units: list[Unit]) -> Iterator[str]:
        asked = []

        def note(column: str) -> Bounds:
            asked.append(column)
            return bounds_of(units, column)

        compile_predicate(predicate, TYPES).judge(len(units), note)
        return iter(asked)

    def test_nothing_is_asked_when_nothing_is_left(self) -> None:
        never = Comparison("n", Op.EQUAL, 100)
        assert list(self.asked(And((never, Comparison("x", Op.LESS, 1))), UNITS_OF_NUMBERS)) == ["n"]

    def test_text_comes_last(self) -> None:
        text, number = Comparison("s", Op.EQUAL, "a"), Comparison("n", Op.NOT_EQUAL, 100)
        assert list(self.asked(And((Or((text, number)), number)), UNITS_OF_NUMBERS)) == ["n", "n", "s"]


class TestFilters:
    """A filter that knows which values a unit holds narrows down what is asked by value."""

    UNITS = (numbers(1, 9), numbers(1, 9), numbers(1, 2))

    def kept(self, predicate: Predicate) -> list[bool]:
        def holds(column: str, points: tuple[Any, ...]) -> np.ndarray:
            assert column == "n"
            return np.array([5 in points, False, True])

        pruner = compile_predicate(predicate, TYPES)
        return pruner.judge(3, lambda column: bounds_of(self.UNITS, column), holds).may_match.tolist()

    @pytest.mark.parametrize(
        ("predicate", "kept"),
        [
            (FIVE, [True, False, False]),
            (SIX, [False, False, False]),
            (In("n", (5, 6)), [True, False, False]),
            (Or((FIVE, Comparison("n", Op.LESS, 2))), [True, True, True]),
            (And((FIVE, Comparison("n", Op.LESS, 2))), [True, False, False]),
            (Not(FIVE), [True, True, True]),
            (Between("n", 5, 5), [True, True, False]),
        ],
    )
    def test_it_answers_equality(self, predicate: Predicate, kept: list[bool]) -> None:
        assert self.kept(predicate) == kept

    def test_a_pruner_says_which_columns_it_would_ask_filters_for(self) -> None:
        predicate = Or((FIVE, And((Comparison("x", Op.LESS, 1), In("s", ("a",)))), Comparison("n", Op.EQUAL, "a")))
        assert compile_predicate(predicate, TYPES).point_columns == {"n", "s"}


class TestRequired:
    """What every matching row meets can narrow a search before anything else is looked at."""

    def test_parts_of_a_conjunction_are_required(self) -> None:
        low, high, either = Comparison("n", Op.GREATER, 1), Comparison("n", Op.LESS, 4), Or((FIVE, SIX))
        required = compile_predicate(And((low, And((high,)), either, IsNull("x"))), TYPES).required
        assert [each.cuts.tolist() for each in required] == [[2], [4]]

    def test_alternatives_are_not(self) -> None:
        assert compile_predicate(Or((FIVE, FIVE)), TYPES).required == ()


def test_a_pruner_is_used_for_many_files() -> None:
    pruner: Pruner = compile_predicate(FIVE, TYPES)
    for units, kept in [([numbers(5)], [True]), ([numbers(4), numbers(5, 6)], [False, True]), ([], [])]:
        assert pruner.judge(len(units), lambda name, units=units: bounds_of(units, name)).may_match.tolist() == kept


def test_bounds_can_be_taken_for_other_units() -> None:
    known = bounds_of([numbers(1), numbers(2, None), numbers(None)], "n")
    taken = known.take(np.array([2, 1, 1]))
    assert taken.minimum.tolist()[1:] == [2, 2]
    assert taken.has_maximum.tolist() == [False, True, True]
    assert taken.all_null.tolist() == [True, False, False]
    assert taken.count.tolist() == [1, 2, 2]
    assert taken.nan_free is False

"""The set of stored values that a question selects, and what bounds tell about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import combinations_with_replacement
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
    IsNull,
    Not,
    Op,
    Predicate,
    StartsWith,
    matches,
)
from windrow.pruning.bounds import Bounds
from windrow.pruning.selection import Selection, select
from windrow.pruning.types import (
    BINARY,
    DATE,
    FLOAT,
    OPAQUE,
    SIGNED,
    TEXT,
    TIMESTAMPS,
    UNSIGNED,
    ColumnType,
    decimal,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN = math.nan


def array(values: list[Any], dtype: str) -> np.ndarray:
    made = np.empty(len(values), dtype)
    made[:] = values
    return made


def bounds(pairs: list[tuple[Any, Any]], dtype: str = "int64", *, nulls: int | None = 0, **more: Any) -> Bounds:
    """Units of ten rows with these bounds; None is a bound that is not there."""
    size = len(pairs)
    filler = b"" if dtype == "object" else 0
    low, high = ([pair[side] for pair in pairs] for side in (0, 1))
    return Bounds(
        array([filler if value is None else value for value in low], dtype),
        array([filler if value is None else value for value in high], dtype),
        np.array([value is not None for value in low], bool),
        np.array([value is not None for value in high], bool),
        np.full(size, nulls or 0),
        np.full(size, nulls is not None),
        np.full(size, 10),
        **more,
    )


def selection(test: Predicate, column_type: ColumnType) -> Selection:
    selected = select(test, {"c": column_type})
    assert selected is not None
    return selected


def may(test: Predicate, column_type: ColumnType, known: Bounds) -> list[bool]:
    return selection(test, column_type).judge(known)[0].tolist()


def whole(test: Predicate, column_type: ColumnType, known: Bounds) -> list[bool]:
    return selection(test, column_type).judge(known)[1].tolist()


def is_selected(chosen: Selection, stored: Any) -> bool:
    probe = array([stored], str(chosen.cuts.dtype))
    return bool(chosen.selected[chosen.cuts.searchsorted(probe, "right")[0]])


def clock(ticks_per_second: int) -> Callable[[int], datetime]:
    return lambda ticks: EPOCH + timedelta(microseconds=ticks * 10**6 // ticks_per_second)


NUMBERS = st.one_of(
    st.integers(-4, 4),
    st.integers(-(2**70), 2**70),
    st.sampled_from([2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2**64, 2**64 - 1]),
    st.floats(),
    st.floats(-4, 4),
    st.booleans(),
    st.decimals(-4, 4, places=3),
    st.decimals(allow_nan=True, allow_infinity=True),
)
MOMENTS = st.datetimes(datetime(1969, 12, 31), datetime(1970, 1, 3)) | st.datetimes()  # noqa: DTZ001
DATES = st.dates(date(1969, 12, 30), date(1970, 1, 3))
TEXTS = st.text("ab\x00é\U0010ffff", max_size=3)
BLOBS = st.binary(max_size=2) | st.lists(st.sampled_from(b"a\x00\xff"), max_size=3).map(bytes)
DAYS = 86_400

SIGNED_64 = st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1)
CASES: dict[str, tuple[ColumnType, Any, Any, Callable[[Any], Any]]] = {
    "signed": (SIGNED, SIGNED_64, NUMBERS, int),
    "unsigned": (UNSIGNED, st.integers(0, 4) | st.integers(0, 2**64 - 1), NUMBERS, int),
    "boolean": (UNSIGNED, st.integers(0, 1), NUMBERS, bool),
    "float": (FLOAT, st.floats() | st.floats(-4, 4), NUMBERS, float),
    "decimal": (decimal(2), st.integers(-400, 400) | SIGNED_64, NUMBERS, lambda v: Decimal(v).scaleb(-2)),
    "wide decimal": (
        decimal(1, wide=True),
        st.integers(-(10**25), 10**25) | st.integers(-40, 40),
        NUMBERS,
        lambda v: Decimal(v).scaleb(-1),
    ),
    "date": (DATE, st.integers(-2, 3), DATES | MOMENTS, lambda v: EPOCH.date() + timedelta(days=v)),
    "seconds": (TIMESTAMPS["s"], st.integers(-DAYS, 2 * DAYS), DATES | MOMENTS, clock(1)),
    "milliseconds": (TIMESTAMPS["ms"], st.integers(-1000, 1000), DATES | MOMENTS, clock(1000)),
    "microseconds": (TIMESTAMPS["us"], st.integers(-1000, 1000), DATES | MOMENTS, clock(10**6)),
    "text": (TEXT, TEXTS.map(str.encode), TEXTS, bytes.decode),
    "binary": (BINARY, BLOBS, BLOBS, bytes),
}


def questions(literals: Any, *, text: bool) -> st.SearchStrategy[Predicate]:
    kinds = [
        st.builds(Comparison, st.just("c"), st.sampled_from(Op), literals),
        st.builds(In, st.just("c"), st.lists(literals, max_size=5).map(tuple)),
        st.builds(Between, st.just("c"), literals, literals),
    ]
    prefixed = st.builds(StartsWith, st.just("c"), TEXTS)
    return st.one_of(*kinds, *([prefixed, prefixed.map(Not)] if text else []))


@pytest.mark.parametrize("kind", CASES)
@settings(deadline=None)
@given(data=st.data())
def test_a_value_is_selected_exactly_when_the_question_is_true_of_it(kind: str, data: st.DataObject) -> None:
    column_type, stored, literals, decoded = CASES[kind]
    value = data.draw(stored, label="stored")
    meant = decoded(value)
    # Literals that equal the value, or lie next to it, are the interesting ones.
    test = data.draw(questions(literals | st.just(meant), text=kind == "text"))
    assert is_selected(selection(test, column_type), value) is matches(test, {"c": meant})


class TestNanoseconds:
    """Stored instants lie between the microseconds that literals can name."""

    @pytest.mark.parametrize(
        ("op", "selected"),
        [
            (Op.EQUAL, {1000}),
            (Op.NOT_EQUAL, {999, 1001}),
            (Op.LESS, {999}),
            (Op.LESS_OR_EQUAL, {999, 1000}),
            (Op.GREATER, {1001}),
            (Op.GREATER_OR_EQUAL, {1000, 1001}),
        ],
    )
    def test_they_are_told_apart(self, op: Op, selected: set[int]) -> None:
        chosen = selection(Comparison("c", op, EPOCH + timedelta(microseconds=1)), TIMESTAMPS["ns"])
        assert {ticks for ticks in (999, 1000, 1001) if is_selected(chosen, ticks)} == selected


class TestQuestionsThatSelectNothingOrEverything:
    """They need no bounds."""

    UNKNOWN = bounds([(None, None)])

    @pytest.mark.parametrize(
        "test",
        [
            In("c", ()),
            Comparison("c", Op.EQUAL, 1.5),
            Comparison("c", Op.EQUAL, 2**70),
            Comparison("c", Op.GREATER, 2**63 - 1),
            Comparison("c", Op.LESS, -(2**63)),
            Comparison("c", Op.GREATER_OR_EQUAL, NAN),
            Between("c", 5, 4),
            Between("c", 1.2, 1.8),
        ],
    )
    def test_nothing(self, test: Predicate) -> None:
        assert may(test, SIGNED, self.UNKNOWN) == [False]

    @pytest.mark.parametrize(
        "test",
        [
            Comparison("c", Op.NOT_EQUAL, 1.5),
            Comparison("c", Op.LESS, 2**63),
            Comparison("c", Op.GREATER_OR_EQUAL, -(2**63)),
            Comparison("c", Op.LESS, NAN),
            Between("c", -math.inf, math.inf),
        ],
    )
    def test_everything(self, test: Predicate) -> None:
        assert whole(test, SIGNED, self.UNKNOWN) == [True]

    @pytest.mark.parametrize("test", [StartsWith("c", ""), Comparison("c", Op.GREATER_OR_EQUAL, "")])
    def test_all_text(self, test: Predicate) -> None:
        assert whole(test, TEXT, bounds([(b"a", "\U0010ffff".encode())], "object")) == [True]


class TestNotComparable:
    """Without a common order nothing is selected, and nothing is left out."""

    @pytest.mark.parametrize(
        ("test", "column_type"),
        [
            (Comparison("c", Op.EQUAL, "1"), SIGNED),
            (Comparison("c", Op.EQUAL, 1), TEXT),
            (Comparison("c", Op.EQUAL, b"a"), TEXT),
            (Comparison("c", Op.EQUAL, "a"), BINARY),
            (StartsWith("c", "a"), BINARY),
            (Not(StartsWith("c", "a")), SIGNED),
            (Comparison("c", Op.EQUAL, 1), TIMESTAMPS["us"]),
            (Comparison("c", Op.EQUAL, EPOCH), SIGNED),
            (In("c", (1, "a")), SIGNED),
            (Between("c", 1, "a"), SIGNED),
            (Comparison("c", Op.EQUAL, 1), OPAQUE),
            (Comparison("other", Op.EQUAL, 1), SIGNED),
        ],
    )
    def test_a_literal_of_another_kind(self, test: Predicate, column_type: ColumnType) -> None:
        assert select(test, {"c": column_type}) is None

    @pytest.mark.parametrize("predicate", [IsNull("c"), And(()), Not(IsNull("c"))])
    def test_a_question_that_is_not_about_values(self, predicate: Predicate) -> None:
        assert select(predicate, {"c": SIGNED}) is None


INTERVALS = list(combinations_with_replacement(range(-4, 5), 2))


@settings(deadline=None)
@given(questions(st.integers(-5, 5) | st.floats(-5, 5), text=False))
def test_units_are_told_apart_as_well_as_their_bounds_allow(test: Predicate) -> None:
    known = bounds(INTERVALS)
    members = [[matches(test, {"c": value}) for value in range(low, high + 1)] for low, high in INTERVALS]
    assert may(test, SIGNED, known) == [any(unit) for unit in members]
    assert whole(test, SIGNED, known) == [all(unit) for unit in members]


class TestMissingBounds:
    """A bound that is not there, or not to be believed, could be any value."""

    def test_without_a_minimum_values_may_be_below_everything(self) -> None:
        known = bounds([(None, 5)])
        assert may(Comparison("c", Op.LESS, -100), SIGNED, known) == [True]
        assert may(Comparison("c", Op.GREATER, 5), SIGNED, known) == [False]
        assert whole(Comparison("c", Op.LESS_OR_EQUAL, 5), SIGNED, known) == [True]

    def test_without_a_maximum_values_may_be_above_everything(self) -> None:
        known = bounds([(5, None)])
        assert may(Comparison("c", Op.GREATER, 100), SIGNED, known) == [True]
        assert may(Comparison("c", Op.LESS, 5), SIGNED, known) == [False]
        assert whole(Comparison("c", Op.GREATER_OR_EQUAL, 5), SIGNED, known) == [True]

    def test_bounds_that_contradict_each_other_prove_nothing(self) -> None:
        known = bounds([(5, 4)])
        assert may(Comparison("c", Op.EQUAL, 100), SIGNED, known) == [True]
        assert may(Comparison("c", Op.EQUAL, -100), SIGNED, known) == [True]
        assert whole(Comparison("c", Op.LESS, 100), SIGNED, known) == [False]

    def test_text_needs_no_largest_value(self) -> None:
        known = bounds([(b"b", None), (None, b"b")], "object")
        assert may(Comparison("c", Op.EQUAL, "c"), TEXT, known) == [True, False]
        assert may(Comparison("c", Op.EQUAL, "a"), TEXT, known) == [False, True]


class TestShortenedBounds:
    """Bounds may lie outside of the values: a shortened minimum is below them, a shortened maximum was raised."""

    KNOWN = bounds([(b"host-1", b"host-3")], "object")

    @pytest.mark.parametrize("text", ["host-17", "host-2", "host-299999", "host-3", "host-1"])
    def test_what_may_be_within_is_kept(self, text: str) -> None:
        assert may(Comparison("c", Op.EQUAL, text), TEXT, self.KNOWN) == [True]

    @pytest.mark.parametrize("text", ["host-0999", "host-30", "host", "i"])
    def test_what_is_outside_is_not(self, text: str) -> None:
        assert may(Comparison("c", Op.EQUAL, text), TEXT, self.KNOWN) == [False]

    @pytest.mark.parametrize(
        ("prefix", "expected"), [("host-", True), ("host-2x", True), ("host-3", True), ("host-4", False), ("g", False)]
    )
    def test_prefixes(self, prefix: str, expected: bool) -> None:
        assert may(StartsWith("c", prefix), TEXT, self.KNOWN) == [expected]

    def test_a_prefix_that_all_values_share_leaves_nothing_for_its_opposite(self) -> None:
        assert may(Not(StartsWith("c", "host-")), TEXT, self.KNOWN) == [False]
        assert may(Not(StartsWith("c", "host-1")), TEXT, self.KNOWN) == [True]
        assert whole(StartsWith("c", "host-"), TEXT, self.KNOWN) == [True]


class TestNulls:
    """A null makes no comparison true."""

    FIVE = Comparison("c", Op.EQUAL, 5)

    @pytest.mark.parametrize(("nulls", "expected"), [(10, False), (9, True), (0, True), (None, True), (11, True)])
    def test_nothing_but_nulls_never_matches(self, nulls: int | None, expected: bool) -> None:
        assert may(self.FIVE, SIGNED, bounds([(5, 5)], nulls=nulls)) == [expected]
        assert may(Comparison("c", Op.NOT_EQUAL, 4), SIGNED, bounds([(None, None)], nulls=nulls)) == [expected]

    @pytest.mark.parametrize(("nulls", "expected"), [(10, False), (1, False), (0, True), (None, False)])
    def test_not_all_rows_match_when_there_may_be_a_null(self, nulls: int | None, expected: bool) -> None:
        assert whole(self.FIVE, SIGNED, bounds([(5, 5)], nulls=nulls)) == [expected]


class TestNaN:
    """NaN is greater than any number, and no maximum tells of it."""

    KNOWN = bounds([(1.0, 3.0)], "float64")
    FREE = bounds([(1.0, 3.0)], "float64", nan_free=True)
    SOME_FREE = bounds([(1.0, 3.0)] * 2, "float64", nan_free=np.array([True, False]))

    TABLE = (
        # what is asked, whether it selects NaN, whether a number from 1 to 3 may match, whether all of them do
        (Comparison("c", Op.GREATER, 5), True, False, False),
        (Comparison("c", Op.GREATER, 0), True, True, True),
        (Comparison("c", Op.GREATER_OR_EQUAL, 5), True, False, False),
        (Comparison("c", Op.NOT_EQUAL, 9), True, True, True),
        (Comparison("c", Op.EQUAL, NAN), True, False, False),
        (Comparison("c", Op.GREATER, math.inf), True, False, False),
        (Comparison("c", Op.LESS_OR_EQUAL, NAN), True, True, True),
        (In("c", (9, NAN)), True, False, False),
        (Between("c", 5, NAN), True, False, False),
        (Comparison("c", Op.EQUAL, 5), False, False, False),
        (Comparison("c", Op.LESS, 5), False, True, True),
        (Comparison("c", Op.LESS, 1), False, False, False),
        (Comparison("c", Op.LESS, NAN), False, True, True),
        (Comparison("c", Op.LESS_OR_EQUAL, math.inf), False, True, True),
        (Comparison("c", Op.GREATER, NAN), False, False, False),
        (Comparison("c", Op.NOT_EQUAL, NAN), False, True, True),
        (Between("c", 5, 9), False, False, False),
        (Between("c", 1, 3), False, True, True),
        (In("c", (0.5, 9)), False, False, False),
    )

    @pytest.mark.parametrize(("test", "nan", "some", "every"), TABLE)
    def test_where_nan_may_be_it_is_counted_with(self, test: Predicate, nan: bool, some: bool, every: bool) -> None:
        assert may(test, FLOAT, self.KNOWN) == [some or nan]
        assert whole(test, FLOAT, self.KNOWN) == [every and nan]

    @pytest.mark.parametrize(("test", "nan", "some", "every"), TABLE)
    def test_where_there_is_none_the_maximum_counts(self, test: Predicate, nan: bool, some: bool, every: bool) -> None:
        assert may(test, FLOAT, self.FREE) == [some]
        assert whole(test, FLOAT, self.FREE) == [every]

    def test_it_may_be_known_of_some_units_alone(self) -> None:
        assert may(Comparison("c", Op.GREATER, 5), FLOAT, self.SOME_FREE) == [False, True]
        assert whole(Comparison("c", Op.LESS, 5), FLOAT, self.SOME_FREE) == [True, False]

    def test_nulls_alone_hold_no_nan(self) -> None:
        assert may(Comparison("c", Op.GREATER, 5), FLOAT, bounds([(None, None)], "float64", nulls=10)) == [False]

    @pytest.mark.parametrize("pair", [(NAN, 3.0), (1.0, NAN), (NAN, NAN), (NAN, None), (None, NAN)])
    def test_nan_among_the_bounds_makes_them_useless(self, pair: tuple[float | None, float | None]) -> None:
        known = bounds([pair], "float64", nan_free=True)
        for value in (-100, 2, 100):
            assert may(Comparison("c", Op.EQUAL, value), FLOAT, known) == [True]

    @pytest.mark.parametrize("zero", [0.0, -0.0, 0])
    @pytest.mark.parametrize("stored", [0.0, -0.0])
    def test_the_sign_of_zero_does_not_matter(self, zero: float, stored: float) -> None:
        known = bounds([(stored, stored)], "float64")
        assert may(Comparison("c", Op.EQUAL, zero), FLOAT, known) == [True]
        assert may(Comparison("c", Op.LESS, zero), FLOAT, known) == [False]
        assert may(Between("c", zero, zero), FLOAT, known) == [True]


class TestPoints:
    """Single values that are asked for, as they are stored."""

    @pytest.mark.parametrize(
        ("test", "column_type", "points"),
        [
            (Comparison("c", Op.EQUAL, 5), SIGNED, (5,)),
            (In("c", (3, 1, 3.0, 1.5, 2**70, 2)), SIGNED, (1, 2, 3)),
            (Comparison("c", Op.EQUAL, Decimal("1.5")), decimal(2), (150,)),
            (Comparison("c", Op.EQUAL, "é"), TEXT, (b"\xc3\xa9",)),
            (Comparison("c", Op.EQUAL, -0.0), FLOAT, (0.0,)),
            (Comparison("c", Op.EQUAL, -1), UNSIGNED, ()),
            (Comparison("c", Op.EQUAL, 2**64), UNSIGNED, ()),
            (Comparison("c", Op.NOT_EQUAL, 5), SIGNED, None),
            (Between("c", 5, 5), SIGNED, None),
            (StartsWith("c", "a"), TEXT, None),
        ],
    )
    def test_they_are_named_where_there_are_some(
        self, test: Predicate, column_type: ColumnType, points: tuple[Any, ...] | None
    ) -> None:
        assert selection(test, column_type).points == points

    def test_nan_is_one(self) -> None:
        (point,) = selection(Comparison("c", Op.EQUAL, NAN), FLOAT).points or ()
        assert math.isnan(point)


def test_values_that_follow_each_other_make_one_range() -> None:
    chosen = selection(In("c", (5, 3, 4, 9)), SIGNED)
    assert chosen.cuts.tolist() == [3, 6, 9, 10]
    assert chosen.selected.tolist() == [False, True, False, True, False]

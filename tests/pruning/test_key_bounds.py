"""What the first keys of sorted units tell of the rows between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.pruning.bounds import Bounds
from windrow.pruning.key_bounds import KeyBounds, key_bounds, tied, tightened
from windrow.pruning.types import SIGNED

Key = int | float | None


def bounds_of(keys: list[Key], same: str | None = None, *, descending: bool = False) -> list[tuple[Any, Any]]:
    """Lowest and highest value of each unit, None where nothing is told."""
    made = judged(keys, same, descending=descending)
    low = [value if has else None for value, has in zip(made.low.tolist(), made.has_low, strict=True)]
    high = [value if has else None for value, has in zip(made.high.tolist(), made.has_high, strict=True)]
    return list(zip(low, high, strict=True))


def judged(keys: list[Key], same: str | None = None, *, descending: bool = False) -> KeyBounds:
    is_null = np.array([key is None for key in keys], bool)
    values = np.array([0 if key is None else key for key in keys])
    same_before = np.array([mark == "1" for mark in same or "1" * len(keys)], bool)
    return key_bounds(values, ~is_null, is_null, same_before, descending=descending)


def flags(mask: np.ndarray) -> str:
    return "".join(str(int(each)) for each in mask)


class TestOneKey:
    """The column by which rows are sorted first."""

    def test_values_lie_between_a_key_and_the_next(self) -> None:
        assert bounds_of([1, 3, 3, 7]) == [(1, 3), (3, 3), (3, 7), (7, None)]

    def test_descending_they_lie_the_other_way_round(self) -> None:
        assert bounds_of([7, 3, 1], descending=True) == [(3, 7), (1, 3), (None, 1)]

    def test_nulls_behind_the_values(self) -> None:
        keys: list[Key] = [1, 3, None, None]
        assert bounds_of(keys) == [(1, 3), (3, None), (None, None), (None, None)]
        assert flags(judged(keys).null_free) == "1000"
        assert flags(judged(keys).all_null) == "0010"

    def test_nulls_before_the_values(self) -> None:
        keys: list[Key] = [None, None, 3, 4]
        assert bounds_of(keys) == [(None, None), (None, 3), (3, 4), (4, None)]
        assert flags(judged(keys).null_free) == "0010"
        assert flags(judged(keys).all_null) == "1000"

    @pytest.mark.parametrize("keys", [[1.0, 2.0, math.nan, math.nan], [math.nan, math.nan, 1.0, 2.0]])
    def test_nan_is_no_bound_wherever_it_comes(self, keys: list[Key]) -> None:
        made = judged(keys)
        between = keys.index(1.0)
        assert flags(made.nan_free) == "".join("1" if unit == between else "0" for unit in range(4))
        assert not any(math.isnan(v) for pair in bounds_of(keys) for v in pair if v is not None)
        assert flags(made.null_free) == "1110"


class TestLaterKeys:
    """A key tells something only while all keys before it stay the same."""

    @pytest.mark.parametrize(
        ("keys", "same"),
        [
            ([], "111"),
            ([[b"a", b"a", b"b"]], "100"),
            ([[b"a", b"a", b"a"]], "110"),
            ([[None, None, b"b"]], "100"),
            ([[b"a", b"a", b"a"], [b"x", b"y", b"y"]], "010"),
        ],
    )
    def test_where_they_stay_the_same(self, keys: list[list[bytes | None]], same: str) -> None:
        assert flags(tied(keys, 3)) == same

    def test_elsewhere_nothing_is_told(self) -> None:
        assert bounds_of([5, 9, 2], same="100") == [(5, 9), (None, None), (None, None)]
        assert flags(judged([None, None, 2], same="010").all_null) == "000"
        assert flags(judged([1, 2, 2], same="010").null_free) == "010"


@settings(deadline=None)
@given(
    st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=12), st.integers(1, 4), st.booleans(), st.booleans()
)
def test_no_value_is_outside(values: list[int | None], size: int, descending: bool, nulls_first: bool) -> None:
    present = sorted((value for value in values if value is not None), reverse=descending)
    nulls: list[int | None] = [None] * (len(values) - len(present))
    ordered = [*nulls, *present] if nulls_first else [*present, *nulls]
    units = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    heads = [unit[0] for unit in units]
    made = judged(heads, descending=descending)
    for place, (unit, (low, high)) in enumerate(zip(units, bounds_of(heads, descending=descending), strict=True)):
        known = [value for value in unit if value is not None]
        assert all((low is None or low <= value) and (high is None or value <= high) for value in known)
        assert not made.all_null[place] or not known
        assert not made.null_free[place] or len(known) == len(unit)


class TestTightened:
    """Keys add to what is known before."""

    def known(self, low: list[int], high: list[int]) -> Bounds:
        size = len(low)
        here = np.ones(size, bool)
        return Bounds(np.array(low), np.array(high), here, here, np.full(size, 3), here, np.full(size, 10))

    def test_keys_take_the_place_of_wider_bounds(self) -> None:
        made = tightened(self.known([0] * 3, [9] * 3), judged([2, 4, None]))
        assert made.minimum.tolist() == [2, 4, 0]
        assert made.maximum.tolist() == [4, 9, 9]
        assert made.null_free.tolist() == [True, False, False]

    def test_nulls_alone_are_found(self) -> None:
        made = tightened(self.known([0] * 3, [9] * 3), judged([2, None, None]))
        assert made.all_null.tolist() == [False, True, False]

    def test_bounds_that_contradict_each_other_are_not_taken_over(self) -> None:
        made = tightened(self.known([9, 9], [0, 0]), judged([2, 4]))
        assert made.has_minimum.tolist() == [True, True]
        assert made.has_maximum.tolist() == [True, False]

    def test_without_keys_nothing_changes(self) -> None:
        made = tightened(self.known([0], [9]), KeyBounds.unknown(1, SIGNED))
        assert (made.minimum.tolist(), made.maximum.tolist()) == ([0], [9])
        assert made.nan_free is not True
        assert not made.null_free.any()

    def test_several_sequences_are_joined(self) -> None:
        parts = [tightened(self.known([0] * len(keys), [9] * len(keys)), judged(keys)) for keys in ([1, 2], [5, 6, 7])]
        joined = Bounds.joined(parts)
        assert joined.minimum.tolist() == [1, 2, 5, 6, 7]
        assert joined.maximum.tolist() == [2, 9, 6, 7, 9]
        assert Bounds.joined(parts[:1]) is parts[0]

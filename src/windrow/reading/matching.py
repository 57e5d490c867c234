"""Tests of a predicate, asked of values that are decoded: which of them may pass.

None says that a test is not understood here, so that everything may. Nulls pass no test that is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.model.column_types import type_of
from windrow.model.operators import Interval, Test, operator_of, with_literals
from windrow.model.predicate import Or, Predicate

__all__ = ["matching_texts", "matching_values"]

_Mask: TypeAlias = NDArray[np.bool_]
_Compare: TypeAlias = Callable[[str, Any], _Mask]
"""Compares all values with one, by a name that numpy and pyarrow share."""


def matching_texts(test: Predicate, texts: pa.Array) -> _Mask | None:
    """Which texts may pass a test; none of them is null. They are compared by their bytes, as engines do."""
    try:
        return _matching_texts(test, texts)
    except UnicodeEncodeError:
        return None


def _matching_texts(test: Predicate, texts: pa.Array) -> _Mask | None:
    if isinstance(test, Or):
        masks = [mask for part in test.parts if (mask := _matching_texts(part, texts)) is not None]
        return np.logical_or.reduce(masks) if masks and len(masks) == len(test.parts) else None
    if not isinstance(test, Test):
        return None
    operator = operator_of(test)
    if operator.texts is not None:
        return _mask(operator.texts(test, texts))
    if operator.intervals is None or not all(isinstance(each, str) for each in operator.literals(test)):
        return None
    return _within(
        operator.intervals(test),
        lambda comparison, value: _mask(getattr(pc, comparison)(texts, pa.scalar(value, pa.string()))),
        lambda values: _mask(pc.is_in(texts, pa.array(values, pa.string()))),
    )


def _mask(found: pa.Array) -> _Mask:
    mask: _Mask = found.to_numpy(zero_copy_only=False)
    return mask


def matching_values(test: Predicate, values: NDArray[Any], kind: pa.DataType) -> _Mask | None:
    """Which numbers or times may pass a test of them; those of null rows may be anything."""
    if values.dtype.kind == "V":
        values, rest = values.view(np.int64).reshape(-1, 2).T
        if (rest != values >> 63).any():
            return None  # there are decimals of more than 64 bits
    if values.dtype.kind not in "if" or not isinstance(test, Test):
        return None
    operator = operator_of(test)
    if values.dtype.kind == "f":
        return _matching_floats(operator.intervals and operator.intervals(test), values)
    numbers: tuple[Any, ...] = tuple(map(type_of(kind).decoded_number, operator.literals(test)))
    if operator.intervals is None or operator.is_about_text or None in numbers:
        return None
    return _within(
        operator.intervals(with_literals(test, numbers)),
        lambda comparison, value: getattr(np, comparison)(values, value),
        lambda points: np.isin(values, np.array(points, np.int64)),
    )


def _matching_floats(intervals: Sequence[Interval] | None, values: NDArray[np.floating[Any]]) -> _Mask | None:
    """Which floats may lie in one of some intervals: NaN may, and so may neighbours of their ends.

    How a literal becomes a float is up to the engine, which looks at each row again.
    """
    ends = [(_float(each.low, values, -np.inf), _float(each.high, values, np.inf)) for each in intervals or ()]
    if intervals is None or any(low is None or high is None for low, high in ends):
        return None
    passes: _Mask = np.isnan(values)
    for low, high in ends:
        passes |= (values >= low) & (values <= high)
    return passes


def _float(value: Any, values: NDArray[np.floating[Any]], beyond: float) -> Any:
    """The neighbour of a number on the way to infinity, which is that of no number; None for what is no number."""
    kind = values.dtype.type
    if value is None:
        return kind(beyond)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        with np.errstate(over="ignore"):
            found = kind(float(value))
            return None if np.isnan(found) else np.nextafter(found, kind(beyond))
    except (OverflowError, ValueError):
        return None


def _within(intervals: Sequence[Interval], compare: _Compare, is_one_of: Callable[[list[Any]], _Mask]) -> _Mask:
    """Which values lie in one of the intervals."""
    if len(intervals) != 1 and all(interval.is_point for interval in intervals):
        return is_one_of([interval.low for interval in intervals])
    masks = [_inside(interval, compare) for interval in intervals]
    return masks[0] if len(masks) == 1 else np.logical_or.reduce(masks)


def _inside(interval: Interval, compare: _Compare) -> _Mask:
    if interval.is_point:
        return compare("equal", interval.low)
    ends = []
    if interval.low is not None:
        ends.append(compare("greater" if interval.low_open else "greater_equal", interval.low))
    if interval.high is not None:
        ends.append(compare("less" if interval.high_open else "less_equal", interval.high))
    return ends[0] if len(ends) == 1 else np.logical_and.reduce(ends)

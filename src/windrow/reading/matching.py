"""Tests of a predicate, asked of values that are decoded: which of them may pass.

None says that a test is not understood here, so that everything may. Nulls pass no test that is.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.model.predicate import Between, Comparison, In, Literal, Op, Or, Predicate, StartsWith

__all__ = ["matching_texts", "matching_values"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LEAST, _MOST = -(2**63), 2**63 - 1
_OPS: dict[Op, Any] = {
    Op.EQUAL: np.equal,
    Op.LESS: np.less,
    Op.LESS_OR_EQUAL: np.less_equal,
    Op.GREATER: np.greater,
    Op.GREATER_OR_EQUAL: np.greater_equal,
}
_TEXT_OPS: dict[Op, Any] = {
    Op.EQUAL: pc.equal,
    Op.LESS: pc.less,
    Op.LESS_OR_EQUAL: pc.less_equal,
    Op.GREATER: pc.greater,
    Op.GREATER_OR_EQUAL: pc.greater_equal,
}

_Mask = NDArray[np.bool_]


def matching_texts(test: Predicate, texts: pa.Array) -> _Mask | None:
    """Which texts may pass a test; none of them is null. They are compared by their bytes, as engines do."""
    try:
        return _matching_texts(test, texts)
    except UnicodeEncodeError:
        return None


def _matching_texts(test: Predicate, texts: pa.Array) -> _Mask | None:
    match test:
        case Comparison(op=op, value=str(value)) if op in _TEXT_OPS:
            return _mask(_TEXT_OPS[op](texts, pa.scalar(value)))
        case Between(low=str(low), high=str(high)):
            return _mask(pc.and_(pc.greater_equal(texts, pa.scalar(low)), pc.less_equal(texts, pa.scalar(high))))
        case In(values=values) if all(isinstance(value, str) for value in values):
            return _mask(pc.is_in(texts, pa.array(values, pa.string())))
        case StartsWith(prefix=prefix):
            return _mask(pc.starts_with(texts, prefix))
        case Or(parts):
            masks = [mask for part in parts if (mask := _matching_texts(part, texts)) is not None]
            return np.logical_or.reduce(masks) if masks and len(masks) == len(parts) else None
    return None


def _mask(found: pa.Array) -> _Mask:
    mask: _Mask = found.to_numpy(zero_copy_only=False)
    return mask


def matching_values(test: Predicate, values: NDArray[Any], kind: pa.DataType) -> _Mask | None:
    """Which values of whole numbers or times may pass a test of them; those of null rows may be anything."""
    if values.dtype.kind != "i":
        return None
    match test:
        case Comparison(op=op, value=value) if op in _OPS:
            number = _number(value, kind)
            return None if number is None else _OPS[op](values, number)
        case Between(low=low, high=high):
            first, last = _number(low, kind), _number(high, kind)
            return None if first is None or last is None else (values >= first) & (values <= last)
        case In(values=listed):
            numbers = [_number(value, kind) for value in listed]
            return None if None in numbers else np.isin(values, np.array(numbers, np.int64))
    return None


def _number(value: Literal, kind: pa.DataType) -> int | None:
    """A value as a column of the type holds it."""
    if pa.types.is_timestamp(kind):
        if not isinstance(value, datetime):
            return None
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND
    return value if type(value) is int and _LEAST <= value <= _MOST else None

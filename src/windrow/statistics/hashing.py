"""Arrow arrays become coupons of sketches, such that equal values have equal ones in every file and in DataSketches.

Whole numbers, booleans, days and times are hashed as 64-bit integers, instants as microseconds where they are whole
ones, floats as doubles with one zero and one NaN, texts and bytes by their bytes. So do Spark's `hll_sketch_agg` and
the `update` of every DataSketches library, except that these pass over empty texts: here one is a value like any other.
Decimals are hashed without their point; those of another scale have other hashes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from windrow.kernels.sketches import coupons_of_numbers, coupons_of_texts
from windrow.statistics.sketch import Coupons
from windrow.statistics.values import SHORT_DECIMAL, decimals_of, is_bytes, numbers_of, texts_of, with_words

__all__ = ["coupons_of", "domain_of"]

_UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
_DAY = 86_400_000


def domain_of(kind: pa.DataType) -> str | None:
    """The set of types whose equal values have equal hashes; None for types that have no sketch."""
    if types.is_dictionary(kind):
        return domain_of(kind.value_type)
    if is_bytes(kind):
        return "bytes"
    if types.is_timestamp(kind):
        return "instant" if kind.tz is None else "instant utc"
    if types.is_decimal(kind):
        return f"decimal {kind.scale}" if kind.scale else "integer"
    return next((domain for domain, test in _DOMAINS if test(kind)), None)


_DOMAINS = (
    ("integer", types.is_integer),
    ("boolean", types.is_boolean),
    ("day", types.is_date),
    ("time of day", types.is_time),
    ("duration", types.is_duration),
    ("float", types.is_floating),
    ("nothing", types.is_null),
)


def coupons_of(values: pa.Array) -> Coupons:
    """The coupons of values without nulls (see `used_values`), of a type that has a domain."""
    kind = values.type
    if types.is_null(kind):
        return np.empty(0, np.uint32)
    if is_bytes(kind):
        return _of_texts(values)
    if types.is_decimal(kind):
        return _of_decimals(values)
    return _of_numbers(_hashed(kind, numbers_of(values)))


def _hashed(kind: pa.DataType, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The 64-bit numbers that stand for values in hashes."""
    if types.is_floating(kind):
        # adding zero makes one zero of the two
        doubles: npt.NDArray[Any] = numbers + 0.0
        doubles[np.isnan(doubles)] = np.nan
        return doubles
    if types.is_date64(kind):
        days: npt.NDArray[Any] = numbers // _DAY
        return days
    if types.is_timestamp(kind) or types.is_time(kind) or types.is_duration(kind):
        return _microseconds(kind.unit, numbers.astype(np.int64, copy=False))
    return numbers


def _microseconds(unit: str, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Times in microseconds; nanoseconds that are no whole ones stay as they are, far from all others."""
    if unit != "ns":
        return times * _UNITS[unit]
    micros = times // 1000
    return np.where(micros * 1000 == times, micros, times)


def _of_numbers(numbers: npt.NDArray[Any]) -> Coupons:
    words = numbers.view(np.uint64)
    # one kind of array, so that one signature of the kernel is compiled
    words.flags.writeable = False
    coupons = np.empty(words.size, np.uint32)
    coupons_of_numbers(words, coupons)
    return coupons


def _of_decimals(values: pa.Array) -> Coupons:
    numbers, raw = decimals_of(values)
    coupons = _of_numbers(numbers)
    if values.type.precision > SHORT_DECIMAL:
        sign = (numbers >> 63).astype(np.uint8)[:, None]
        wide = np.flatnonzero((raw[:, 8:] != sign).any(axis=1))
        if wide.size:
            # sixteen bytes are enough for all but the widest decimals, and the same in all widths
            chosen = np.ascontiguousarray(raw[wide, :16])
            bounds = np.arange(wide.size + 1, dtype=np.int64) * chosen.shape[1]
            coupons[wide] = _of_bytes(*with_words(chosen.ravel(), bounds))
    return coupons


def _of_texts(values: pa.Array) -> Coupons:
    return _of_bytes(*texts_of(values))


def _of_bytes(data: npt.NDArray[np.uint8], words: npt.NDArray[np.uint64], bounds: npt.NDArray[np.int64]) -> Coupons:
    coupons = np.empty(bounds.size - 1, np.uint32)
    coupons_of_texts(data, words, bounds, coupons)
    return coupons

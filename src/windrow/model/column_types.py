"""The types of columns: one record for each, of everything that several rooms have to know about it.

Literals, zone maps, decoded rows, the Delta mirror and Spark look a type up here. What one format alone says of a type,
such as the physical types of Parquet, stays with the format.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from windrow.model.fits import Fit, day, double, each, moment, nothing, only, singles, uuid, whole
from windrow.model.moments import EPOCH, MICROSECOND
from windrow.model.operators import Literal

__all__ = ["TypeFamily", "TypeRecord", "type_of"]

_LEAST, _MOST = -(2**63), 2**63 - 1
_DELTA_DIGITS = 38


class TypeFamily(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    BYTES = "bytes"
    BOOLEAN = "boolean"
    WHOLE = "whole number"
    FLOAT = "float"
    DECIMAL = "decimal"
    INSTANT = "instant"
    DAY = "day"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRecord:
    """Everything that several rooms have to know about one type."""

    family: TypeFamily = TypeFamily.OTHER
    spark: pa.DataType
    """The nearest type that Spark has."""
    delta: str | None = None
    """The name of a flat type in a Delta log; None where Delta has none such."""
    fit: Fit = nothing
    """Values of a query, as the column compares them."""
    zone_numbers: Callable[[pa.ChunkedArray], pa.ChunkedArray] | None = None
    """A column as numbers in the order of its values, without NaN, for zone maps; None where these have no bounds."""
    zone_unit: tuple[int, int] = (1, 1)
    """How many units of a zone map are how many of these numbers: zone maps count times in microseconds."""
    decoded: str | None = None
    """How numpy holds a value of decoded rows, where engines make the same of it in Parquet and in Arrow; texts are
    another matter, and decimals 16 bytes of which the lower half comes first."""
    decoded_number: Callable[[Literal], int | None] = lambda _: None
    """A value of a query as decoded rows hold it; None where they cannot."""


@lru_cache(maxsize=1024)
def type_of(kind: pa.DataType) -> TypeRecord:
    """Return the record of a type; that of a dictionary is that of its values, but no table declares one."""
    if types.is_dictionary(kind):
        return replace(type_of(kind.value_type), delta=None, decoded=None)
    record = _PLAIN.get(kind)
    if record is not None:
        return record
    for applies, make in _MADE:
        if applies(kind):
            return make(kind)
    return TypeRecord(spark=kind)


# ---- numbers for zone maps


def _itself(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column


def _counts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.int64())


def _days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.timestamp("us")).cast(pa.int64())


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = column.cast(pa.float64())
    return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)


# ---- values as decoded rows hold them


def _long(value: Literal) -> int | None:
    return value if type(value) is int and _LEAST <= value <= _MOST else None


def _microseconds(value: Literal) -> int | None:
    if not isinstance(value, datetime):
        return None
    instant = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (instant - EPOCH) // MICROSECOND


def _unscaled(scale: int) -> Callable[[Literal], int | None]:
    def number(value: Literal) -> int | None:
        if not isinstance(value, int | Decimal) or isinstance(value, bool):
            return None
        if isinstance(value, Decimal) and not (value.is_finite() and abs(value.adjusted()) <= _DELTA_DIGITS):
            return None
        unscaled = Fraction(value) * 10**scale
        return _long(unscaled.numerator) if unscaled.denominator == 1 else None

    return number


# ---- the records


def _whole(kind: pa.DataType, delta: str, spark: pa.DataType | None = None, decoded: str | None = None) -> TypeRecord:
    return TypeRecord(
        family=TypeFamily.WHOLE,
        spark=kind if spark is None else spark,
        delta=delta,
        fit=each(whole),
        zone_numbers=_itself,
        decoded=decoded,
        decoded_number=_long,
    )


def _float(spark: pa.DataType, delta: str, fit: Fit, decoded: str | None) -> TypeRecord:
    return TypeRecord(
        family=TypeFamily.FLOAT, spark=spark, delta=delta, fit=fit, zone_numbers=_without_nan, decoded=decoded
    )


def _text(kind: pa.DataType, delta: str | None) -> TypeRecord:
    return TypeRecord(family=TypeFamily.TEXT, spark=kind, delta=delta, fit=each(only(str)))


def _bytes(kind: pa.DataType) -> TypeRecord:
    return TypeRecord(family=TypeFamily.BYTES, spark=kind, delta="binary", fit=each(only(bytes)))


_PLAIN: dict[pa.DataType, TypeRecord] = {
    pa.string(): _text(pa.string(), "string"),
    pa.large_string(): _text(pa.large_string(), "string"),
    pa.string_view(): _text(pa.string_view(), None),
    pa.binary(): _bytes(pa.binary()),
    pa.large_binary(): _bytes(pa.large_binary()),
    pa.bool_(): TypeRecord(
        family=TypeFamily.BOOLEAN, spark=pa.bool_(), delta="boolean", fit=each(only(bool)), zone_numbers=_counts
    ),
    pa.int8(): _whole(pa.int8(), "byte"),
    pa.int16(): _whole(pa.int16(), "short"),
    pa.int32(): _whole(pa.int32(), "integer", decoded="i4"),
    pa.int64(): _whole(pa.int64(), "long", decoded="i8"),
    pa.uint8(): _whole(pa.uint8(), "short", pa.int16()),
    pa.uint16(): _whole(pa.uint16(), "integer", pa.int32()),
    pa.uint32(): _whole(pa.uint32(), "long", pa.int64()),
    pa.uint64(): _whole(pa.uint64(), "long", pa.decimal128(20, 0)),
    pa.float16(): _float(pa.float32(), "float", nothing, None),
    pa.float32(): _float(pa.float32(), "float", singles, "f4"),
    pa.float64(): _float(pa.float64(), "double", each(double), "f8"),
    pa.date32(): TypeRecord(family=TypeFamily.DAY, spark=pa.date32(), delta="date", fit=each(day), zone_numbers=_days),
    pa.date64(): TypeRecord(family=TypeFamily.DAY, spark=pa.date32(), delta="date", zone_numbers=_days),
}
_ZONE_UNITS = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}


def _instant(kind: pa.DataType) -> TypeRecord:
    return TypeRecord(
        family=TypeFamily.INSTANT,
        spark=pa.timestamp("us", None if kind.tz is None else "UTC"),
        delta="timestamp_ntz" if not kind.tz else "timestamp",
        fit=each(moment),
        zone_numbers=_counts,
        zone_unit=_ZONE_UNITS[kind.unit],
        decoded="i8" if kind.unit == "us" and kind.tz in (None, "UTC") else None,
        decoded_number=_microseconds,
    )


def _decimal(kind: pa.DataType) -> TypeRecord:
    is_wide = kind.precision > _DELTA_DIGITS
    return TypeRecord(
        family=TypeFamily.DECIMAL,
        spark=kind if is_wide else pa.decimal128(kind.precision, kind.scale),
        delta=None if is_wide else f"decimal({kind.precision},{kind.scale})",
        fit=each(only(int, Decimal)),
        decoded=None if is_wide else "V16",
        decoded_number=_unscaled(kind.scale),
    )


# Nanoseconds: Spark's own type for times of day is switched off where nobody switched it on.
_TIME_OF_DAY = TypeRecord(spark=pa.int64())
_DURATION = TypeRecord(spark=pa.duration("us"))

_MADE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], TypeRecord]], ...] = (
    (types.is_timestamp, _instant),
    (types.is_decimal, _decimal),
    (types.is_fixed_size_binary, lambda _: _bytes(pa.binary())),
    (types.is_time, lambda _: _TIME_OF_DAY),
    (types.is_duration, lambda _: _DURATION),
    (lambda kind: isinstance(kind, pa.UuidType), lambda kind: TypeRecord(spark=kind, fit=each(uuid))),
)

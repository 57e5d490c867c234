"""When two types of one column are still one column: the type that holds every value of both, exactly."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["WAYS_OUT", "holds", "joined", "plain", "stored", "takes", "widened"]

_SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_UNITS = ("s", "ms", "us", "ns")

WAYS_OUT = (
    "cast the data to the table's type, write another column, or give the column another type with table.retype "
    "(windrow retype), which says how the values that exist are read then"
)
"""What to do about data whose type cannot join that of a column."""


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without what only says how it lies in memory: dictionaries, views, 64-bit offsets."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def widened(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of both exactly, or None when there is none."""
    one, other = plain(one), plain(other)
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_integer(one) and pa.types.is_integer(other):
        return _integer(one, other)
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return _timestamp(one, other)
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        return _decimal(one, other)
    return _with_float(one, other)


def holds(kind: pa.DataType, other: pa.DataType) -> bool:
    """Say whether a column of a type can take values of another: all of them exactly, or times in its own unit."""
    one, two = plain(kind), plain(other)
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(two):
        return bool((one.tz is None) == (two.tz is None))
    return bool(widened(one, two) == one)


def joined(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type for data of both: one that holds both, or doubles for whole numbers that are exact in them."""
    both = widened(one, other)
    if both is None and pa.types.is_floating(one) != pa.types.is_floating(other):
        integer = other if pa.types.is_floating(one) else one
        return pa.float64() if pa.types.is_integer(plain(integer)) else None
    return both


def takes(kind: pa.DataType, other: pa.DataType) -> bool:
    """Say whether a column of a type can take values of another, all of them or those that are exact in it."""
    whole = pa.types.is_integer(plain(other)) and pa.types.is_floating(kind)
    return bool(holds(kind, other) or (whole and joined(kind, other) == kind))


def stored(kind: pa.DataType, precision: str) -> pa.DataType:
    """Return the type that a new column of a table gets: times have the unit of the table."""
    kind = plain(kind)
    return pa.timestamp(precision, kind.tz) if pa.types.is_timestamp(kind) else kind


def _integer(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if pa.types.is_signed_integer(one) == pa.types.is_signed_integer(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    signed, unsigned = (one, other) if pa.types.is_signed_integer(one) else (other, one)
    width = max(signed.bit_width, 2 * unsigned.bit_width)
    return next((kind for kind in _SIGNED if kind.bit_width == width), None)


def _with_float(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """A double holds every float, and every integer of up to 32 bits; a float every integer of up to 16."""
    if pa.types.is_floating(one) and pa.types.is_floating(other):
        return max(one, other, key=lambda kind: kind.bit_width)
    integer, floating = (one, other) if pa.types.is_integer(one) else (other, one)
    if not (pa.types.is_integer(integer) and pa.types.is_floating(floating)):
        return None
    if integer.bit_width <= 16 and floating.bit_width >= 32:
        return floating
    return pa.float64() if integer.bit_width <= 32 else None


def _timestamp(one: pa.TimestampType, other: pa.TimestampType) -> pa.DataType | None:
    """Instants with a zone and wall-clock times without one are different things."""
    if (one.tz is None) != (other.tz is None):
        return None
    return pa.timestamp(max(one.unit, other.unit, key=_UNITS.index), tz=one.tz)


def _decimal(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    if precision > 76:
        return None
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)

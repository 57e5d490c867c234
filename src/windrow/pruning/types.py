"""How the values of a column are stored, and where a literal falls among them.

A literal need not be one of the values that a column can store: 1.5 lies between two integers, 2**70 above all of
them, an instant between two days. Every question about it is answered exactly by two stored values: the first one that
is not below the literal, and the first one above it. Nothing is ever rounded.
"""

from __future__ import annotations

import math
import struct
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple

from windrow.model.moments import EPOCH, MICROSECOND
from windrow.model.ordering import comparable
from windrow.model.predicate import Literal

__all__ = [
    "BINARY",
    "DATE",
    "FLOAT",
    "OPAQUE",
    "SIGNED",
    "TEXT",
    "TIMESTAMPS",
    "UNSIGNED",
    "WHOLE",
    "ColumnType",
    "Family",
    "decimal",
    "utf8",
]


class Family(StrEnum):
    """What the values of a column are, and so which literals they compare with."""

    NUMBER = "number"
    FLOAT = "float"
    TIME = "time"
    TEXT = "text"
    BINARY = "binary"
    OPAQUE = "opaque"


_LITERALS: dict[Family, tuple[type, ...]] = {
    Family.NUMBER: (int, float, Decimal),
    Family.FLOAT: (int, float, Decimal),
    Family.TIME: (date,),
    Family.TEXT: (str,),
    Family.BINARY: (bytes,),
    Family.OPAQUE: (),
}

_ONE = Fraction(1)
_DAY = 86_400_000_000
_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<Q")
_SIGN = 1 << 63
_INFINITY = 0x7FF << 52
_NAN = _INFINITY + 1
_LONGEST = 5_000
"""Decimal literals with a longer exponent lie outside of, or between, all values that can be stored."""

_LIMITS: dict[str, tuple[Any, Any]] = {
    "int64": (-(2**63), 2**63),
    "uint64": (0, 2**64),
    "float64": (-_INFINITY, _NAN + 1),
    "object": (-math.inf, math.inf),
}


class ColumnType(NamedTuple):
    """The type of a column's bounds.

    `dtype` is that of the arrays that hold them: `object` holds bytes, or Python integers of any size. A number or a
    time is stored as an integer: `factor` times the number, or times the microseconds since 1970.

    *Positions* stand for stored values where these are ordered: integers and bytes themselves, and for a float an
    integer that follows the order of floats, with NaN behind infinity.
    """

    family: Family
    dtype: str
    factor: Fraction = _ONE

    def compares(self, literal: Literal) -> bool:
        """Whether the values and the literal have an order in common."""
        return isinstance(literal, _LITERALS[self.family])

    def around(self, literal: Literal) -> tuple[Any, Any]:
        """The first position that is not below a literal of this family, and the first one above it."""
        if isinstance(literal, str | bytes):
            raw = utf8(literal)
            return raw, raw + b"\0"
        number = _exact(literal)
        if self.family is Family.FLOAT:
            return _around_float(number)
        if isinstance(number, float):
            # No stored integer is as great as infinity, let alone NaN, or as low as minus infinity.
            return (-math.inf, -math.inf) if number < 0 else (math.inf, math.inf)
        if isinstance(number, int) and self.factor is _ONE:
            return number, number + 1
        stored = number * self.factor
        return math.ceil(stored), math.floor(stored) + 1

    @property
    def limits(self) -> tuple[Any, Any]:
        """The least position, and an end behind all positions; bytes have none, as there are always greater ones."""
        return (b"", None) if self.family in (Family.TEXT, Family.BINARY) else _LIMITS[self.dtype]

    def stores(self, position: Any) -> bool:
        """Whether there is a stored value at a position."""
        first, end = self.limits
        return bool(first <= position and (end is None or position < end))

    def value(self, position: Any) -> Any:
        """The stored value at a position."""
        return _float_at(position) if self.family is Family.FLOAT else position


SIGNED = ColumnType(Family.NUMBER, "int64")
UNSIGNED = ColumnType(Family.NUMBER, "uint64")
WHOLE = ColumnType(Family.NUMBER, "object")
"""Integers that may be signed or unsigned: only what holds for both is certain."""
FLOAT = ColumnType(Family.FLOAT, "float64")
TEXT = ColumnType(Family.TEXT, "object")
BINARY = ColumnType(Family.BINARY, "object")
OPAQUE = ColumnType(Family.OPAQUE, "object")
"""Values whose order is uncertain, or has no meaning here: only their nulls prove anything."""
DATE = ColumnType(Family.TIME, "int64", Fraction(1, _DAY))
TIMESTAMPS = {
    unit: ColumnType(Family.TIME, "int64", factor)
    for unit, factor in (
        ("s", Fraction(1, 10**6)),
        ("ms", Fraction(1, 10**3)),
        ("us", _ONE),
        ("ns", Fraction(10**3)),
    )
}
"""Instants by their unit."""


def decimal(scale: int, *, wide: bool = False) -> ColumnType:
    """Decimals, stored without their point in 64 bits, or as Python integers when `wide`."""
    return ColumnType(Family.NUMBER, "object" if wide else "int64", Fraction(10) ** scale)


def utf8(literal: str | bytes) -> bytes:
    """Text as it is stored; these bytes have the order of the text."""
    return literal if isinstance(literal, bytes) else literal.encode("utf-8", "surrogatepass")


def _exact(literal: Any) -> Fraction | int | float:
    """A literal as the number that it is, a time in microseconds; a float for infinities and NaN alone."""
    is_nan, value = comparable(literal)
    if is_nan:
        return math.nan
    if isinstance(value, datetime):
        return int((value - EPOCH) // MICROSECOND)
    if isinstance(value, int):
        return int(value)
    if value in (math.inf, -math.inf):
        return float(value)
    return Fraction(_within_reach(value) if isinstance(value, Decimal) else value)


def _within_reach(value: Decimal) -> Decimal:
    """The value, or one that lies in its place among all that can be stored, and takes no gigabytes to write out."""
    if not value or abs(value.adjusted()) <= _LONGEST:
        return value
    return Decimal((value.is_signed(), (1,), _LONGEST if value.adjusted() > 0 else -_LONGEST))


def _around_float(number: Fraction | float) -> tuple[int, int]:
    if isinstance(number, float) and math.isnan(number):
        return _NAN, _NAN + 1
    nearest = _nearest(number)
    place = _place(nearest)
    return place + (nearest < number), place + (nearest <= number)


def _nearest(number: Fraction | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _place(value: float) -> int:
    """An integer for a float that is not NaN, by which floats compare; neighbours differ by 1 and both zeros are 0."""
    bits: int = _BITS.unpack(_DOUBLE.pack(value))[0]
    return _SIGN - bits if bits >= _SIGN else bits


def _float_at(place: int) -> float:
    (value,) = _DOUBLE.unpack(_BITS.pack(abs(place)))
    return math.copysign(value, place)

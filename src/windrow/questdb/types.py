"""QuestDB's column types: how Parquet files store them, and as what Arrow types their values are shown.

Most types mean the same to Parquet, Arrow and engines. The others are stored as numbers or bytes that only QuestDB
understands: characters, IPv4 addresses, geohashes, UUIDs, 256-bit numbers, arrays, decimals beyond 38 digits.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from windrow.errors import Incompatible
from windrow.parquet.schema import PhysicalType
from windrow.questdb.stored_tests import TESTED_AS_TEXT
from windrow.sidecar.plain_schema import form_of
from windrow.sidecar.types import NANOSECONDS, TAG_MASK, Tag

__all__ = ["GEOHASHES", "TEXTS", "ZEROS", "ColumnType", "array_dimensions", "column_type", "geohash_bits", "type_name"]

TEXTS = frozenset({Tag.STRING, Tag.SYMBOL, Tag.VARCHAR, Tag.VARCHAR_SLICE})
"""Types of text; all are UTF-8 in Parquet."""
GEOHASHES = frozenset({Tag.GEOBYTE, Tag.GEOSHORT, Tag.GEOINT, Tag.GEOLONG})
ZEROS: dict[Tag, str] = {Tag.BOOLEAN: "false", Tag.BYTE: "0", Tag.SHORT: "0", Tag.CHAR: "''", Tag.LONG256: "''"}
"""Types whose absent values QuestDB shows as something else than null, and as what, in SQL."""

_MOST_DIGITS = 38
_PLAIN: dict[Tag, pa.DataType] = {
    Tag.BOOLEAN: pa.bool_(),
    Tag.BYTE: pa.int8(),
    Tag.SHORT: pa.int16(),
    Tag.INT: pa.int32(),
    Tag.LONG: pa.int64(),
    Tag.FLOAT: pa.float32(),
    Tag.DOUBLE: pa.float64(),
    Tag.BINARY: pa.binary(),
    Tag.LONG128: pa.binary(16),
}
_ODD: dict[Tag, pa.DataType] = {
    Tag.CHAR: pa.uint16(),
    Tag.IPV4: pa.uint32(),
    Tag.UUID: pa.binary(16),
    Tag.LONG256: pa.binary(32),
    Tag.GEOBYTE: pa.int8(),
    Tag.GEOSHORT: pa.int16(),
    Tag.GEOINT: pa.int32(),
    Tag.GEOLONG: pa.int64(),
}
"""Types that are stored as something else and shown as text."""


class ColumnType(NamedTuple):
    """One column type."""

    tag: Tag
    code: int
    stored: pa.DataType
    """The type in the Parquet file, as engines see it."""
    shown: pa.DataType
    """What a reader of the table gets."""

    @property
    def physical(self) -> PhysicalType:
        """How Parquet lays the values down."""
        return form_of(self.tag).physical_type

    @property
    def length(self) -> int | None:
        """Bytes of a value that has a fixed number of them."""
        if self.physical is not PhysicalType.FIXED_LEN_BYTE_ARRAY:
            return None
        return _decimal_length(self.tag) if self.tag >= Tag.DECIMAL8 else int(self.stored.byte_width)

    @property
    def is_shown_as_stored(self) -> bool:
        """Whether the stored values are the values; bounds then tell of them."""
        return bool(self.stored == self.shown)

    @property
    def is_searched(self) -> bool:
        """Whether bounds of stored values can be used: they are the values, or their tests can be made of others."""
        return self.is_shown_as_stored or self.tag in TESTED_AS_TEXT


def column_type(code: int, where: str) -> ColumnType:
    """What a type code stands for; `where` names the column and its table or file."""
    try:
        tag = Tag(code & TAG_MASK)
    except ValueError as error:
        raise Incompatible(
            f"{where} has the unknown type {code:#x}; use a newer Windrow, or drop the column"
        ) from error
    if tag in _PLAIN:
        return ColumnType(tag, code, _PLAIN[tag], _PLAIN[tag])
    if tag in _ODD:
        return ColumnType(tag, code, _ODD[tag], pa.string())
    if tag in TEXTS:
        return ColumnType(tag, code, pa.string(), pa.string())
    if tag in (Tag.DATE, Tag.TIMESTAMP):
        return _time(tag, code)
    if tag is Tag.ARRAY:
        return ColumnType(tag, code, pa.binary(), _lists(array_dimensions(code)))
    return _decimal(tag, code, where)


def array_dimensions(code: int) -> int:
    """How many dimensions an array has."""
    return (code >> 14 & 0x1F) + 1


def geohash_bits(code: int) -> int:
    """How many bits a geohash has."""
    return code >> 8 & 0xFF


def type_name(code: int) -> str:
    """The type as SQL of QuestDB spells it, for messages."""
    tag = Tag(code & TAG_MASK)
    if tag >= Tag.DECIMAL8 and tag is not Tag.VARCHAR_SLICE:
        return f"DECIMAL({code >> 8 & 0xFF},{code >> 18 & 0xFF})"
    if tag is Tag.ARRAY:
        return "DOUBLE" + "[]" * array_dimensions(code)
    if tag in GEOHASHES:
        return f"GEOHASH({geohash_bits(code)}b)"
    return "TIMESTAMP_NS" if code & NANOSECONDS and tag is Tag.TIMESTAMP else tag.name


def _time(tag: Tag, code: int) -> ColumnType:
    kind = pa.timestamp("ms" if tag is Tag.DATE else "ns" if code & NANOSECONDS else "us", "UTC")
    return ColumnType(tag, code, kind, kind)


def _lists(dimensions: int) -> pa.DataType:
    kind = pa.float64()
    for _ in range(dimensions):
        kind = pa.list_(kind)
    return kind


def _decimal(tag: Tag, code: int, where: str) -> ColumnType:
    precision, scale = code >> 8 & 0xFF, code >> 18 & 0xFF
    if not 1 <= precision <= 76 or scale > precision:
        raise Incompatible(f"{where} is a decimal of {precision} digits, {scale} of them behind the point; drop it")
    if precision > _MOST_DIGITS:
        return ColumnType(tag, code, pa.binary(32), pa.decimal256(precision, scale))
    kind = pa.decimal128(precision, scale)
    return ColumnType(tag, code, kind, kind)


def _decimal_length(tag: Tag) -> int:
    return 1 << (tag - Tag.DECIMAL8)

"""QuestDB's column types: the codes of descriptors, which one a Parquet column gets, and how their bounds compare."""

from __future__ import annotations

from enum import IntEnum

from windrow.parquet.schema import Leaf, LogicalType, PhysicalType
from windrow.sidecar.layout import NONE, Order

TAG_MASK = 0xFF
DESIGNATED = 1 << 17
DESIGNATED_DESCENDING = 1 << 20
NANOSECONDS = 1 << 18


class Tag(IntEnum):
    """The low byte of a column type."""

    BOOLEAN = 1
    BYTE = 2
    SHORT = 3
    CHAR = 4
    INT = 5
    LONG = 6
    DATE = 7
    TIMESTAMP = 8
    FLOAT = 9
    DOUBLE = 10
    STRING = 11
    SYMBOL = 12
    LONG256 = 13
    GEOBYTE = 14
    GEOSHORT = 15
    GEOINT = 16
    GEOLONG = 17
    BINARY = 18
    UUID = 19
    LONG128 = 24
    IPV4 = 25
    VARCHAR = 26
    ARRAY = 27
    DECIMAL8 = 28
    DECIMAL16 = 29
    DECIMAL32 = 30
    DECIMAL64 = 31
    DECIMAL128 = 32
    DECIMAL256 = 33
    VARCHAR_SLICE = 40


TIMESTAMP_NANO = Tag.TIMESTAMP | NANOSECONDS
NEVER_INFERRED = frozenset(
    (Tag.CHAR, Tag.STRING, Tag.SYMBOL, Tag.GEOBYTE, Tag.GEOSHORT, Tag.GEOINT, Tag.GEOLONG, Tag.IPV4, Tag.VARCHAR_SLICE)
)
"""What only QuestDB says of a column: no column of another writer gets such a type."""
DECIMALS = range(Tag.DECIMAL8, Tag.DECIMAL256 + 1)
"""The tags of decimals."""
_DECIMAL_DIGITS = (
    (2, Tag.DECIMAL8),
    (4, Tag.DECIMAL16),
    (9, Tag.DECIMAL32),
    (18, Tag.DECIMAL64),
    (38, Tag.DECIMAL128),
    (76, Tag.DECIMAL256),
)
_INTEGERS = frozenset((int(PhysicalType.INT32), int(PhysicalType.INT64)))
_PLAIN_INTEGERS = frozenset((int(Tag.INT), int(Tag.LONG)))
_MOST_DIMENSIONS = 32
_FIXED_LENGTHS = {16: Tag.LONG128, 32: Tag.LONG256}
_SMALL_INTEGERS = {8: Tag.BYTE, 16: Tag.SHORT}
_TIMESTAMP_UNITS = {"MICROS": int(Tag.TIMESTAMP), "NANOS": TIMESTAMP_NANO, "MILLIS": int(Tag.DATE)}
_UNORDERED = {"UNDEFINED", "FLOAT16", "INTERVAL", "UNKNOWN", "VARIANT", "GEOMETRY", "GEOGRAPHY"}
_NOTHING = LogicalType("")


def decimal_type(precision: int, scale: int) -> int:
    """The type of a decimal, or -1 where QuestDB has none."""
    if precision < 1 or not 0 <= scale <= precision:
        return NONE
    tag = next((tag for digits, tag in _DECIMAL_DIGITS if precision <= digits), None)
    return NONE if tag is None else tag | precision << 8 | scale << 18


def array_type(dimensions: int) -> int:
    """The type of an array of doubles."""
    return Tag.ARRAY | Tag.DOUBLE << 8 | (dimensions - 1) << 14


def infer_type(leaf: Leaf) -> int:
    """The type of a column of a file that QuestDB did not write; -1 where it has none."""
    element, meaning = leaf.element, leaf.element.meaning or _NOTHING
    match element.physical_type:
        case PhysicalType.BOOLEAN:
            return Tag.BOOLEAN
        case PhysicalType.FLOAT:
            return Tag.FLOAT
        case PhysicalType.DOUBLE:
            return array_type(leaf.list_dimensions) if 0 < leaf.list_dimensions <= _MOST_DIMENSIONS else Tag.DOUBLE
        case PhysicalType.INT96:
            return TIMESTAMP_NANO if element.converted_type is None else NONE
        case _ if meaning.name == "DECIMAL":
            return decimal_type(meaning.precision or 0, meaning.scale or 0)
        case PhysicalType.INT32:
            return _int32(meaning)
        case PhysicalType.INT64:
            # The older way of saying it, without a logical type, is not a timestamp to QuestDB.
            return _int64(element.logical_type or _NOTHING)
        case PhysicalType.BYTE_ARRAY:
            return Tag.VARCHAR if meaning.name == "STRING" else Tag.BINARY
        case _:
            return _fixed_length(element.type_length or 0, meaning)


def _int32(meaning: LogicalType) -> int:
    if meaning.name == "DATE":
        return Tag.DATE
    small = meaning.name == "INTEGER" and meaning.is_signed
    return _SMALL_INTEGERS.get(meaning.bit_width or 0, Tag.INT) if small else Tag.INT


def _int64(logical: LogicalType) -> int:
    return _TIMESTAMP_UNITS.get(logical.unit or "", int(Tag.LONG)) if logical.name == "TIMESTAMP" else Tag.LONG


def _fixed_length(length: int, meaning: LogicalType) -> int:
    return Tag.UUID if length == 16 and meaning.name == "UUID" else _FIXED_LENGTHS.get(length, NONE)


def is_designated(column_type: int) -> bool:
    """Whether a type is that of a designated timestamp, as QuestDB alone marks it in the files that it writes."""
    return column_type & TAG_MASK == Tag.TIMESTAMP and bool(column_type & DESIGNATED)


def may_be_unsigned(column_type: int, physical_type: int) -> bool:
    """Whether a column can hold unsigned integers: a file of another writer has them under the types INT and LONG."""
    return physical_type in _INTEGERS and column_type & TAG_MASK in _PLAIN_INTEGERS


def order_of(column_type: int, physical_type: int, *, from_questdb: bool = False) -> Order:
    """How bounds compare by a descriptor alone.

    Other writers than QuestDB have unsigned integers under the types INT and LONG: without a schema their sign is
    uncertain.
    """
    tag = column_type & TAG_MASK
    match physical_type:
        case PhysicalType.BOOLEAN:
            return Order.UNSIGNED
        case PhysicalType.FLOAT | PhysicalType.DOUBLE:
            return Order.FLOAT
        case PhysicalType.INT32 | PhysicalType.INT64:
            if tag == Tag.IPV4:
                return Order.UNSIGNED
            unknown = not from_questdb and may_be_unsigned(column_type, physical_type)
            return Order.SIGN_UNKNOWN if unknown else Order.SIGNED
        case PhysicalType.BYTE_ARRAY | PhysicalType.FIXED_LEN_BYTE_ARRAY if column_type != NONE:
            return Order.SIGNED_BIG_ENDIAN if tag in DECIMALS else Order.BYTES
        case _:
            return Order.UNDEFINED


def order_of_leaf(leaf: Leaf) -> Order:
    """How bounds compare by the schema."""
    meaning = leaf.element.meaning or _NOTHING
    match leaf.element.physical_type:
        case PhysicalType.BOOLEAN:
            return Order.UNSIGNED
        case PhysicalType.FLOAT | PhysicalType.DOUBLE:
            return Order.FLOAT
        case PhysicalType.INT32 | PhysicalType.INT64:
            return Order.UNSIGNED if meaning.is_signed is False else Order.SIGNED
        case PhysicalType.BYTE_ARRAY | PhysicalType.FIXED_LEN_BYTE_ARRAY:
            if meaning.name == "DECIMAL":
                return Order.SIGNED_BIG_ENDIAN
            return Order.UNDEFINED if meaning.name in _UNORDERED else Order.BYTES
        case _:
            return Order.UNDEFINED

"""The one column that a name stands for, and how its values compare: what bounds of a sidecar mean to a predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windrow.model.predicate import Literal
from windrow.parquet.schema import LogicalType, PhysicalType, Repetition
from windrow.pruning import types
from windrow.pruning.types import ColumnType, Family
from windrow.sidecar import layout
from windrow.sidecar.layout import ColumnFlag, Order
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.types import DECIMALS, NANOSECONDS, NEVER_INFERRED, TAG_MASK, Tag

__all__ = ["FlatColumn", "flat_column", "is_flat"]

_TEXTS = {Tag.STRING, Tag.SYMBOL, Tag.VARCHAR, Tag.VARCHAR_SLICE}
_INTEGERS = {Tag.BYTE, Tag.SHORT, Tag.INT, Tag.LONG}
_WITHOUT_SIGN = {Tag.CHAR, Tag.IPV4}
_SCALE_SHIFT = 18
_UNITS = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
_COMPARABLE_ORDERS = (1, 2)
"""Kinds of Parquet column order that floats of 16 bits have, which is no `Order` of a sidecar."""
_BROKEN_DECIMALS = "parquet-cpp version"
"""Writers before Arrow 4 call themselves so; the bounds of their decimals in bytes are wrong."""


class FlatColumn(NamedTuple):
    """The one column that a name stands for."""

    position: int
    physical_type: int
    length: int | None
    """Bytes of a value, where they are a fixed number of bytes."""
    descending: bool
    type: ColumnType
    nullable: bool
    """Whether there is a level for nulls."""


def flat_column(sidecar: Sidecar, name: str, literals: Sequence[Literal]) -> FlatColumn | None:
    """The flat column of a name; None when there is no such, when it is nested, or when the name is not its alone."""
    position = _position(sidecar, name)
    if position is None:
        return None
    _, _, code, flags, length, _, physical_type, _, max_def_level, _ = sidecar.descriptor(position)
    if not is_flat(sidecar, position):
        return None
    column_type = _described_type(code, physical_type, sidecar.order(position))
    if not all(map(column_type.compares, literals)):
        column_type = _declared_type(sidecar, position) or column_type
    if column_type.dtype == "object" and column_type.family is Family.NUMBER and _has_broken_decimals(sidecar):
        column_type = types.OPAQUE
    fixed_length = length if physical_type == PhysicalType.FIXED_LEN_BYTE_ARRAY else None
    descending = bool(flags & ColumnFlag.DESCENDING)
    return FlatColumn(position, physical_type, fixed_length, descending, column_type, max_def_level > 0)


def is_flat(sidecar: Sidecar, position: int) -> bool:
    """Whether a column is no part of a list or a struct, so that its levels and nulls are those of its rows.

    The levels decide. FIELD_REPETITION is a hint in sidecars of a running QuestDB: its timestamps are marked as
    optional, and a column that is marked as required may hold nulls. In files of others it is what tells a struct
    that is required, around one optional leaf, from an optional column: both have one level.
    """
    _, _, code, flags, _, _, _, max_rep_level, max_def_level, _ = sidecar.descriptor(position)
    if max_rep_level or max_def_level > 1:
        return False
    repetition = (flags & layout.REPETITION_MASK) >> layout.REPETITION_SHIFT
    if not max_def_level or repetition == Repetition.OPTIONAL:
        return True
    return code & TAG_MASK in NEVER_INFERRED or sidecar.from_questdb


def _position(sidecar: Sidecar, name: str) -> int | None:
    try:
        positions = sidecar.column_positions(name)
    except UnicodeEncodeError:
        return None
    return positions[0] if len(positions) == 1 else None


def _described_type(code: int, physical_type: int, order: Order) -> ColumnType:
    """What a descriptor tells of the values."""
    tag = code & TAG_MASK
    match order:
        case Order.FLOAT:
            return types.FLOAT
        case Order.BYTES:
            return types.TEXT if tag in _TEXTS else types.BINARY
        case Order.SIGNED_BIG_ENDIAN if tag in DECIMALS:
            return types.decimal(code >> _SCALE_SHIFT, wide=True)
        case Order.UNSIGNED if physical_type == PhysicalType.BOOLEAN or tag in _INTEGERS or tag in _WITHOUT_SIGN:
            return types.UNSIGNED
        case Order.SIGN_UNKNOWN:
            return types.WHOLE
        case Order.SIGNED:
            return _integer_type(code, tag, physical_type)
    return types.OPAQUE


def _integer_type(code: int, tag: int, physical_type: int) -> ColumnType:
    if tag in _INTEGERS or tag == Tag.CHAR:
        return types.SIGNED
    if tag == Tag.TIMESTAMP:
        return types.TIMESTAMPS["ns" if code & NANOSECONDS else "us"]
    if tag == Tag.DATE:
        return types.DATE if physical_type == PhysicalType.INT32 else types.TIMESTAMPS["ms"]
    return types.decimal(code >> _SCALE_SHIFT) if tag in DECIMALS else types.OPAQUE


def _declared_type(sidecar: Sidecar, position: int) -> ColumnType | None:
    """What the Parquet schema tells of the values where a descriptor has no word for it."""
    schema, order = sidecar.extensions.schema, sidecar.order(position)
    meaning = None if schema is None else schema.leaves[position].element.meaning
    if schema is None or meaning is None:
        return None
    if meaning.name == "FLOAT16":
        orders = schema.column_orders
        return types.FLOAT if orders is None or orders[position] in _COMPARABLE_ORDERS else None
    return None if order == Order.UNDEFINED else _meant_type(meaning, wide=order == Order.SIGNED_BIG_ENDIAN)


def _meant_type(meaning: LogicalType, *, wide: bool) -> ColumnType | None:
    match meaning.name:
        case "TIMESTAMP":
            return types.TIMESTAMPS[_UNITS[meaning.unit]] if meaning.unit in _UNITS else None
        case "TIME":
            return types.OPAQUE
        case "ENUM" | "JSON":
            return types.TEXT
        case "DECIMAL":
            return types.decimal(meaning.scale or 0, wide=wide)
    return None


def _has_broken_decimals(sidecar: Sidecar) -> bool:
    return (sidecar.extensions.created_by or "").startswith(_BROKEN_DECIMALS)

"""The Parquet schema of a file that QuestDB wrote, from the column types of its sidecar alone.

QuestDB's own sidecars hold no schema. Their column types say as much: each type is always written in the same form.
Files of other writers are another matter, since several Parquet types share one column type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from windrow.kernels import rules as r
from windrow.parquet import thrift as t
from windrow.parquet.schema import CONVERTED_DECIMAL, PhysicalType, Repetition
from windrow.sidecar.types import DECIMALS, NANOSECONDS, TAG_MASK, Tag

if TYPE_CHECKING:
    from windrow.sidecar.reader import Sidecar

__all__ = ["plain_schema"]

_TIMESTAMP, _UUID = 8, 14
_MILLIS, _MICROS, _NANOS = 1, 2, 3
_CONVERTED_UNITS = {_MILLIS: 9, _MICROS: 10}


class _Form(NamedTuple):
    """How a type is written: its physical type, and the converted type that says what it means."""

    physical_type: PhysicalType
    converted_type: int | None = None


_FORMS: Mapping[int, _Form] = {
    Tag.BOOLEAN: _Form(PhysicalType.BOOLEAN),
    Tag.BYTE: _Form(PhysicalType.INT32, 15),
    Tag.SHORT: _Form(PhysicalType.INT32, 16),
    Tag.CHAR: _Form(PhysicalType.INT32, 12),
    Tag.INT: _Form(PhysicalType.INT32),
    Tag.LONG: _Form(PhysicalType.INT64),
    Tag.DATE: _Form(PhysicalType.INT64),
    Tag.TIMESTAMP: _Form(PhysicalType.INT64),
    Tag.FLOAT: _Form(PhysicalType.FLOAT),
    Tag.DOUBLE: _Form(PhysicalType.DOUBLE),
    Tag.STRING: _Form(PhysicalType.BYTE_ARRAY, 0),
    Tag.SYMBOL: _Form(PhysicalType.BYTE_ARRAY, 0),
    Tag.LONG256: _Form(PhysicalType.FIXED_LEN_BYTE_ARRAY),
    Tag.GEOBYTE: _Form(PhysicalType.INT32, 15),
    Tag.GEOSHORT: _Form(PhysicalType.INT32, 16),
    Tag.GEOINT: _Form(PhysicalType.INT32, 17),
    Tag.GEOLONG: _Form(PhysicalType.INT64, 18),
    Tag.BINARY: _Form(PhysicalType.BYTE_ARRAY),
    Tag.UUID: _Form(PhysicalType.FIXED_LEN_BYTE_ARRAY),
    Tag.LONG128: _Form(PhysicalType.FIXED_LEN_BYTE_ARRAY),
    Tag.IPV4: _Form(PhysicalType.INT32, 13),
    Tag.VARCHAR: _Form(PhysicalType.BYTE_ARRAY, 0),
    Tag.ARRAY: _Form(PhysicalType.BYTE_ARRAY),
    Tag.VARCHAR_SLICE: _Form(PhysicalType.BYTE_ARRAY, 0),
    **{tag: _Form(PhysicalType.FIXED_LEN_BYTE_ARRAY, CONVERTED_DECIMAL) for tag in DECIMALS},
}


def plain_schema(sidecar: Sidecar) -> bytes | None:
    """The list of schema elements, thrift compact, its header included.

    None where it does not follow from the sidecar: the file is not QuestDB's, a column is in an unusual form, or is
    nested (arrays of doubles may be written as lists).
    """
    if not sidecar.from_questdb:
        return None
    elements = [_element(sidecar, position) for position in range(sidecar.column_count)]
    known = [element for element in elements if element is not None]
    if len(known) < len(elements):
        return None
    root = t.struct(t.binary(4, b"schema"), t.i32(5, len(known)))
    return t.list_of(2, r.RECORD, [root, *known]).value


def _element(sidecar: Sidecar, position: int) -> bytes | None:
    _, column_id, code, _, length, _, physical, max_rep_level, max_def_level, _ = sidecar.descriptor(position)
    form = _FORMS.get(code & TAG_MASK)
    if form is None or form.physical_type != physical or max_rep_level or max_def_level > 1:
        return None
    is_fixed = physical == PhysicalType.FIXED_LEN_BYTE_ARRAY
    fields = [
        t.i32(1, physical),
        *([t.i32(2, length)] if is_fixed else []),
        t.i32(3, Repetition.OPTIONAL if max_def_level else Repetition.REQUIRED),
        t.binary(4, sidecar.column_name(position).encode()),
        *_meaning(code, form.converted_type),
    ]
    if column_id >= 0:
        fields.append(t.i32(9, column_id))
    return t.struct(*sorted(fields, key=lambda field: field.id))


def _meaning(code: int, converted_type: int | None) -> list[t.Field]:
    """What the values mean: by a converted type, and by a logical one where that alone says all."""
    tag = code & TAG_MASK
    if tag in (Tag.TIMESTAMP, Tag.DATE):
        unit = _MILLIS if tag == Tag.DATE else _NANOS if code & NANOSECONDS else _MICROS
        return _timestamp(unit)
    if tag == Tag.UUID:
        return [t.nested(10, t.struct(t.nested(_UUID, t.struct())))]
    if converted_type is None:
        return []
    digits = [t.i32(7, code >> 18), t.i32(8, code >> 8 & 0xFF)] if converted_type == CONVERTED_DECIMAL else []
    return [t.i32(6, converted_type), *digits]


def _timestamp(unit: int) -> list[t.Field]:
    of_unit = t.nested(2, t.struct(t.nested(unit, t.struct())))
    logical = t.nested(10, t.struct(t.nested(_TIMESTAMP, t.struct(t.boolean(1, value=True), of_unit))))
    converted = _CONVERTED_UNITS.get(unit)
    return [logical] if converted is None else [t.i32(6, converted), logical]

"""The Parquet schema of a file that QuestDB wrote, from the column types alone.

QuestDB's own sidecars hold no schema. Their column types say as much: each type is always written in the same form.
Files of other writers are another matter, since several Parquet types share one column type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from windrow.kernels import rules as r
from windrow.parquet import thrift as t
from windrow.parquet.schema import CONVERTED_DECIMAL, PhysicalType, Repetition
from windrow.sidecar.layout import NONE
from windrow.sidecar.types import DECIMALS, NANOSECONDS, TAG_MASK, Tag

if TYPE_CHECKING:
    from windrow.sidecar.reader import Sidecar

__all__ = ["column_element", "form_of", "plain_schema", "schema_list"]

_TIMESTAMP, _UUID = 8, 14
_MILLIS, _MICROS, _NANOS = 1, 2, 3
_CONVERTED_UNITS = {_MILLIS: 9, _MICROS: 10}


class Form(NamedTuple):
    """How a type is written: its physical type, and the converted type that gives its meaning."""

    physical_type: PhysicalType
    converted_type: int | None = None


_FORMS: Mapping[int, Form] = {
    Tag.BOOLEAN: Form(PhysicalType.BOOLEAN),
    Tag.BYTE: Form(PhysicalType.INT32, 15),
    Tag.SHORT: Form(PhysicalType.INT32, 16),
    Tag.CHAR: Form(PhysicalType.INT32, 12),
    Tag.INT: Form(PhysicalType.INT32),
    Tag.LONG: Form(PhysicalType.INT64),
    Tag.DATE: Form(PhysicalType.INT64),
    Tag.TIMESTAMP: Form(PhysicalType.INT64),
    Tag.FLOAT: Form(PhysicalType.FLOAT),
    Tag.DOUBLE: Form(PhysicalType.DOUBLE),
    Tag.STRING: Form(PhysicalType.BYTE_ARRAY, 0),
    Tag.SYMBOL: Form(PhysicalType.BYTE_ARRAY, 0),
    Tag.LONG256: Form(PhysicalType.FIXED_LEN_BYTE_ARRAY),
    Tag.GEOBYTE: Form(PhysicalType.INT32, 15),
    Tag.GEOSHORT: Form(PhysicalType.INT32, 16),
    Tag.GEOINT: Form(PhysicalType.INT32, 17),
    Tag.GEOLONG: Form(PhysicalType.INT64, 18),
    Tag.BINARY: Form(PhysicalType.BYTE_ARRAY),
    Tag.UUID: Form(PhysicalType.FIXED_LEN_BYTE_ARRAY),
    Tag.LONG128: Form(PhysicalType.FIXED_LEN_BYTE_ARRAY),
    Tag.IPV4: Form(PhysicalType.INT32, 13),
    Tag.VARCHAR: Form(PhysicalType.BYTE_ARRAY, 0),
    Tag.ARRAY: Form(PhysicalType.BYTE_ARRAY),
    Tag.VARCHAR_SLICE: Form(PhysicalType.BYTE_ARRAY, 0),
    **{tag: Form(PhysicalType.FIXED_LEN_BYTE_ARRAY, CONVERTED_DECIMAL) for tag in DECIMALS},
}


def form_of(tag: Tag) -> Form:
    """Return how a type is written."""
    return _FORMS[tag]


def plain_schema(sidecar: Sidecar) -> bytes | None:
    """The list of schema elements, thrift compact, its header included.

    None where it does not follow from the sidecar: the file is not QuestDB's, a column is in an unusual form, or is
    nested (arrays of doubles may be written as lists).
    """
    if not sidecar.from_questdb:
        return None
    elements = [_element(sidecar, position) for position in range(sidecar.column_count)]
    plain = [element for element in elements if element is not None]
    if len(plain) < len(elements):
        return None
    return schema_list(b"schema", plain)


def schema_list(root: bytes, elements: Sequence[bytes]) -> bytes:
    """Return the list of the schema elements of flat columns under a root of this name, its header included."""
    return t.list_of(2, r.RECORD, [t.struct(t.binary(4, root), t.i32(5, len(elements))), *elements]).value


def column_element(name: str, code: int, length: int, *, optional: bool, column_id: int = NONE) -> bytes:
    """Return the schema element of a column of a type; `length` counts where values are a fixed number of bytes."""
    form = _FORMS[code & TAG_MASK]
    fields = [
        t.i32(1, form.physical_type),
        *([t.i32(2, length)] if form.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY else []),
        t.i32(3, Repetition.OPTIONAL if optional else Repetition.REQUIRED),
        t.binary(4, name.encode()),
        *_meaning(code, form.converted_type),
    ]
    if column_id >= 0:
        fields.append(t.i32(9, column_id))
    return t.struct(*sorted(fields, key=lambda field: field.id))


def _element(sidecar: Sidecar, position: int) -> bytes | None:
    _, column_id, code, _, length, _, physical, max_rep_level, max_def_level, _ = sidecar.descriptor(position)
    form = _FORMS.get(code & TAG_MASK)
    if form is None or form.physical_type != physical or max_rep_level or max_def_level > 1:
        return None
    name = sidecar.column_name(position)
    return column_element(name, code, length, optional=bool(max_def_level), column_id=column_id)


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

"""Columns of a table as Delta declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from windrow.metastore import TableColumn

__all__ = ["PARTITIONS", "delta_type", "partitions_of", "schema_of"]

PARTITIONS = ("partition_id", "window_start")
"""The folders of a table, which are columns to Delta, unless the table has columns of these names itself."""

_PLAIN = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "byte"),
    (lambda kind: types.is_int16(kind) or types.is_uint8(kind), "short"),
    (lambda kind: types.is_int32(kind) or types.is_uint16(kind), "integer"),
    (types.is_integer, "long"),
    (lambda kind: types.is_float16(kind) or types.is_float32(kind), "float"),
    (types.is_float64, "double"),
    (lambda kind: types.is_string(kind) or types.is_large_string(kind), "string"),
    (lambda kind: types.is_binary(kind) or types.is_large_binary(kind), "binary"),
    (types.is_fixed_size_binary, "binary"),
    (types.is_date, "date"),
)


def delta_type(kind: pa.DataType) -> Any:
    """Return a type as Delta writes it, or None when Delta has none such."""
    for test, name in _PLAIN:
        if test(kind):
            return name
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_decimal(kind) and kind.precision <= 38:
        return f"decimal({kind.precision},{kind.scale})"
    return _nested(kind)


def schema_of(columns: Sequence[TableColumn]) -> dict[str, Any]:
    """Return the schema of a table; columns of a type that Delta has not are left out."""
    fields = [_field(column.name, delta_type(column.type)) for column in columns]
    folders = [_field(name, "long") for name in partitions_of(columns)]
    return {"type": "struct", "fields": [each for each in fields if each["type"] is not None] + folders}


def partitions_of(columns: Sequence[TableColumn]) -> list[str]:
    """Return the folders that are columns to Delta."""
    taken = {column.name.lower() for column in columns}
    return [name for name in PARTITIONS if name not in taken]


def _nested(kind: pa.DataType) -> Any:
    if types.is_map(kind):
        key, value = delta_type(kind.key_type), delta_type(kind.item_type)
        whole = {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
        return None if key is None or value is None else whole
    if types.is_list(kind) or types.is_large_list(kind):
        element = delta_type(kind.value_type)
        return None if element is None else {"type": "array", "elementType": element, "containsNull": True}
    if types.is_struct(kind):
        fields = [_field(field.name, delta_type(field.type)) for field in kind]
        return None if any(each["type"] is None for each in fields) else {"type": "struct", "fields": fields}
    return None


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}

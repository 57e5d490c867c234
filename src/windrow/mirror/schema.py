"""Columns of a table as Delta declares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from windrow.metastore import TableColumn
from windrow.model.column_types import type_of

__all__ = ["PARTITIONS", "delta_type", "partitions_of", "schema_of"]

PARTITIONS = ("partition_id", "window_start")
"""The folders of a table, which are columns to Delta, unless the table has columns of these names itself."""


def delta_type(kind: pa.DataType) -> Any:
    """Return a type as Delta writes it, or None when Delta has none such."""
    name = type_of(kind).delta
    return _nested(kind) if name is None else name


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

"""Writing `_meta` for tables of the partition store, and the Arrow schema that follows from it."""

from __future__ import annotations

import struct

import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.questdb.meta import Meta, PartitionUnit, TableColumn
from windrow.sidecar.types import TIMESTAMP_NANO, Tag

__all__ = ["arrow_schema", "describe_table", "encode_meta"]

_HEADER = struct.Struct("<6iqqBhhii")
_COLUMNS_OFFSET = 128
_RECORD = struct.Struct("<iq5i")
_VERSION, _MINOR, _FORMAT_PARQUET = 426, 2, 1
_MOST_UNCOMMITTED = 500_000
_ARROW = {
    int(Tag.BOOLEAN): pa.bool_(),
    int(Tag.BYTE): pa.int8(),
    int(Tag.SHORT): pa.int16(),
    int(Tag.INT): pa.int32(),
    int(Tag.LONG): pa.int64(),
    int(Tag.DATE): pa.timestamp("ms", "UTC"),
    int(Tag.TIMESTAMP): pa.timestamp("us", "UTC"),
    TIMESTAMP_NANO: pa.timestamp("ns", "UTC"),
    int(Tag.FLOAT): pa.float32(),
    int(Tag.DOUBLE): pa.float64(),
    int(Tag.VARCHAR): pa.string(),
    int(Tag.BINARY): pa.binary(),
}
"""The Arrow type of each of QuestDB's types that the store writes."""
_TYPES = {str(kind): code for code, kind in _ARROW.items()} | {
    "large_string": int(Tag.VARCHAR),
    "string_view": int(Tag.VARCHAR),
    "large_binary": int(Tag.BINARY),
}
_TIMES = (int(Tag.TIMESTAMP), TIMESTAMP_NANO)


def describe_table(schema: pa.Schema, timestamp: str, unit: PartitionUnit) -> Meta:
    """The structure of a new table with these columns."""
    if unit is PartitionUnit.NONE:
        raise InvalidInput("a table without partitions has no Parquet files; choose a unit such as PartitionUnit.DAY")
    if len({name.lower() for name in schema.names}) < len(schema.names):
        raise InvalidInput("two columns have one name, whatever their case; rename one")
    columns = tuple(TableColumn(field.name, _type(field), number) for number, field in enumerate(schema))
    designated = next((column for column in columns if column.name == timestamp), None)
    if designated is None or designated.type not in _TIMES:
        problem = f"{timestamp!r} is no column of microseconds or nanoseconds"
        raise InvalidInput(f"{problem}; name the timestamp column, or cast it to timestamp[us]")
    return Meta(columns, unit, designated, structure_version=0, table_id=0, is_wal=False)


def arrow_schema(meta: Meta) -> pa.Schema:
    """The columns of a table's Parquet files, with their field ids; the timestamp is never null."""
    fields = []
    for column in meta.columns:
        if column.type not in _ARROW:
            raise InvalidInput(f"column {column.name!r} has the type {column.type:#x}, which the store does not write")
        field = pa.field(column.name, _ARROW[column.type], nullable=column != meta.timestamp)
        fields.append(field.with_metadata({b"PARQUET:field_id": str(column.id)}))
    return pa.schema(fields)


def encode_meta(meta: Meta) -> bytes:
    """The bytes of `_meta`."""
    timestamp = -1 if meta.timestamp is None else meta.columns.index(meta.timestamp)
    header = _HEADER.pack(
        len(meta.columns),
        meta.unit,
        timestamp,
        _VERSION,
        meta.table_id,
        _MOST_UNCOMMITTED,
        0,
        meta.structure_version,
        meta.is_wal,
        0,
        _MINOR,
        0,
        _FORMAT_PARQUET,
    )
    records = [_RECORD.pack(column.type, 0, 0, 0, 0, 0, 0) for column in meta.columns]
    names = [column.name.encode("utf-16-le") for column in meta.columns]
    texts = [struct.pack("<i", len(name) // 2) + name for name in names]
    return header.ljust(_COLUMNS_OFFSET, b"\0") + b"".join(records + texts)


def _type(field: pa.Field) -> int:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    kind = pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) else kind
    if str(kind) not in _TYPES:
        problem = f"column {field.name!r} has the type {field.type}, which the store does not write"
        raise InvalidInput(f"{problem}; cast it to one of {', '.join(sorted(map(str, _ARROW.values())))}")
    return _TYPES[str(kind)]

"""Which fields of a footer are read, and the records they go to."""

from __future__ import annotations

import numpy as np

from windrow.parquet import chunk as c
from windrow.parquet.grammar import (
    Grammar,
    Struct,
    Table,
    bytes_,
    integer,
    list_fields,
    mark,
    mask,
    negated,
    rows,
    span_fields,
    struct,
    truth,
)

HAS_CREATED_BY, HAS_COLUMN_ORDERS, HAS_ENCRYPTION = 1, 2, 4
HAS_SORTING = 1
HAS_VALUE = 1
HAS_PHYSICAL_TYPE, HAS_TYPE_LENGTH, HAS_REPETITION, HAS_NUM_CHILDREN = 1, 2, 4, 8
HAS_CONVERTED_TYPE, HAS_SCALE, HAS_PRECISION, HAS_FIELD_ID, HAS_LOGICAL_TYPE = 16, 32, 64, 128, 256

LOGICAL_TYPES = {
    1: "STRING",
    2: "MAP",
    3: "LIST",
    4: "ENUM",
    5: "DECIMAL",
    6: "DATE",
    7: "TIME",
    8: "TIMESTAMP",
    10: "INTEGER",
    11: "UNKNOWN",
    12: "JSON",
    13: "BSON",
    14: "UUID",
    15: "FLOAT16",
    16: "VARIANT",
    17: "GEOMETRY",
    18: "GEOGRAPHY",
}
"""The members of the LogicalType union by field id."""

_PARAMETERS = {5: "DecimalType", 7: "TimeType", 8: "TimeType", 10: "IntType"}


_FILE = np.dtype(
    [
        ("version", "<i4"),
        ("flags", "<u4"),
        ("num_rows", "<i8"),
        *list_fields("schema"),
        *list_fields("row_groups"),
        *list_fields("key_values"),
        *list_fields("column_orders"),
        *span_fields("created_by"),
    ]
)
_ELEMENT = np.dtype(
    [
        ("place", "<i8"),
        *span_fields("name"),
        ("field_id", "<i4"),
        ("flags", "<u4"),
        ("physical_type", "<i4"),
        ("type_length", "<i4"),
        ("repetition", "<i4"),
        ("num_children", "<i4"),
        ("converted_type", "<i4"),
        ("scale", "<i4"),
        ("precision", "<i4"),
        ("logical_type", "<i4"),
        ("logical_scale", "<i4"),
        ("logical_precision", "<i4"),
        ("unit", "<i4"),
        ("is_adjusted_to_utc", "<i4"),
        ("bit_width", "<i4"),
        ("is_signed", "<i4"),
    ]
)
_GROUP = np.dtype(
    [
        ("place", "<i8"),
        ("flags", "<u8"),
        ("total_byte_size", "<i8"),
        ("num_rows", "<i8"),
        *list_fields("columns"),
        *list_fields("sorting"),
    ]
)
_KEY_VALUE = np.dtype([("flags", "<u8"), *span_fields("key"), *span_fields("value")])
_SORTING = np.dtype([("flags", "<u4"), ("column", "<i4"), ("descending", "<i4"), ("nulls_first", "<i4")])
_ORDER = np.dtype([("flags", "<u4"), ("order", "<i4")])

_STRUCTS = (
    Struct(
        "FileMetaData",
        "file",
        {
            1: integer("version"),
            2: rows("schema", "SchemaElement"),
            3: integer("num_rows"),
            4: rows("row_groups", "RowGroup"),
            5: rows("key_values", "KeyValue"),
            6: bytes_("created_by", flag=HAS_CREATED_BY),
            7: rows("column_orders", "ColumnOrder", flag=HAS_COLUMN_ORDERS),
            8: mark("encryption_algorithm", flag=HAS_ENCRYPTION),
        },
        required=(1, 2, 3, 4),
    ),
    Struct(
        "SchemaElement",
        "schema",
        {
            1: integer("physical_type", flag=HAS_PHYSICAL_TYPE),
            2: integer("type_length", flag=HAS_TYPE_LENGTH),
            3: integer("repetition", flag=HAS_REPETITION),
            4: bytes_("name"),
            5: integer("num_children", flag=HAS_NUM_CHILDREN),
            6: integer("converted_type", flag=HAS_CONVERTED_TYPE),
            7: integer("scale", flag=HAS_SCALE),
            8: integer("precision", flag=HAS_PRECISION),
            9: integer("field_id", flag=HAS_FIELD_ID),
            10: struct("logical_type", "LogicalType", flag=HAS_LOGICAL_TYPE),
        },
        required=(4,),
    ),
    Struct(
        "LogicalType",
        "schema",
        {
            tag: struct(name, _PARAMETERS.get(tag, "NoParameters"), tag="logical_type")
            for tag, name in LOGICAL_TYPES.items()
        },
    ),
    Struct("NoParameters", "schema"),
    Struct("DecimalType", "schema", {1: integer("logical_scale"), 2: integer("logical_precision")}),
    Struct("TimeType", "schema", {1: truth("is_adjusted_to_utc"), 2: struct("unit", "TimeUnit")}),
    Struct("TimeUnit", "schema", {unit: struct("unit", "NoParameters", tag="unit") for unit in (1, 2, 3)}),
    Struct("IntType", "schema", {1: integer("bit_width"), 2: truth("is_signed")}),
    Struct(
        "RowGroup",
        "groups",
        {
            1: rows("columns", "ColumnChunk"),
            2: integer("total_byte_size"),
            3: integer("num_rows"),
            4: rows("sorting", "SortingColumn", flag=HAS_SORTING),
        },
        required=(1, 2, 3),
    ),
    Struct(
        "ColumnChunk",
        "chunks",
        {
            1: mark("file_path", flag=c.HAS_FILE_PATH),
            2: integer("file_offset"),
            3: struct("meta_data", "ColumnMetaData", flag=c.HAS_META),
            4: integer("offset_index_offset", flag=c.HAS_OFFSET_INDEX),
            5: integer("offset_index_length"),
            6: integer("column_index_offset", flag=c.HAS_COLUMN_INDEX),
            7: integer("column_index_length"),
            8: mark("crypto_metadata", flag=c.ENCRYPTED),
            9: mark("encrypted_column_metadata", flag=c.ENCRYPTED),
        },
        required=(2, 3),
    ),
    Struct(
        "ColumnMetaData",
        "chunks",
        {
            1: integer("physical_type"),
            2: mask("encodings"),
            3: mark("path_in_schema"),
            4: integer("codec"),
            5: integer("num_values"),
            6: integer("total_uncompressed_size"),
            7: integer("total_compressed_size"),
            9: integer("data_page_offset"),
            10: integer("index_page_offset", flag=c.HAS_INDEX_OFFSET),
            11: integer("dictionary_page_offset", flag=c.HAS_DICTIONARY_OFFSET),
            12: struct("statistics", "Statistics", flag=c.HAS_STATISTICS),
            14: integer("bloom_offset", flag=c.HAS_BLOOM_OFFSET),
            15: integer("bloom_length", flag=c.HAS_BLOOM_LENGTH),
        },
        required=(1, 2, 3, 4, 5, 6, 7, 9),
    ),
    Struct(
        "Statistics",
        "chunks",
        {
            1: bytes_("old_max", flag=c.HAS_OLD_MAX),
            2: bytes_("old_min", flag=c.HAS_OLD_MIN),
            3: integer("null_count", flag=c.HAS_NULL_COUNT),
            4: integer("distinct_count", flag=c.HAS_DISTINCT_COUNT),
            5: bytes_("max", flag=c.HAS_MAX_VALUE),
            6: bytes_("min", flag=c.HAS_MIN_VALUE),
            7: negated("is_max_value_exact", flag=c.MAX_EXACT_FALSE),
            8: negated("is_min_value_exact", flag=c.MIN_EXACT_FALSE),
        },
    ),
    Struct("KeyValue", "key_values", {1: bytes_("key"), 2: bytes_("value", flag=HAS_VALUE)}, required=(1,)),
    Struct(
        "SortingColumn",
        "sorting",
        {1: integer("column"), 2: truth("descending"), 3: truth("nulls_first")},
        required=(1, 2, 3),
    ),
    Struct("ColumnOrder", "orders", {order: struct("order", "Order", tag="order") for order in range(1, 32)}),
    Struct("Order", "orders"),
)

FOOTER_GRAMMAR = Grammar(
    "footer",
    _STRUCTS,
    {
        "file": Table(_FILE, 1),
        "schema": Table(_ELEMENT, 256),
        "groups": Table(_GROUP, 512),
        "chunks": Table(c.FOOTER_CHUNK, 64),
        "key_values": Table(_KEY_VALUE, 256),
        "sorting": Table(_SORTING, 4096),
        "orders": Table(_ORDER, 256),
    },
)
"""`FileMetaData`, the metadata of a Parquet file."""

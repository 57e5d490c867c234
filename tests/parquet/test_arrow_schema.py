"""A file stores an Arrow schema where the Parquet schema does not say it all, and pyarrow reads the same either way."""

from __future__ import annotations

import base64
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.parquet.arrow_schema import ARROW_SCHEMA, arrow_schema_pairs
from windrow.parquet.file_writer import FileSchema

PLAIN = [
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal256(50, 2)),
    *(pa.string(), pa.binary(), pa.binary(4), pa.date32(), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
    *(pa.timestamp("s"), pa.time32("s"), pa.date64()),  # which Parquet does not have, and no reader gets
    *(pa.list_(pa.int64()), pa.map_(pa.string(), pa.string()), pa.struct([("a", pa.int64())])),
]
TOLD = [
    *(pa.large_string(), pa.large_binary(), pa.string_view(), pa.duration("us"), pa.decimal32(5, 1)),
    *(pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "+00:00")),
    *(pa.large_list(pa.int64()), pa.list_(pa.int64(), 2), pa.dictionary(pa.int32(), pa.string())),
    *(pa.uuid(), pa.json_(), pa.struct([("a", pa.large_string())])),
]


def described(kind: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    times = pa.field("timestamp", pa.timestamp("us", "UTC"), metadata={"PARQUET:field_id": "1"})
    return pa.schema([times, pa.field("value", kind, nullable, {"PARQUET:field_id": "2"})])


def read_back(schema: pa.Schema, pairs: dict[str, str]) -> pa.Schema:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        writer.add_key_value_metadata(pairs)
    return pq.read_schema(sink).remove_metadata()


def whole(schema: pa.Schema) -> dict[str, str]:
    return {ARROW_SCHEMA: base64.b64encode(schema.serialize()).decode()}


@pytest.mark.parametrize("kind", PLAIN, ids=str)
def test_a_plain_column_needs_no_arrow_schema(kind):
    assert arrow_schema_pairs(described(kind)) == {}


@pytest.mark.parametrize("kind", TOLD, ids=str)
def test_a_column_that_parquet_cannot_tell_has_one_without_field_ids(kind):
    (stored,) = arrow_schema_pairs(described(kind)).values()
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
    assert schema.types == described(kind).types
    assert not schema.field("value").metadata


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("kind", PLAIN + TOLD, ids=str)
def test_pyarrow_reads_types_names_and_field_ids_as_from_the_whole_schema(kind, nullable):
    schema = described(kind, nullable=nullable)
    assert read_back(schema, arrow_schema_pairs(schema)).serialize() == read_back(schema, whole(schema)).serialize()


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string()], ids=str)
def test_what_a_field_says_besides_its_id_stays(kind):
    field = described(kind).field("value").with_metadata({"PARQUET:field_id": "2", "unit": "bytes"})
    schema = pa.schema([described(kind).field("timestamp"), field])
    found = read_back(schema, arrow_schema_pairs(schema)).field("value")
    assert found.metadata == {b"PARQUET:field_id": b"2", b"unit": b"bytes"}


def test_schemas_that_differ_by_field_ids_alone_are_told_apart():
    one, other = (pa.schema([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": each})]) for each in "12")
    assert FileSchema(one, "").footer.leaves != FileSchema(other, "").footer.leaves


@pytest.mark.parametrize("kind", [pa.int64(), pa.large_string()], ids=str)
def test_files_of_our_own_pages_store_the_same(kind):
    assert FileSchema(described(kind), "").footer.key_value == arrow_schema_pairs(described(kind))

from __future__ import annotations

import json
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

from windrow.errors import Damaged, Incompatible
from windrow.parquet import chunk as c
from windrow.parquet import thrift as t
from windrow.parquet.footer import ParquetFooter, footer_length, parse_footer, read_footer
from windrow.parquet.schema import PhysicalType

CODECS = ["UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4"]
LOGICAL = {"Int": "INTEGER", "None": None, "Null": "UNKNOWN"}
PACKED = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d", "BOOLEAN": "<?"}


@pytest.fixture
def theirs(parquet_file) -> pq.FileMetaData:
    return pq.read_metadata(parquet_file)


@pytest.fixture
def ours(parquet_file) -> ParquetFooter:
    return read_footer(parquet_file.read_bytes(), name=parquet_file.name)


def columns(theirs: pq.FileMetaData):
    for group in range(theirs.num_row_groups):
        for column in range(theirs.num_columns):
            yield group, column, theirs.row_group(group).column(column)


def test_a_footer_says_of_the_file_what_pyarrow_says(ours, theirs):
    assert ours.created_by == (theirs.created_by or None)
    assert ours.version == (1 if theirs.format_version == "1.0" else 2)
    assert ours.num_rows == theirs.num_rows
    assert ours.chunks.shape == (theirs.num_row_groups, theirs.num_columns)
    expected = {key.decode(): value.decode() for key, value in (theirs.metadata or {}).items()}
    assert {key: value or "" for key, value in ours.key_value.items()} == expected


def test_a_footer_says_of_the_row_groups_what_pyarrow_says(ours, theirs):
    groups = [theirs.row_group(group) for group in range(theirs.num_row_groups)]
    assert ours.row_group_rows.tolist() == [group.num_rows for group in groups]
    assert ours.row_group_bytes.tolist() == [group.total_byte_size for group in groups]
    expected = [
        [(column.column_index, column.descending, column.nulls_first) for column in group.sorting_columns]
        for group in groups
    ]
    assert [[tuple(column) for column in sorting or ()] for sorting in ours.row_group_sorting] == expected


def test_a_footer_says_of_the_leaves_what_pyarrow_says(ours, theirs):
    assert [leaf.index for leaf in ours.leaves] == list(range(theirs.num_columns))
    for leaf in ours.leaves:
        column = theirs.schema.column(leaf.index)
        element = leaf.element
        assert ".".join(leaf.path) == column.path
        assert leaf.root in ours.schema
        assert leaf.path[0] == leaf.root.name
        assert element.name == column.name
        assert element.physical_type.name == column.physical_type
        assert leaf.max_definition == column.max_definition_level
        assert leaf.max_repetition == column.max_repetition_level
        if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
            assert element.type_length == column.length


def test_a_footer_understands_logical_types_as_pyarrow_does(ours, theirs):
    for leaf in ours.leaves:
        expected = json.loads(theirs.schema.column(leaf.index).logical_type.to_json())
        found = leaf.element.meaning
        kind = LOGICAL.get(expected["Type"], expected["Type"].upper())
        if found is None or leaf.element.logical_type is None:
            # What is said in the older way, or is a plain number, pyarrow says in its own way.
            continue
        assert found.name == kind
        assert (found.precision, found.scale) == (expected.get("precision"), expected.get("scale"))
        assert (found.bit_width, found.is_signed) == (expected.get("bitWidth"), expected.get("isSigned"))
        assert (found.unit or "").lower() == {"milliseconds": "millis", "microseconds": "micros"}.get(
            expected.get("timeUnit", ""), expected.get("timeUnit", "")[:5]
        )
        assert found.is_adjusted_to_utc == expected.get("isAdjustedToUTC")


def test_a_footer_says_of_the_chunks_what_pyarrow_says(ours, theirs):
    for group, column, expected in columns(theirs):
        found = ours.chunks[group, column]
        flags = int(found["flags"])
        assert flags & c.HAS_META
        assert not flags & (c.ENCRYPTED | c.UNKNOWN_ENCODING | c.NAN_FREE)
        assert PhysicalType(found["physical_type"]).name == expected.physical_type
        assert CODECS[found["codec"]] == expected.compression
        assert {e.name for e in c.Encoding if found["encodings"] >> e & 1} == set(expected.encodings)
        for name in (
            "num_values",
            "total_uncompressed_size",
            "total_compressed_size",
            "data_page_offset",
            "file_offset",
        ):
            assert found[name] == getattr(expected, name), name
        assert bool(flags & c.HAS_FILE_PATH) == bool(expected.file_path)
        assert bool(flags & c.HAS_OFFSET_INDEX) == expected.has_offset_index
        assert bool(flags & c.HAS_COLUMN_INDEX) == expected.has_column_index
        assert (found["bloom_offset"] if flags & c.HAS_BLOOM_OFFSET else None) == expected.bloom_filter_offset
        assert (found["bloom_length"] if flags & c.HAS_BLOOM_LENGTH else None) == expected.bloom_filter_length
        if expected.has_dictionary_page:
            assert found["dictionary_page_offset"] == expected.dictionary_page_offset


def test_a_footer_has_the_statistics_that_pyarrow_believes(ours, theirs):
    for group, column, expected in columns(theirs):
        if not expected.is_stats_set:
            continue
        found, statistics = ours.chunks[group, column], expected.statistics
        flags = int(found["flags"])
        assert flags & c.HAS_STATISTICS
        if statistics.has_null_count:
            assert flags & c.HAS_NULL_COUNT
            assert found["null_count"] == statistics.null_count
        if statistics.has_distinct_count:
            assert flags & c.HAS_DISTINCT_COUNT
            assert found["distinct_count"] == statistics.distinct_count
        if statistics.has_min_max:
            kind = "" if flags & c.HAS_MIN_VALUE else "old_"
            assert bound(ours, found, f"{kind}min") == raw(statistics.min_raw, expected.physical_type)
            assert bound(ours, found, f"{kind}max") == raw(statistics.max_raw, expected.physical_type)


def bound(footer: ParquetFooter, chunk: np.void, name: str) -> bytes:
    return footer.metadata[chunk[f"{name}_offset"] :][: chunk[f"{name}_length"]]


def raw(value: object, physical_type: str) -> bytes:
    return struct.pack(PACKED[physical_type], value) if physical_type in PACKED else value


def test_schema_and_column_orders_can_be_copied_as_they_stand(ours):
    start, end = ours.schema_span
    assert ours.schema_bytes == ours.metadata[start:end]
    places = ours.element_positions
    assert len(places) == len(ours.schema) + 1
    assert places[-1] == end
    elements = [ours.metadata[places[i] : places[i + 1]] for i in range(len(ours.schema))]
    assert b"".join(elements) == ours.schema_bytes[-sum(map(len, elements)) :]
    for element, copied in zip(ours.schema, elements, strict=True):
        assert element.name.encode() in copied
    if ours.column_orders is None:
        assert ours.column_orders_bytes is None
    else:
        assert len(ours.column_orders) == len(ours.leaves)
        assert set(ours.column_orders) <= {1, 2}
        assert ours.column_orders_bytes == ours.metadata[slice(*ours.column_orders_span)]
        assert ours.column_orders_bytes.endswith(b"\x1c\x00\x00" * (len(ours.leaves) > 0))


def test_the_length_of_a_footer_is_told_by_the_last_eight_bytes(parquet_file):
    data = parquet_file.read_bytes()
    length = footer_length(data[-8:], "file")
    from_tail, from_all = read_footer(data[-length:], name="file"), read_footer(data, name="file")
    assert from_tail.metadata == from_all.metadata == data[-length:-8]


def test_truncated_bounds_are_told_apart(data_dir):
    footer = read_footer((data_dir / "parquet-testing/binary_truncated_min_max.parquet").read_bytes(), name="file")
    exact = {
        leaf.path[0]: (not chunk["flags"] & c.MIN_EXACT_FALSE, not chunk["flags"] & c.MAX_EXACT_FALSE)
        for leaf, chunk in zip(footer.leaves, footer.chunks[0], strict=True)
    }
    assert exact["utf8_full_truncation"] == (False, False)
    assert exact["utf8_partial_truncation"] == (False, True)
    assert exact["utf8_no_truncation"] == (True, True)


def test_a_value_of_an_unexpected_type_is_passed_over(data_dir):
    # Field 15 of its column metadata is of a draft of the format, and a list.
    footer = read_footer((data_dir / "parquet-testing/dict-page-offset-zero.parquet").read_bytes(), name="file")
    assert not footer.chunks[0, 0]["flags"] & c.HAS_BLOOM_LENGTH
    assert footer.chunks[0, 0]["dictionary_page_offset"] == 0
    assert c.chunk_starts(footer.chunks)[0, 0] == footer.chunks[0, 0]["data_page_offset"] == 4


def test_an_unknown_physical_type_is_refused_by_name(data_dir):
    data = (data_dir / "parquet-testing/PARQUET-1481.parquet").read_bytes()
    with pytest.raises(Damaged, match="broken.parquet: schema element 'Handle' has the unknown physical type -7"):
        read_footer(data, name="broken.parquet")


@pytest.mark.parametrize(
    ("tail", "error", "text"),
    [
        (b"", Damaged, "x.parquet: ends with b'' and not with b'PAR1'"),
        (b"PAR1", Damaged, "x.parquet: ends with"),
        (b"\0\0\0\0PAR2", Damaged, "x.parquet: ends with b'PAR2'"),
        (b"\0\0\0\0PARE", Incompatible, "x.parquet: the footer is encrypted"),
        (b"\x05\0\0\0PAR1", Damaged, "x.parquet: the footer has 13 bytes, of which 8 are here"),
        (b"\0\0\0\0PAR1", Damaged, "x.parquet: footer, FileMetaData after byte 0: the bytes end"),
        (b"\0\1\0\0\0PAR1", Damaged, "x.parquet: footer, FileMetaData after byte 0: required fields are missing"),
    ],
)
def test_what_is_no_footer_is_refused(tail, error, text):
    with pytest.raises(error, match=text):
        read_footer(tail, name="x.parquet")


def test_every_cut_of_a_footer_is_refused(data_dir):
    metadata = read_footer((data_dir / "golden/parquet/x_qdb_a.parquet").read_bytes(), name="file").metadata
    for length in range(len(metadata)):
        with pytest.raises(Damaged):
            parse_footer(metadata[:length])


def minimal(*more: t.Field, groups: list[bytes] = (), columns: int = 0) -> bytes:
    """A footer of `columns` required INT32 columns named c."""
    root = t.struct(t.binary(4, b"root"), t.i32(5, columns))
    elements = [root, *[t.struct(t.i32(1, 1), t.i32(3, 0), t.binary(4, b"c"))] * columns]
    return t.struct(t.i32(1, 2), t.list_of(2, 12, elements), t.i64(3, 0), t.list_of(4, 12, groups), *more)


def chunk(*more: t.Field, physical_type: int = 1) -> bytes:
    """A column chunk whose metadata has all required fields."""
    numbers = [t.i32(4, 0), t.i64(5, 0), t.i64(6, 0), t.i64(7, 0), t.i64(9, 4)]
    metadata = t.struct(t.i32(1, physical_type), t.list_of(2, 5, []), t.list_of(3, 8, []), *numbers)
    return t.struct(t.i64(2, 0), t.nested(3, metadata), *more)


def row_group(*chunks: bytes) -> bytes:
    return t.struct(t.list_of(1, 12, chunks), t.i64(2, 0), t.i64(3, 0))


def test_a_footer_without_optional_parts_is_read():
    footer = parse_footer(minimal(groups=[row_group(chunk())], columns=1))
    assert (footer.created_by, footer.key_value, footer.column_orders) == (None, {}, None)
    assert footer.row_group_sorting == (None,)
    assert footer.chunks[0, 0]["flags"] == c.HAS_META


def test_text_that_is_no_utf8_is_kept():
    pairs = [t.struct(t.binary(1, b"\xff"), t.binary(2, b"\xfe")), t.struct(t.binary(1, b"key"))]
    footer = parse_footer(minimal(t.list_of(5, 12, pairs), t.binary(6, b"w\xfcriter")))
    assert footer.key_value == {"\udcff": "\udcfe", "key": None}
    assert footer.created_by == "w\udcfcriter"


def test_encodings_that_nobody_knows_are_flagged_and_dropped():
    numbers = [t.i32(4, 0), t.i64(5, 0), t.i64(6, 0), t.i64(7, 0), t.i64(9, 4)]
    encodings = [t.zigzag(number) for number in (0, 9, 12, 4711, -1)]
    metadata = t.struct(t.i32(1, 1), t.list_of(2, 5, encodings), t.list_of(3, 8, []), *numbers)
    footer = parse_footer(minimal(groups=[row_group(t.struct(t.i64(2, 0), t.nested(3, metadata)))], columns=1))
    assert footer.chunks[0, 0]["encodings"] == 1 << 0 | 1 << 9
    assert footer.chunks[0, 0]["flags"] & c.UNKNOWN_ENCODING


CONTRADICTIONS = {
    "row group 0 has not the 1 columns of the schema": minimal(groups=[row_group()], columns=1),
    "row group 1 has not the 1 columns": minimal(groups=[row_group(chunk()), row_group(chunk(), chunk())], columns=1),
    "row group 0, column 'c' has another physical type": minimal(groups=[row_group(chunk(physical_type=2))], columns=1),
    "ColumnChunk after byte 27: required fields": minimal(groups=[row_group(t.struct(*[t.i64(2, 0)] * 20))], columns=1),
    "RowGroup.columns after byte 25: the announced length": minimal(groups=[row_group(t.struct())], columns=1),
    "FileMetaData.row_groups after byte 17: the list stands there twice": minimal(t.verbatim(4, b"\x0c")),
    "FileMetaData.key_values after byte 17: the value has a thrift type": minimal(t.verbatim(5, b"\x16\x00\x00\x00")),
    "FileMetaData.key_values after byte 17: the announced length": minimal(t.verbatim(5, b"\xfc\xff\xff\x03")),
    "footer, 2 column_orders for 0 columns": minimal(t.list_of(7, 12, [t.struct(), t.struct()])),
    "FileMetaData.version after byte 0: a number does not fit in 32 bits": t.struct(t.i64(1, 1 << 31)),
    "FileMetaData.num_rows after byte 0: a number has more than 64 bits": t.fields(
        t.Field(3, 6, b"\xff" * 9 + b"\x02")
    ),
    "FileMetaData.created_by after byte 0: the announced length": t.fields(t.Field(6, 8, b"\x7f")),
    "FileMetaData after byte 0: the bytes end": t.fields(t.Field(20, 7, b"1234567")),
    "a value that is passed over after byte 24: the values are nested": t.fields(t.Field(20, 12, b"\x1c" * 30)),
}


@pytest.mark.parametrize("text", CONTRADICTIONS)
def test_a_footer_that_contradicts_itself_is_refused(text):
    with pytest.raises(Damaged, match=f"^x.parquet: .*{text}"):
        parse_footer(CONTRADICTIONS[text], name="x.parquet")


def test_a_column_name_that_is_no_text_is_refused():
    metadata = minimal(groups=[row_group(chunk())], columns=1).replace(b"\x01c", b"\x01\xff")
    with pytest.raises(Damaged, match="the column name at byte 19 is no UTF-8"):
        parse_footer(metadata)


@pytest.mark.parametrize(
    "field", [t.nested(8, t.struct()), t.binary(9, b"secret")], ids=["crypto", "encrypted metadata"]
)
def test_encrypted_columns_are_refused(field):
    with pytest.raises(Incompatible, match="columns are encrypted"):
        parse_footer(minimal(groups=[row_group(chunk(field))], columns=1))


def test_a_signed_plain_footer_of_an_encrypted_file_is_refused():
    with pytest.raises(Incompatible, match="columns are encrypted"):
        parse_footer(minimal(t.nested(8, t.struct(t.nested(1, t.struct())))))


class PlainKms(pe.KmsClient):
    """A key service that wraps keys in nothing."""

    def __init__(self, _config):
        super().__init__()

    def wrap_key(self, key_bytes, master_key_identifier):
        return key_bytes.hex()

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return bytes.fromhex(wrapped_key)


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_files_that_pyarrow_encrypts_are_refused(tmp_path, plaintext_footer):
    config = pe.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": ["a"]}, plaintext_footer=plaintext_footer, double_wrapping=False
    )
    properties = pe.CryptoFactory(PlainKms).file_encryption_properties(pe.KmsConnectionConfig(), config)
    path = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"a": [1], "b": [2]}), path, encryption_properties=properties)
    with pytest.raises(Incompatible, match=r"secret\.parquet: .* encrypted"):
        read_footer(path.read_bytes(), name=path.name)

"""The records of a sidecar are byte for byte those of the format's description."""

from __future__ import annotations

import pytest

from windrow.parquet.codecs import Codec
from windrow.sidecar import layout

RECORDS = {
    "HEADER": (
        32,
        "committed_size 0 feature_flags 8 designated_timestamp 16 sorting_column_count 20 column_count 24 reserved 28",
    ),
    "DESCRIPTOR": (
        32,
        """name_offset 0 id 8 type 12 flags 16 fixed_byte_len 20 name_length 24
        physical_type 28 max_rep_level 29 max_def_level 30 reserved 31""",
    ),
    "CHUNK": (
        64,
        """codec 0 encodings 1 stat_flags 2 stat_sizes 3 reserved 4 num_values 8 byte_range_start 16
        total_compressed 24 null_count 32 distinct_count 40 min_stat 48 max_stat 56""",
    ),
    "FOOTER": (
        40,
        """parquet_footer_offset 0 parquet_footer_length 8 row_group_count 12 unused_bytes 16 previous_size 24
        feature_flags 32""",
    ),
    "EXTERNAL_BLOOM": (16, "offset 0 length 8"),
    "PAGES": (64, "data_page_offset 0 uncompressed_size 8 bloom_offset 32 encodings 52 flags 56"),
    "GRANULES": (16, "granules 0 keys 4 key_bytes 8 nested_columns 12"),
}


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_has_its_size_and_its_fields_where_they_belong(record: str) -> None:
    dtype = getattr(layout, record)
    size, places = RECORDS[record]
    words = places.split()
    assert dtype.itemsize == size
    assert {name: dtype.fields[name][1] for name in words[::2]} == dict(
        zip(words[::2], map(int, words[1::2]), strict=True)
    )


NUMBERS = {
    "Feature": "BLOOM_FILTERS 1 BLOOM_FILTERS_EXTERNAL 2 SORTING_IS_DTS_ASC 4",
    "ColumnFlag": "LOCAL_KEY_IS_GLOBAL 1 IS_ASCII 2 DESCENDING 16",
    "StatFlag": "MIN_PRESENT 1 MIN_INLINED 2 MIN_EXACT 4 MAX_PRESENT 8 MAX_INLINED 16 MAX_EXACT 32 "
    "DISTINCT_COUNT_PRESENT 64 NULL_COUNT_PRESENT 128",
    "Codec": "UNCOMPRESSED 0 SNAPPY 1 GZIP 2 LZO 3 BROTLI 4 LZ4 5 ZSTD 6 LZ4_RAW 7",
    "EncodingBit": "PLAIN 1 RLE_DICTIONARY 2 DELTA_BINARY_PACKED 4 DELTA_LENGTH_BYTE_ARRAY 8 DELTA_BYTE_ARRAY 16 "
    "BYTE_STREAM_SPLIT 32",
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_flags_and_codes_have_the_numbers_of_the_format(kind: str) -> None:
    words = NUMBERS[kind].split()
    found = Codec if kind == "Codec" else getattr(layout, kind)
    assert {name: found[name].value for name in words[::2]} == dict(zip(words[::2], map(int, words[1::2]), strict=True))


@pytest.mark.parametrize("record", ["HEADER", "DESCRIPTOR", "FOOTER"])
def test_the_struct_of_a_record_has_the_same_size(record: str) -> None:
    assert layout.as_struct(getattr(layout, record)).size == getattr(layout, record).itemsize


def test_our_own_features_are_optional_so_that_other_readers_pass_over_them() -> None:
    assert layout.Feature.WINDROW_SCHEMA == layout.FooterFeature.WINDROW_SNAPSHOT == 1 << 31
    assert layout.KNOWN_FEATURES | layout.KNOWN_FOOTER_FEATURES <= layout.OPTIONAL_BITS


@pytest.mark.parametrize(("offset", "aligned"), [(0, 0), (1, 8), (8, 8), (138, 144)])
def test_blocks_start_at_multiples_of_eight(offset: int, aligned: int) -> None:
    assert layout.aligned(offset) == aligned


def test_the_smallest_file_has_eighty_bytes() -> None:
    assert layout.SMALLEST_FILE == 80

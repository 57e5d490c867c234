"""Every byte of a `_pm` sidecar: record dtypes, flags, codes and limits, in one place.

A file is a header (fixed part, one descriptor per column, sorting columns, names, feature sections), then one block
per row group (row count, one 64-byte chunk record per column, out-of-line bytes), then a footer (fixed part, one
entry per row group, feature sections, CRC) and the 4-byte trailer that holds the footer's length. An update appends
blocks and a further footer and trailer. All numbers are little-endian; footers may start at any byte.

Blocks start at multiples of 8 and footers store their offset divided by 8. Seen as an array of 64-bit words, a stored
entry is therefore the index of the block's first word, and every field of every chunk is a fixed number of words away.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

import numpy as np

HEADER = np.dtype(
    [
        ("committed_size", "<u8"),
        ("feature_flags", "<u8"),
        ("designated_timestamp", "<i4"),
        ("sorting_column_count", "<u4"),
        ("column_count", "<u4"),
        ("reserved", "<u4"),
    ]
)
"""The fixed part of the header. `committed_size` is the commit boundary and is not covered by any CRC."""

DESCRIPTOR = np.dtype(
    [
        ("name_offset", "<u8"),
        ("id", "<i4"),
        ("type", "<i4"),
        ("flags", "<i4"),
        ("fixed_byte_len", "<i4"),
        ("name_length", "<u4"),
        ("physical_type", "u1"),
        ("max_rep_level", "u1"),
        ("max_def_level", "u1"),
        ("reserved", "u1"),
    ]
)
"""One column, for all row groups. `name_offset` counts from the start of the file."""

CHUNK = np.dtype(
    [
        ("codec", "u1"),
        ("encodings", "u1"),
        ("stat_flags", "u1"),
        ("stat_sizes", "u1"),
        ("reserved", "<u4"),
        ("num_values", "<u8"),
        ("byte_range_start", "<u8"),
        ("total_compressed", "<u8"),
        ("null_count", "<u8"),
        ("distinct_count", "<u8"),
        ("min_stat", "<u8"),
        ("max_stat", "<u8"),
    ]
)
"""One column chunk of one row group."""

FOOTER = np.dtype(
    [
        ("parquet_footer_offset", "<u8"),
        ("parquet_footer_length", "<u4"),
        ("row_group_count", "<u4"),
        ("unused_bytes", "<u8"),
        ("previous_size", "<u8"),
        ("feature_flags", "<u8"),
    ]
)
"""The fixed part of a footer. `previous_size` is the committed size of the snapshot before, 0 for the first one."""

EXTERNAL_BLOOM = np.dtype([("offset", "<u8"), ("length", "<u8")])
"""A slot of the bloom matrix when the filters stay in the Parquet file; (0, 0) is none."""

PAGES = np.dtype(
    [
        ("data_page_offset", "<i8"),
        ("uncompressed_size", "<i8"),
        ("offset_index_offset", "<i8"),
        ("column_index_offset", "<i8"),
        ("bloom_offset", "<i8"),
        ("offset_index_length", "<i4"),
        ("column_index_length", "<i4"),
        ("bloom_length", "<i4"),
        ("encodings", "<u4"),
        ("flags", "<u4"),
        ("reserved", "<u4"),
    ]
)
"""What Windrow adds to a chunk: what a Parquet footer says and `_pm` has no field for. Offset 0 is none."""

GRANULES = np.dtype([("granules", "<u4"), ("keys", "<u4"), ("key_bytes", "<u4"), ("nested_columns", "<u4")])
"""The start of a row group's granule index."""

_STRUCT_CODES = {"<u8": "Q", "<i8": "q", "<u4": "I", "<i4": "i", "|u1": "B"}


def as_struct(dtype: np.dtype[np.void]) -> struct.Struct:
    """The same record for `struct`: reading one record into Python numbers is several times faster that way."""
    return struct.Struct("<" + "".join(_STRUCT_CODES[dtype[name].str] for name in dtype.names or ()))


HEADER_STRUCT = as_struct(HEADER)
DESCRIPTOR_STRUCT = as_struct(DESCRIPTOR)
FOOTER_STRUCT = as_struct(FOOTER)
U32 = struct.Struct("<I")
I32 = struct.Struct("<i")
U64 = struct.Struct("<Q")
I64 = struct.Struct("<q")
U32_PAIR = struct.Struct("<II")
NAME_PLACE = struct.Struct("<Q16xI")
"""Offset and length of the name alone, from a descriptor."""

HEADER_SIZE = HEADER.itemsize
DESCRIPTOR_SIZE = DESCRIPTOR.itemsize
CHUNK_SIZE = CHUNK.itemsize
FOOTER_SIZE = FOOTER.itemsize
PAGES_SIZE = PAGES.itemsize
ENTRY_SIZE = 4
SORTING_SIZE = 4
CRC_SIZE = 4
TRAILER_SIZE = 4
ROWS_SIZE = 8
WORD = 8
CRC_START = 8
"""CRCs cover [8, CRC field): everything but the committed size, which is patched last."""

CHUNK_WORDS = CHUNK_SIZE // WORD
PAGES_WORDS = PAGES_SIZE // WORD
SMALLEST_FOOTER = FOOTER_SIZE + CRC_SIZE
SMALLEST_FILE = HEADER_SIZE + SMALLEST_FOOTER + TRAILER_SIZE
PARQUET_TAIL = 8
"""A Parquet file ends 8 bytes after its footer: the footer's length and the magic."""

BOUND_WORDS = (0, 6, 7)
"""The words of a chunk record that its bounds are in: flags and sizes, minimum, maximum."""
ORDER_SIZE = 1
NAME_HASH_SIZE = 4
"""Our section of the header begins with an order and a hash of the name for every column."""
WIDE_BLOCK = 4096
MANY_ROW_GROUPS = 8

LARGEST_BLOCK_OFFSET = (2**32 - 1) * WORD
LONGEST_CHAIN = 1_000_000
LONGEST_BOUND = 2**16 - 1
LONGEST_INLINE = 8
LARGEST_SCRATCHPAD = 1 << 20
NONE = -1
"""The value of a designated timestamp, column id, squash tracker or sequencer transaction that is not set."""


class Feature(IntEnum):
    """Bits of the header's FEATURE_FLAGS."""

    BLOOM_FILTERS = 1 << 0
    BLOOM_FILTERS_EXTERNAL = 1 << 1
    SORTING_IS_DTS_ASC = 1 << 2
    SQUASH_TRACKER = 1 << 3
    WINDROW_SCHEMA = 1 << 31


class FooterFeature(IntEnum):
    """Bits of a footer's FOOTER_FEATURE_FLAGS."""

    SEQ_TXN = 1 << 0
    SCRATCHPAD = 1 << 1
    WINDROW_SNAPSHOT = 1 << 31


OPTIONAL_BITS = 2**32 - 1
KNOWN_FEATURES = sum(Feature)
KNOWN_FOOTER_FEATURES = sum(FooterFeature)


class ColumnFlag(IntEnum):
    """Bits of a descriptor's FLAGS; bits 2 and 3 are the field repetition."""

    LOCAL_KEY_IS_GLOBAL = 1 << 0
    IS_ASCII = 1 << 1
    DESCENDING = 1 << 4


REPETITION_SHIFT = 2
REPETITION_MASK = 3 << REPETITION_SHIFT


class StatFlag(IntEnum):
    """Bits of a chunk's STAT_FLAGS."""

    MIN_PRESENT = 1 << 0
    MIN_INLINED = 1 << 1
    MIN_EXACT = 1 << 2
    MAX_PRESENT = 1 << 3
    MAX_INLINED = 1 << 4
    MAX_EXACT = 1 << 5
    DISTINCT_COUNT_PRESENT = 1 << 6
    NULL_COUNT_PRESENT = 1 << 7


class Side(NamedTuple):
    """Which parts of a chunk record belong to its minimum, or to its maximum."""

    name: str
    slot: str
    word: int
    """The place of the slot in the record, in words."""
    size_shift: int
    """The place of its size in STAT_SIZES, in bits."""
    present: int
    inlined: int
    exact: int


MINIMUM = Side("min", "min_stat", 6, 0, StatFlag.MIN_PRESENT, StatFlag.MIN_INLINED, StatFlag.MIN_EXACT)
MAXIMUM = Side("max", "max_stat", 7, 4, StatFlag.MAX_PRESENT, StatFlag.MAX_INLINED, StatFlag.MAX_EXACT)
SIDES = (MINIMUM, MAXIMUM)


class EncodingBit(IntEnum):
    """Bits of a chunk's ENCODINGS."""

    PLAIN = 1 << 0
    RLE_DICTIONARY = 1 << 1
    DELTA_BINARY_PACKED = 1 << 2
    DELTA_LENGTH_BYTE_ARRAY = 1 << 3
    DELTA_BYTE_ARRAY = 1 << 4
    BYTE_STREAM_SPLIT = 1 << 5


class Order(IntEnum):
    """How the bounds of a column compare, which physical type and bytes alone do not tell."""

    UNDEFINED = 0
    SIGNED = 1
    UNSIGNED = 2
    FLOAT = 3
    BYTES = 4
    SIGNED_BIG_ENDIAN = 5
    SIGN_UNKNOWN = 6


LAST_ORDER = max(Order)


class PageFlag(IntEnum):
    """Bits of a `PAGES` record."""

    HAS_DICTIONARY_OFFSET = 1 << 0
    HAS_STATISTICS = 1 << 1
    NAN_FREE = 1 << 2
    UNKNOWN_ENCODING = 1 << 3


class SchemaCode(IntEnum):
    """Entries of the header's Windrow section."""

    SCHEMA = 1
    COLUMN_ORDERS = 2


class SnapshotCode(IntEnum):
    """Entries of a footer's Windrow section."""

    ETAG = 16
    CREATED_BY = 17
    KEY_VALUE = 18
    VERSION = 19
    PAGES = 20
    GRANULES = 21


def is_wide(column_count: int, row_group_count: int) -> bool:
    """Whether the chunks of one column lie on many pages of memory, so that bounds by column are worth their bytes."""
    return row_group_count >= MANY_ROW_GROUPS and ROWS_SIZE + column_count * CHUNK_SIZE >= WIDE_BLOCK


def aligned(offset: int) -> int:
    """The first multiple of 8 that is not below `offset`."""
    return -(-offset // WORD) * WORD

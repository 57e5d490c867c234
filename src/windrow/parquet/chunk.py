"""The record of one column chunk of a footer, in fixed width."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

HAS_META = 1 << 0
HAS_STATISTICS = 1 << 1
HAS_NULL_COUNT = 1 << 2
HAS_DISTINCT_COUNT = 1 << 3
HAS_MIN_VALUE = 1 << 4
HAS_MAX_VALUE = 1 << 5
HAS_OLD_MIN = 1 << 6
HAS_OLD_MAX = 1 << 7
MIN_EXACT_FALSE = 1 << 8
MAX_EXACT_FALSE = 1 << 9
HAS_DICTIONARY_OFFSET = 1 << 10
HAS_INDEX_OFFSET = 1 << 11
HAS_BLOOM_OFFSET = 1 << 12
HAS_BLOOM_LENGTH = 1 << 13
HAS_OFFSET_INDEX = 1 << 14
HAS_COLUMN_INDEX = 1 << 15
HAS_FILE_PATH = 1 << 16
ENCRYPTED = 1 << 17
UNKNOWN_ENCODING = 1 << 18
NAN_FREE = 1 << 19
"""No footer has this flag: it is set where a chunk of floats is free of NaN."""
ALL_FLAGS = (1 << 20) - 1

BOUND_FLAGS = HAS_MIN_VALUE | HAS_MAX_VALUE | HAS_OLD_MIN | HAS_OLD_MAX | MIN_EXACT_FALSE | MAX_EXACT_FALSE
STATISTICS_FLAGS = HAS_STATISTICS | HAS_NULL_COUNT | HAS_DISTINCT_COUNT | BOUND_FLAGS


class Encoding(IntEnum):
    """How the values of a page are written down; the bit of this number stands for it in `encodings`."""

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    BIT_PACKED = 4
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    DELTA_BYTE_ARRAY = 7
    RLE_DICTIONARY = 8
    BYTE_STREAM_SPLIT = 9


KNOWN_ENCODINGS = sum(1 << encoding for encoding in Encoding)

FOOTER_CHUNK: np.dtype[np.void] = np.dtype(
    [
        ("physical_type", "<i4"),
        ("codec", "<i4"),
        ("encodings", "<u4"),
        ("flags", "<u4"),
        ("num_values", "<i8"),
        ("total_uncompressed_size", "<i8"),
        ("total_compressed_size", "<i8"),
        ("data_page_offset", "<i8"),
        ("index_page_offset", "<i8"),
        ("dictionary_page_offset", "<i8"),
        ("null_count", "<i8"),
        ("distinct_count", "<i8"),
        ("min_offset", "<i8"),
        ("min_length", "<i8"),
        ("max_offset", "<i8"),
        ("max_length", "<i8"),
        ("old_min_offset", "<i8"),
        ("old_min_length", "<i8"),
        ("old_max_offset", "<i8"),
        ("old_max_length", "<i8"),
        ("bloom_offset", "<i8"),
        ("bloom_length", "<i8"),
        ("offset_index_offset", "<i8"),
        ("offset_index_length", "<i8"),
        ("column_index_offset", "<i8"),
        ("column_index_length", "<i8"),
        ("file_offset", "<i8"),
    ]
)
"""One column chunk. Positions of statistics count from the first byte of the metadata; what a file leaves out is 0."""


def chunk_starts(chunks: npt.NDArray[np.void] | np.void) -> npt.NDArray[np.int64]:
    """Where the bytes of each chunk begin: at its dictionary page, or at its first data page if it has no dictionary.

    Files exist whose dictionary offset is 0 or lies behind the data: it is not believed. Others, of no rows, have a
    dictionary but no data, and a data offset of 0.
    """
    dictionary: npt.NDArray[np.int64] = chunks["dictionary_page_offset"]
    data: npt.NDArray[np.int64] = chunks["data_page_offset"]
    return np.where((dictionary > 0) & ((dictionary < data) | (data <= 0)), dictionary, data)

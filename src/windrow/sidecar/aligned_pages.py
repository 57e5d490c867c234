"""Finding granules in a Parquet file: rows at which pages of most columns of a row group are cut.

Where pages are is in the file's page index; files without one have no granules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from windrow.errors import Damaged
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.page_headers import read_page_header
from windrow.parquet.page_index import OffsetIndex, parse_offset_indexes
from windrow.sidecar.convert import Read
from windrow.sidecar.granules import FirstKeys, GranuleIndex

_HEADER_BYTES = 1 << 10
_WORTH_READING = 2
"""Indexes are read in one go when at most this many times their own bytes come along."""


def find_granules(
    footer: ParquetFooter, read: Read, *, name: str, keys: Sequence[Sequence[FirstKeys]] | None = None
) -> list[GranuleIndex | None]:
    """The granule index of every row group; `None` for one without a page index.

    `keys` are the first values of the sort columns in every granule, by row group. A column whose pages are cut at
    other rows has no pages in the index, and can only be read by whole chunks: nested ones often, and those of which a
    dictionary became full.
    """
    return [
        _granules(footer, group, indexes, read, name, () if keys is None else tuple(keys[group]))
        for group, indexes in enumerate(_offset_indexes(footer.chunks, read, name))
    ]


def _granules(
    footer: ParquetFooter,
    group: int,
    indexes: Sequence[OffsetIndex],
    read: Read,
    name: str,
    keys: tuple[FirstKeys, ...],
) -> GranuleIndex | None:
    flat = [index.first_rows for leaf, index in zip(footer.leaves, indexes, strict=False) if leaf.max_repetition == 0]
    if not flat:
        return None
    (common, _), *_ = Counter(rows.tobytes() for rows in flat).most_common(1)
    first_rows, count = np.frombuffer(common, np.int64), int(footer.row_group_rows[group])
    if (first_rows > count).any():
        return None
    aligned = [column for column, index in enumerate(indexes) if np.array_equal(index.first_rows, first_rows)]
    offsets, sizes = np.zeros((2, len(indexes), len(first_rows)), np.int64)
    for column in aligned:
        offsets[column], sizes[column] = indexes[column].offsets, indexes[column].compressed_sizes
    nested = [column for column in aligned if footer.leaves[column].max_repetition]
    values = [_values(indexes[column], read, name) for column in nested]
    return GranuleIndex(
        np.diff(first_rows, append=count).astype("<u4"),
        offsets.astype("<u8"),
        sizes.astype("<u4"),
        keys,
        np.array(nested, "<u4"),
        np.array(values, "<u4").reshape(len(nested), len(first_rows)),
    )


def _offset_indexes(chunks: NDArray[np.void], read: Read, name: str) -> list[list[OffsetIndex]]:
    """The offset index of every chunk, by row group; nothing for a row group in which one is missing."""
    starts, lengths = chunks["offset_index_offset"], chunks["offset_index_length"]
    is_whole = ((starts > 0) & (lengths > 0)).all(axis=1) & (chunks.shape[1] > 0)
    parsed = iter(_parsed(starts[is_whole].reshape(-1), lengths[is_whole].reshape(-1), read, name))
    return [list(islice(parsed, chunks.shape[1])) if each else [] for each in is_whole.tolist()]


def _parsed(starts: NDArray[np.int64], lengths: NDArray[np.int64], read: Read, name: str) -> list[OffsetIndex]:
    if not starts.size:
        return []
    first, last = int(starts.min()), int((starts + lengths).max())
    if last - first > _WORTH_READING * int(lengths.sum()):
        data = b"".join(read(start, length) for start, length in zip(starts.tolist(), lengths.tolist(), strict=True))
        places = np.cumsum(lengths) - lengths
    else:
        data, places = read(first, last - first), starts - first
    return parse_offset_indexes(data, list(zip(places.tolist(), lengths.tolist(), strict=True)), name=name)


def _values(index: OffsetIndex, read: Read, name: str) -> list[int]:
    """How many values the pages of a nested column hold, which only their own headers say."""
    return [
        _page_values(offset, size, read, name)
        for offset, size in zip(index.offsets.tolist(), index.compressed_sizes.tolist(), strict=True)
    ]


def _page_values(offset: int, size: int, read: Read, name: str) -> int:
    try:
        return read_page_header(read(offset, min(size, _HEADER_BYTES)), name=name).num_values
    except Damaged:
        # Statistics of long values make long headers.
        return read_page_header(read(offset, size), name=name).num_values

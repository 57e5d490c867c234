"""From a sidecar back to the column chunks of the Parquet footer, without the Parquet file.

The statistics stay where they are: positions in the records point into the bytes of the sidecar. QuestDB's own sidecars
have no page records: readers find pages by the byte range of a chunk alone, and statistics are null counts alone. What
a sidecar has no place for is gone: the deprecated bounds, bounds beyond 65,535 bytes and index page offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.parquet import chunk as parquet
from windrow.sidecar import layout
from windrow.sidecar.convert import COUNTS, ENCODINGS, PAGE_FLAGS
from windrow.sidecar.layout import PageFlag, Side, SnapshotCode
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.stored_bounds import far_places

_SIDES = (
    (layout.MINIMUM, parquet.HAS_MIN_VALUE, parquet.MIN_EXACT_FALSE),
    (layout.MAXIMUM, parquet.HAS_MAX_VALUE, parquet.MAX_EXACT_FALSE),
)
_PARTS = (
    ("offset_index", parquet.HAS_OFFSET_INDEX),
    ("column_index", parquet.HAS_COLUMN_INDEX),
    ("bloom", parquet.HAS_BLOOM_OFFSET | parquet.HAS_BLOOM_LENGTH),
)
_BITS = [(ours, theirs) for theirs, ours in ENCODINGS if theirs != parquet.Encoding.PLAIN_DICTIONARY]
_ENCODINGS = np.array(
    [
        1 << parquet.Encoding.RLE | sum(1 << theirs for ours, theirs in _BITS if bits & ours)
        for bits in range(1 << len(_BITS))
    ],
    np.uint32,
)
"""By the ENCODINGS of a chunk record, the same as bits of Parquet's numbers; levels are always run lengths."""


def restore_chunks(
    sidecar: Sidecar, row_groups: Sequence[int] | None = None, columns: Sequence[int] | None = None
) -> NDArray[np.void]:
    """`FOOTER_CHUNK` records of some row groups and columns; their positions count from the sidecar's first byte."""
    groups = np.arange(sidecar.row_group_count) if row_groups is None else np.asarray(row_groups, np.int64)
    leaves = np.arange(sidecar.column_count) if columns is None else np.asarray(columns, np.int64)
    first = sidecar.entries[groups][:, None] + 1 + leaves * layout.CHUNK_WORDS
    chunks = _records(sidecar, first, layout.CHUNK)
    pages, described = _page_records(sidecar, groups, leaves, chunks)
    restored = np.zeros(first.shape, parquet.FOOTER_CHUNK)
    restored["flags"] = parquet.HAS_META
    restored["physical_type"] = sidecar.descriptors["physical_type"][leaves]
    for field in ("codec", "num_values"):
        restored[field] = chunks[field]
    restored["total_compressed_size"] = chunks["total_compressed"]
    _restore_pages(restored, chunks, pages)
    for field, theirs, ours in COUNTS:
        restored[field] = chunks[field]
        restored["flags"] |= _where(chunks["stat_flags"], ours, theirs)
    regions = sidecar.regions[groups]
    for side, has_value, inexact in _SIDES:
        starts, lengths = _bound_places(chunks, side, first * layout.WORD, regions)
        present = ((chunks["stat_flags"] & side.present) != 0) & (lengths > 0)
        present &= (starts + lengths <= sidecar.footer.offset) & described
        restored[f"{side.name}_offset"] = np.where(present, starts, 0)
        restored[f"{side.name}_length"] = np.where(present, lengths, 0)
        restored["flags"] |= _where(present, 1, has_value)
        restored["flags"] |= _where(present & ((chunks["stat_flags"] & side.exact) == 0), 1, inexact)
    return restored


def _page_records(
    sidecar: Sidecar, groups: NDArray[np.int64], leaves: NDArray[np.int64], chunks: NDArray[np.void]
) -> tuple[NDArray[np.void], NDArray[np.bool_]]:
    """The `PAGES` records of chunks, made up where there are none, and which row groups have them."""
    table = sidecar.extensions.tables[SnapshotCode.PAGES]
    places = np.zeros(len(groups), np.int64) if table is None else table[groups]
    described = (places > 0)[:, None]
    pages = plain_pages(chunks)
    pages["flags"] = _where(chunks["stat_flags"], sum(ours for _, _, ours in COUNTS), PageFlag.HAS_STATISTICS)
    there = np.flatnonzero(places)
    if len(there):
        pages[there] = _records(sidecar, places[there][:, None] + leaves * layout.PAGES_WORDS, layout.PAGES)
    return pages, described


def plain_pages(chunks: NDArray[np.void]) -> NDArray[np.void]:
    """`PAGES` records as they follow from `CHUNK` records alone; no flags are set."""
    pages = np.zeros(chunks.shape, layout.PAGES)
    # A reader that starts at a dictionary page finds the data pages behind it.
    pages["data_page_offset"] = chunks["byte_range_start"]
    pages["uncompressed_size"] = chunks["total_compressed"]
    pages["encodings"] = _ENCODINGS[chunks["encodings"] & (len(_ENCODINGS) - 1)]
    return pages


def _records(sidecar: Sidecar, first: NDArray[np.int64], dtype: np.dtype[np.void]) -> NDArray[np.void]:
    words = sidecar.words[first[:, :, None] + np.arange(dtype.itemsize // layout.WORD)]
    records: NDArray[np.void] = words.reshape(-1).view(dtype).reshape(first.shape)
    return records


def _restore_pages(restored: NDArray[np.void], chunks: NDArray[np.void], pages: NDArray[np.void]) -> None:
    has_dictionary = (pages["flags"] & PageFlag.HAS_DICTIONARY_OFFSET) != 0
    restored["dictionary_page_offset"] = np.where(has_dictionary, chunks["byte_range_start"], 0)
    restored["total_uncompressed_size"] = pages["uncompressed_size"]
    for field in ("data_page_offset", "encodings"):
        restored[field] = pages[field]
    for theirs, ours in PAGE_FLAGS:
        restored["flags"] |= _where(pages["flags"], ours, theirs)
    for part, flag in _PARTS:
        restored[f"{part}_offset"], restored[f"{part}_length"] = pages[f"{part}_offset"], pages[f"{part}_length"]
        restored["flags"] |= _where(pages[f"{part}_offset"] != 0, 1, flag)


def _bound_places(
    chunks: NDArray[np.void], side: Side, records: NDArray[np.int64], regions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where bounds start in the file and how long they are: in the slots of the records, or out of line."""
    inlined = (chunks["stat_flags"] & side.inlined) != 0
    sizes = (chunks["stat_sizes"] >> side.size_shift) & 0xF
    starts, lengths = far_places(chunks, side, regions)
    inline = records + side.word * layout.WORD, np.minimum(sizes, layout.LONGEST_INLINE)
    return np.where(inlined, inline[0], starts), np.where(inlined, inline[1], lengths)


def _where(values: NDArray[Any], bit: int, flag: int) -> NDArray[np.uint32]:
    flags: NDArray[np.uint32] = (((values & bit) != 0) * flag).astype(np.uint32)
    return flags

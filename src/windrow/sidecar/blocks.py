"""Laying down row group blocks: chunk records, long bounds, bloom filters and page records, as one run of bytes.

All row groups are laid out together with array operations; only bloom filters are placed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InvalidInput
from windrow.sidecar import layout
from windrow.sidecar.stored_bounds import LongBounds

_COPY_AT_ONCE = 1 << 20
_LARGEST_BLOOM = 2**31 - 1


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Row groups to be written. Bounds are already placed in `chunks`; long ones are in `long_bounds`."""

    rows: NDArray[np.uint64]
    chunks: NDArray[np.void]
    """`CHUNK` records by row group and column."""
    long_bounds: LongBounds | None = None
    blooms: Mapping[tuple[int, int], bytes] = field(default_factory=dict)
    """Bitsets that go into the sidecar, by row group and column."""
    external_blooms: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """Offset and length of filters that stay in the Parquet file, by row group and column."""
    pages: NDArray[np.void] | None = None
    """`PAGES` records by row group and column."""
    granules: Sequence[bytes | None] | None = None
    """The encoded granule index of every row group."""

    def __post_init__(self) -> None:
        groups, columns = self.chunks.shape
        outside = [place for place in (*self.blooms, *self.external_blooms) if not _inside(place, groups, columns)]
        if len(self.rows) != groups or (self.pages is not None and self.pages.shape != self.chunks.shape):
            raise InvalidInput(f"sidecar: rows or pages do not fit {groups} row groups of {columns} columns")
        if self.granules is not None and len(self.granules) != groups:
            raise InvalidInput(f"sidecar: {len(self.granules)} granule indexes for {groups} row groups")
        if outside:
            raise InvalidInput(f"sidecar: bloom filter at {outside[0]} of {groups} row groups and {columns} columns")
        if any(len(bits) > _LARGEST_BLOOM for bits in self.blooms.values()):
            raise InvalidInput(f"sidecar: bloom filter of more than {_LARGEST_BLOOM} bytes; build a smaller one")

    def __len__(self) -> int:
        return len(self.rows)


def _inside(place: tuple[int, int], groups: int, columns: int) -> bool:
    return 0 <= place[0] < groups and 0 <= place[1] < columns


class Blocks(NamedTuple):
    """Blocks as they follow byte `base` of a file, their chunk records, and the words at which things are."""

    data: NDArray[np.uint8]
    chunks: NDArray[np.void]
    entries: NDArray[np.int64]
    blooms: dict[tuple[int, int], int]
    pages: NDArray[np.int64]
    granules: NDArray[np.int64]


class _Region(NamedTuple):
    """Where everything is in the out-of-line regions, relative to the start of each."""

    bounds: NDArray[np.int64]
    blooms: dict[tuple[int, int], int]
    pages: NDArray[np.int64]
    granules: NDArray[np.int64]
    sizes: NDArray[np.int64]


def lay_blocks(groups: RowGroups, base: int) -> Blocks:
    """The blocks of row groups that start at the first multiple of 8 from byte `base` on, padding included."""
    region = _lay_region(groups)
    fixed = layout.ROWS_SIZE + groups.chunks.shape[1] * layout.CHUNK_SIZE
    sizes = fixed + region.sizes
    steps = _aligned(sizes)
    first = layout.aligned(base) if len(groups) else base
    offsets = first + np.cumsum(steps) - steps
    end = int(offsets[-1] + sizes[-1]) if len(groups) else base
    outside = offsets + fixed
    entries = block_entries(offsets)
    data = np.zeros(end - base, np.uint8)
    chunks = _write_records(data, groups, region, offsets - base)
    for (group, column), place in region.blooms.items():
        bits = groups.blooms[group, column]
        start = int(outside[group]) + place - base
        _put(data, start, layout.I32.pack(len(bits)) + bits)
    return Blocks(
        data,
        chunks,
        entries,
        {place: (int(outside[place[0]]) + at) // layout.WORD for place, at in region.blooms.items()},
        np.where(region.pages < 0, 0, (outside + region.pages) // layout.WORD),
        np.where(region.granules < 0, 0, (outside + region.granules) // layout.WORD),
    )


def block_entries(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The footer entries of blocks at these offsets."""
    if (offsets % layout.WORD).any():
        raise InvalidInput(f"sidecar: block offsets {offsets.tolist()} are not all multiples of {layout.WORD}")
    if int(offsets.max(initial=0)) > layout.LARGEST_BLOCK_OFFSET:
        problem = f"a block at byte {int(offsets.max())} is beyond {layout.LARGEST_BLOCK_OFFSET}"
        raise InvalidInput(f"sidecar: {problem}; write a new sidecar instead of appending to this one")
    return offsets // layout.WORD


def _lay_region(groups: RowGroups) -> _Region:
    count, columns = groups.chunks.shape
    lengths = np.zeros((count, columns, 2), np.int64) if groups.long_bounds is None else groups.long_bounds.lengths
    ends = np.cumsum(lengths.reshape(count, 2 * columns), axis=1).reshape(lengths.shape)
    blooms, added = _lay_blooms(groups, ends)
    bounds = ends - lengths + added[:, :-1, None]
    sizes = (ends[:, -1, 1] if columns else np.zeros(count, np.int64)) + added[:, -1]
    pages = np.full(count, -1)
    if groups.pages is not None:
        pages, sizes = _aligned(sizes), _aligned(sizes) + columns * layout.PAGES_SIZE
    indexes = groups.granules or [None] * count
    has = np.array([index is not None for index in indexes], bool)
    granules = np.where(has, _aligned(sizes), -1)
    sizes = np.where(has, granules + [len(index or b"") for index in indexes], sizes) if has.any() else sizes
    return _Region(bounds, blooms, pages, granules, sizes)


def _lay_blooms(groups: RowGroups, ends: NDArray[np.int64]) -> tuple[dict[tuple[int, int], int], NDArray[np.int64]]:
    """Where filters are, and how many bytes they add before each column and in all."""
    count, columns, _ = ends.shape
    added = np.zeros((count, columns + 1), np.int64)
    places: dict[tuple[int, int], int] = {}
    before: dict[int, int] = {}
    for group, column in sorted(groups.blooms):
        end = int(ends[group, column, 1]) + before.get(group, 0)
        place = places[group, column] = layout.aligned(end)
        size = place + layout.I32.size + len(groups.blooms[group, column]) - end
        added[group, column + 1] = size
        before[group] = before.get(group, 0) + size
    return places, np.cumsum(added, axis=1)


def _write_records(
    data: NDArray[np.uint8], groups: RowGroups, region: _Region, starts: NDArray[np.int64]
) -> NDArray[np.void]:
    """Write everything but bloom filters; gives back the chunk records as they were written."""
    chunks = groups.chunks
    fixed = layout.ROWS_SIZE + chunks.shape[1] * layout.CHUNK_SIZE
    if groups.long_bounds is not None and groups.long_bounds.lengths.any():
        chunks = _refer(chunks, groups.long_bounds, region.bounds)
        _copy_bounds(data, groups.long_bounds, region.bounds + (starts + fixed)[:, None, None])
    for group, start in enumerate(starts.tolist()):
        _put(data, start, layout.U64.pack(int(groups.rows[group])))
        _put_records(data, start + layout.ROWS_SIZE, chunks[group])
        if groups.pages is not None:
            _put_records(data, start + fixed + int(region.pages[group]), groups.pages[group])
        if groups.granules is not None and (index := groups.granules[group]) is not None:
            _put(data, start + fixed + int(region.granules[group]), index)
    return chunks


def _refer(chunks: NDArray[np.void], bounds: LongBounds, places: NDArray[np.int64]) -> NDArray[np.void]:
    """Chunk records whose slots refer to the long bounds."""
    referring = chunks.copy()
    references = (places.astype(np.uint64) << np.uint64(16)) | bounds.lengths.astype(np.uint64)
    for side, slot in enumerate(("min_stat", "max_stat")):
        is_long = bounds.lengths[:, :, side] > 0
        referring[slot][is_long] = references[:, :, side][is_long]
    return referring


def _copy_bounds(data: NDArray[np.uint8], bounds: LongBounds, targets: NDArray[np.int64]) -> None:
    heap = np.frombuffer(bounds.heap, np.uint8)
    is_long = bounds.lengths > 0
    sources, lengths, places = bounds.starts[is_long], bounds.lengths[is_long], targets[is_long]
    ends = np.cumsum(lengths)
    for part in _parts(ends):
        size = lengths[part]
        within = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
        data[np.repeat(places[part], size) + within] = heap[np.repeat(sources[part], size) + within]


def _parts(ends: NDArray[np.int64]) -> Iterator[slice]:
    """Slices of about the same number of bytes each, so that the index arrays of a copy stay small."""
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + _COPY_AT_ONCE, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _aligned(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return -(-sizes // layout.WORD) * layout.WORD


def _put(data: NDArray[np.uint8], start: int, content: bytes) -> None:
    data.data[start : start + len(content)] = content


def _put_records(data: NDArray[np.uint8], start: int, records: NDArray[np.void]) -> None:
    # As bytes, for records would be copied field by field.
    data[start : start + records.nbytes] = np.ascontiguousarray(records).view(np.uint8)

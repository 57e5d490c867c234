"""Which bytes of files a reader of a virtual file needs: addresses become ranges of files here alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.planning.address_space import Segment
from windrow.planning.virtual_file import VirtualFile

__all__ = ["Stretches", "needed_bytes", "stretches"]

_Longs = NDArray[np.int64]


class Stretches(NamedTuple):
    """Stretches of addresses, each within one segment."""

    first: _Longs
    last: _Longs
    """Before which address each ends."""
    segment: _Longs


def stretches(segments: Sequence[Segment], begins: _Longs, ends: _Longs) -> Stretches:
    """Ranges of addresses, cut where segments end: a run of pages is in another segment than its dictionary."""
    table = np.array([(segment.address, segment.length) for segment in segments], np.int64).reshape(-1, 2)
    first = np.searchsorted(table[:, 0], begins, "right") - 1
    counts = np.searchsorted(table[:, 0], ends, "left") - first
    place = np.repeat(np.arange(len(begins)), counts)
    segment = first[place] + np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
    address, size = table[segment].T
    low, high = np.maximum(begins[place], address), np.minimum(ends[place], address + size)
    filled = high > low
    return Stretches(low[filled], high[filled], segment[filled])


def needed_bytes(virtual: VirtualFile) -> NDArray[np.int64]:
    """File, offset and length of the bytes that chunks are made of, in the order of chunks."""
    begins, lengths = virtual.chunks.T
    first, last, segment = stretches(virtual.segments, begins, begins + lengths)
    table = np.array([(s.file, s.offset - s.address) for s in virtual.segments], np.int64).reshape(-1, 2)
    file, shift = table[segment].T
    return np.stack([file, first + shift, last - first], axis=1)

"""Which bytes of files a reader of a virtual file needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.planning.virtual_file import VirtualFile

__all__ = ["needed_bytes"]


def needed_bytes(virtual: VirtualFile) -> NDArray[np.int64]:
    """File, offset and length of the bytes that chunks are made of, in the order of chunks."""
    begins, lengths = virtual.chunks.T
    ends = begins + lengths
    table = np.array([(s.address, s.length, s.file, s.offset) for s in virtual.segments], np.int64).reshape(-1, 4)
    # a chunk may lie in several segments: its dictionary in one, its pages in others
    first = np.searchsorted(table[:, 0], begins, "right") - 1
    counts = np.searchsorted(table[:, 0], ends, "left") - first
    chunk = np.repeat(np.arange(len(begins)), counts)
    segment = first[chunk] + np.arange(len(chunk)) - np.repeat(np.cumsum(counts) - counts, counts)
    address, size, file, offset = table[segment].T
    low, high = np.maximum(begins[chunk], address), np.minimum(ends[chunk], address + size)
    found = np.stack([file, offset + low - address, high - low], axis=1)
    return np.asarray(found[high > low])

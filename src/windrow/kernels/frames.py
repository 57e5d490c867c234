"""Bytes of pages, compressed and back, many pages by one call.

A compression library is called by the address of its function and that of a context, which the caller keeps to himself
while the call lasts. Functions of both ways take the same: context, target and room in it, source and its bytes; they
return how many bytes were written, or a number that no room has.

What it buys: 16 microseconds a page, which a call of Arrow's codec costs besides the work.

The trick: an address is called. A wrong address or room ends the process. The plain way is that of
`windrow.parquet.zstd`: the address is that of a function in Python, which does one page by Arrow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.native import call, copy

__all__ = ["bound", "inflate"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


@kernel
def bound(size: int) -> int:
    """The room in which a frame of so many bytes surely fits."""
    return size + (size >> 8) + 256


@kernel
def inflate(
    library: tuple[int, int],
    source: Bytes,
    pages: tuple[Longs, Longs, Longs, Longs, npt.NDArray[np.bool_]],
    out: Bytes,
) -> int:
    """Lay out decompressed pages behind each other; the page in trouble or -1.

    `pages` says where each begins, how many of its bytes are levels, which are never compressed, how many bytes it has
    in all, and how many when decompressed, and whether it is stored as it is. Every page lies within the source.
    """
    bodies, levels, sizes, whole, stored = pages
    at = 0
    for page in range(bodies.size):
        body, level = bodies[page], levels[page]
        at = copy(out, at, source, body, level)
        left, wanted = sizes[page] - level, whole[page] - level
        if wanted and stored[page]:
            if left != wanted:
                return page
            copy(out, at, source, body + level, wanted)
        elif wanted and call(out, at, wanted, library[0], library[1], source, body + level, left) != wanted:
            return page
        at += wanted
    return -1

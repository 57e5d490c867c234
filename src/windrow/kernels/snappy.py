"""Pages that were compressed by Snappy, as most writers of Parquet do by default, many by one call.

Bytes are literals and copies of what came before. Nothing is trusted: the page that cannot be read is returned.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.native import copy

__all__ = ["inflate_snappy"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


@kernel
def _byte(source: Bytes, at: int) -> int:
    """A byte as a number that kernels calculate with."""
    return np.int64(source[at])  # type: ignore[return-value]


@kernel
def _number(source: Bytes, at: int, size: int) -> int:
    """The number that so many bytes hold, the low ones first."""
    value = 0
    for byte in range(size):
        value |= _byte(source, at + byte) << (8 * byte)
    return value


@kernel
def _element(source: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """The next element: where its bytes begin, how many it gives, and how far back it copies from.

    A literal copies from nowhere, 0. The first number is -1 where the element is cut short.
    """
    tag = _byte(source, at)
    kind, count = tag & 3, (tag >> 2) + 1
    if kind == 0:
        more = count - 60 if count > 60 else 0
        if at + 1 + more > end:
            return -1, 0, 0
        return at + 1 + more, _number(source, at + 1, more) + 1 if more else count, 0
    size = 1 if kind == 1 else 2 if kind == 2 else 4
    if at + 1 + size > end:
        return -1, 0, 0
    back = _number(source, at + 1, size)
    if kind == 1:
        count, back = (tag >> 2 & 7) + 4, tag >> 5 << 8 | back
    return (at + 1 + size if back else -1), count, back


@kernel
def _inflate(source: Bytes, at: int, end: int, out: Bytes, begin: int, size: int) -> bool:
    """Decompress one page that gives so many bytes; whether it could be."""
    stated, shift, more = 0, 0, True
    while more:
        if at >= end or shift > 28:
            return False
        byte = _byte(source, at)
        stated |= (byte & 0x7F) << shift
        at, shift, more = at + 1, shift + 7, bool(byte > 0x7F)
    if stated != size:
        return False
    place, last = begin, begin + size
    while at < end:
        at, count, back = _element(source, at, end)
        if at < 0 or count > last - place or back > place - begin:
            return False
        if back == 0:
            if count > end - at:
                return False
            copy(out, place, source, at, count)
            at += count
        elif back >= count:
            copy(out, place, out, place - back, count)
        else:
            for each in range(place, place + count):
                out[each] = out[each - back]
        place += count
    return place == last


@kernel
def inflate_snappy(source: Bytes, pages: tuple[Longs, Longs, Longs, Longs, npt.NDArray[np.bool_]], out: Bytes) -> int:
    """Lay out decompressed pages behind each other; the page in trouble or -1. `pages` is that of `inflate`."""
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
        elif wanted and not _inflate(source, body + level, body + level + left, out, at, wanted):
            return page
        at += wanted
    return -1

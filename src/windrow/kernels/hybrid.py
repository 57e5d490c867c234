"""What all decoders of pages share: the table of pages, bits out of words, and runs of the hybrid encoding.

Bytes are given as 64-bit words with at least two words of padding behind them, so that a value of any width is cut out
of two words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.native import load

__all__ = ["cut", "kept", "level_run", "next_run", "signed"]

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]

# The numbers of a page to decode: how its values are written, where its definition levels begin and end (equal when
# it has none), where its values begin and end (all in bytes), how many values it has, nulls included, which of them
# are wanted (from FIRST up to LAST), the first of its dictionary's entries and their number.
FORM, LEVELS, LEVELS_END, VALUES, VALUES_END, COUNT, FIRST, LAST, ENTRY, ENTRIES = range(10)
PAGE_WIDTH = 10
CODED, PLAIN, NULLS, DELTA, SPLIT = range(5)
NULL_CODE = -1


@kernel
def signed(value: np.uint64 | np.int32) -> int:
    """The number that kernels calculate with; signed and unsigned together would become floating point."""
    return np.int64(value)  # type: ignore[return-value]


@kernel
def cut(words: Words, bit: int, width: int) -> np.uint64:
    """The unsigned number of `width` bits that begins at a bit."""
    byte, shift = bit >> 3, np.uint64(bit & 7)
    value = load(words, byte) >> shift
    if (bit & 7) + width > 64:
        value |= load(words, byte + 8) << (np.uint64(64) - shift)
    if width < 64:
        value &= (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    return value


@kernel
def next_run(words: Words, at: int, end: int, width: int) -> tuple[int, int, int, int]:
    """The next run of the hybrid encoding: its length, its value, the bit where its values begin (-1 when they are all
    the same), and the byte after it; that is -1 when there is none."""
    header, shift = 0, 0
    more = True
    while more:
        if at >= end or shift > 28:
            return 0, 0, -1, -1
        byte = signed(cut(words, at * 8, 8))
        header |= (byte & 0x7F) << shift
        shift, at, more = shift + 7, at + 1, byte > 0x7F
    if header & 1:
        groups = header >> 1
        # writers exist that cut the last group short
        return groups * 8, 0, at * 8, min(at + groups * width, end)
    size = (width + 7) >> 3
    if at + size > end:
        return 0, 0, -1, -1
    return header >> 1, signed(cut(words, at * 8, size * 8)) if size else 0, -1, at + size


@kernel
def _lowest(value: np.uint64) -> int:
    """The place of the lowest bit that is set; there is one."""
    place = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value & ((np.uint64(1) << np.uint64(step)) - np.uint64(1)) == 0:
            value >>= np.uint64(step)
            place += step
    return place


@kernel
def _same_bits(words: Words, bit: int, most: int) -> tuple[int, int]:
    """How many bits from one on are like it, and whether they are set."""
    first = cut(words, bit, 1)
    count = 0
    while count < most:
        step = min(most - count, 64)
        other = cut(words, bit + count, step) ^ (np.uint64(0) - first)
        if step < 64:
            # the end counts as a bit that differs
            other = (other & ((np.uint64(1) << np.uint64(step)) - np.uint64(1))) | np.uint64(1) << np.uint64(step)
        if other:
            return count + _lowest(other), signed(first)
        count += 64
    return count, signed(first)


@kernel
def level_run(
    words: Words, pages: Longs, page: int, at: int, left: int, bit: int, value: int
) -> tuple[int, int, int, int, int, int]:
    """The next stretch of values that are all null or all set: its length (-1 for trouble), whether they are set, and
    the state to go on from: the byte, what is left of the run, its bit and its value."""
    end = pages[page + LEVELS_END]
    if pages[page + LEVELS] == end:
        return pages[page + COUNT], 1, at, left, bit, value
    while left == 0:
        left, value, bit, at = next_run(words, at, end, 1)
        if at < 0:
            return -1, 0, at, left, bit, value
    if bit < 0:
        return left, value, at, 0, bit, value
    left = min(left, end * 8 - bit)
    if left <= 0:
        return -1, 0, at, left, bit, value
    count, is_set = _same_bits(words, bit, left)
    return count, is_set, at, left - count, bit + count, value


@kernel
def kept(pages: Longs, page: int, seen: int, count: int) -> int:
    """How many of `count` values, the first of which is the `seen`-th of the page, are wanted."""
    return max(min(seen + count, pages[page + LAST]) - max(seen, pages[page + FIRST]), 0)  # type: ignore[no-any-return]

"""Pages of fixed-width columns, decoded into a value for each row.

All pages of a column, from any number of files, are decoded by one call. Nothing is trusted: the number of the page
that cannot be read is returned, -1 when all is well.
"""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.hybrid import (
    COUNT,
    DELTA,
    ENTRIES,
    ENTRY,
    FIRST,
    FORM,
    LAST,
    LEVELS,
    NULLS,
    PAGE_WIDTH,
    PLAIN,
    SPLIT,
    VALUES,
    VALUES_END,
    cut,
    kept,
    level_run,
    next_run,
    signed,
)
from windrow.kernels.native import load

__all__ = ["decode_fixed", "decode_page"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
Values = TypeVar("Values", npt.NDArray[np.uint64], npt.NDArray[np.uint32])
"""Values of eight or of four bytes."""


LOW_HALF = np.uint64(0xFFFFFFFF)


@kernel
def _plain_values(
    words: Words, pages: Longs, page: int, seen: int, count: int, done: int, out: Values, size: int, row: int
) -> int:
    """Copy the wanted ones of `count` values, the first of which is the `done`-th that is not null; the row then."""
    first, last = max(seen, pages[page + FIRST]), min(seen + count, pages[page + LAST])
    at = pages[page + VALUES] + (done + first - seen) * size
    if size == 8:
        for place in range(last - first):
            out[row + place] = load(words, at + place * 8)
    else:
        for place in range(last - first):
            out[row + place] = load(words, at + place * 4) & LOW_HALF
    return row + max(last - first, 0)  # type: ignore[no-any-return]


@kernel
def _coded_values(
    words: Words,
    pages: Longs,
    page: int,
    entries: Values,
    seen: int,
    count: int,
    state: tuple[int, int, int, int],
    out: Values,
    row: int,
) -> tuple[int, tuple[int, int, int, int]]:
    """Look up `count` values by their codes; the row then (-1 for trouble) and the state of the codes."""
    at, left, bit, value = state
    end, entry, known = pages[page + VALUES_END], pages[page + ENTRY], pages[page + ENTRIES]
    width = signed(cut(words, pages[page + VALUES] * 8, 8))
    while count:
        while left == 0:
            left, value, bit, at = next_run(words, at, end, width)
            if at < 0 or width > 31:
                return -1, state
        step = min(count, left)
        first, last = max(pages[page + FIRST] - seen, 0), min(pages[page + LAST] - seen, step)
        if bit < 0:
            if value >= known:
                return -1, state
            for place in range(last - first):
                out[row + place] = entries[entry + value]
        else:
            if bit + step * width > end * 8:
                return -1, state
            for place in range(first, last):
                code = signed(cut(words, bit + place * width, width))
                if code >= known:
                    return -1, state
                out[row + place - first] = entries[entry + code]
            bit += step * width
        row += max(last - first, 0)
        seen, count, left = seen + step, count - step, left - step
    return row, (at, left, bit, value)


@kernel
def _varint(words: Words, at: int, end: int) -> tuple[np.uint64, int]:
    """An unsigned number, and the byte after it; that is -1 when there is none."""
    value, shift = np.uint64(0), np.uint64(0)
    while 0 <= at < end and shift < np.uint64(64):
        byte = cut(words, at * 8, 8)
        value |= (byte & np.uint64(0x7F)) << shift
        shift, at = shift + np.uint64(7), at + 1
        if byte < np.uint64(0x80):
            return value, at
    return value, -1


@kernel
def _unfolded(value: np.uint64) -> np.uint64:
    """A number out of its zigzag form, as the bits of a signed one."""
    return (value >> np.uint64(1)) ^ (np.uint64(0) - (value & np.uint64(1)))


@kernel
def _deltas(words: Words, at: int, end: int, out: Words, most: int) -> int:
    """Decode numbers that are written as packed differences; how many there are, -1 for trouble."""
    block, at = _varint(words, at, end)
    parts, at = _varint(words, at, end)
    total, at = _varint(words, at, end)
    first, at = _varint(words, at, end)
    if (
        at < 0
        or parts == 0
        or parts > 512
        or block > 1 << 20
        or block % (parts * np.uint64(8))
        or total > np.uint64(most)
    ):
        return -1
    each, count, done, value = signed(block // parts), signed(total), 0, _unfolded(first)
    if count:
        out[0] = value
        done += 1
    while done < count:
        least, at = _varint(words, at, end)
        widths, at = at, at + signed(parts)
        if at < signed(parts) or at > end:
            return -1
        least = _unfolded(least)
        for part in range(signed(parts)):
            width = signed(cut(words, (widths + part) * 8, 8))
            here = min(each, count - done)
            if width > 64 or at * 8 + here * width > end * 8:
                return -1
            for place in range(here):
                value += least + (cut(words, at * 8 + place * width, width) if width else np.uint64(0))
                out[done + place] = value
            done += here
            at += each * width >> 3
    return done


@kernel
def _split_bytes(words: Words, at: int, end: int, out: Words, size: int) -> int:
    """Decode numbers whose first bytes stand together, then their second ones; how many there are."""
    count = (end - at) // size
    for place in range(count):
        value = np.uint64(0)
        for byte in range(size):
            value |= cut(words, (at + byte * count + place) * 8, 8) << np.uint64(8 * byte)
        out[place] = value
    return count


@kernel
def _null_values(out: Values, valid: Bytes, row: int, count: int) -> int:
    for place in range(row, row + count):
        out[place] = 0
        valid[place] = 0
    return row + count


@kernel
def _decode_apart(words: Words, pages: Longs, page: int, apart: Words, size: int) -> int:
    """Decode the values of a page in a form that only decodes as a whole; how many there are, -1 for all other pages.

    A page in trouble has none, which is too few.
    """
    start, end, form = pages[page + VALUES], pages[page + VALUES_END], pages[page + FORM]
    if form == DELTA:
        return max(_deltas(words, start, end, apart, apart.size) if end > start else 0, 0)
    if form == SPLIT:
        return _split_bytes(words, start, end, apart, size) if end - start <= apart.size * size else 0
    return -1


@kernel
def _decode_fixed(
    words: Words,
    pages: Longs,
    page: int,
    entries: Values,
    apart: Words,
    ready: int,
    out: Values,
    size: int,
    valid: Bytes,
    row: int,
) -> int:
    """Decode one page; the row then, -1 for trouble. Of a form that decodes as a whole `ready` values are `apart`."""
    level_at, level_left, level_bit, level_value = pages[page + LEVELS], 0, -1, 0
    state = (pages[page + VALUES] + 1, 0, -1, 0)
    # Nobody needs what stands behind the wanted rows.
    seen, done, total = 0, 0, min(pages[page + COUNT], pages[page + LAST])
    while seen < total:
        count, is_set, level_at, level_left, level_bit, level_value = level_run(
            words, pages, page, level_at, level_left, level_bit, level_value
        )
        if count < 0:
            return -1
        count = min(count, total - seen)
        if not is_set:
            row = _null_values(out, valid, row, kept(pages, page, seen, count))
        elif pages[page + FORM] == PLAIN:
            if pages[page + VALUES] + (done + count) * size > pages[page + VALUES_END]:
                return -1
            row = _plain_values(words, pages, page, seen, count, done, out, size, row)
            done += count
        elif ready >= 0:
            if done + count > ready:
                return -1
            first, last = max(pages[page + FIRST] - seen, 0), min(pages[page + LAST] - seen, count)
            for place in range(first, last):
                out[row + place - first] = apart[done + place]
            row += max(last - first, 0)
            done += count
        else:
            row, state = _coded_values(words, pages, page, entries, seen, count, state, out, row)
            if row < 0:
                return row
        seen += count
    return row


@kernel
def decode_page(
    words: Words,
    pages: Longs,
    page: int,
    entries: Values,
    apart: Words,
    ready: int,
    out: Values,
    valid: Bytes,
    row: int,
) -> tuple[int, int]:
    """Decode the wanted rows of a page behind a row; the row then, -1 for trouble, and how many values are `apart`.

    They are those of this page already where `ready` is what this returned before; else it is below -1.
    """
    if pages[page + FORM] == NULLS:
        return _null_values(out, valid, row, pages[page + LAST] - pages[page + FIRST]), -1
    if ready < -1:
        ready = _decode_apart(words, pages, page, apart, out.itemsize)
    return _decode_fixed(words, pages, page, entries, apart, ready, out, out.itemsize, valid, row), ready


@kernel
def decode_fixed(words: Words, pages: Longs, entries: Values, out: Values, valid: Bytes) -> int:
    """Decode pages of a fixed-width column into one value for each row; the page in trouble or -1.

    `entries` are the values of all dictionaries. A null is 0 in `out`, and 0 in `valid`, which must be 1 before.
    """
    row = 0
    most = 0
    for number in range(pages.size // PAGE_WIDTH):
        if pages[number * PAGE_WIDTH + FORM] >= DELTA:
            most = max(most, pages[number * PAGE_WIDTH + COUNT])
    apart = np.empty(most, np.uint64)
    for number in range(pages.size // PAGE_WIDTH):
        row, _ = decode_page(words, pages, number * PAGE_WIDTH, entries, apart, -2, out, valid, row)
        if row < 0:
            return number
    return -1

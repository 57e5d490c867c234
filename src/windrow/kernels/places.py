"""Values at some rows of pages, and which entries of dictionaries are used, without decoding all of a page."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.hybrid import (
    CODED,
    COUNT,
    ENTRIES,
    ENTRY,
    FORM,
    LEVELS,
    PAGE_WIDTH,
    PLAIN,
    VALUES,
    VALUES_END,
    cut,
    level_run,
    next_run,
    signed,
)
from windrow.kernels.native import load

__all__ = ["entries_at", "mark_entries", "ordinals_at"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]


@kernel
def ordinals_at(words: Words, pages: Longs, rows: Longs, owners: Longs, ordinals: Longs) -> int:
    """Of some rows, which ascend and count over all pages, the page and the place among its values that are set.

    The place of a null is -1. Returns the page in trouble, or -1.
    """
    place, base = 0, 0
    for number in range(pages.size // PAGE_WIDTH):
        page, seen, is_set_so_far = number * PAGE_WIDTH, 0, 0
        total = pages[page + COUNT]
        at, left, bit, value = pages[page + LEVELS], 0, -1, 0
        while place < rows.size and rows[place] < base + total:
            count, is_set, at, left, bit, value = level_run(words, pages, page, at, left, bit, value)
            count = min(count, total - seen)
            if count <= 0:
                return number
            while place < rows.size and rows[place] < base + seen + count:
                owners[place] = number
                ordinals[place] = is_set_so_far + rows[place] - base - seen if is_set else -1
                place += 1
            seen += count
            is_set_so_far += count * is_set
        base += total
    return -1 if place == rows.size else 0


@kernel
def _code_at(
    words: Words, pages: Longs, page: int, ordinal: int, state: tuple[int, int, int, int, int]
) -> tuple[int, tuple[int, int, int, int, int]]:
    """The code of a value that is set, -1 for trouble, and the state: a byte, the rows before its run, and the run."""
    at, seen, left, bit, value = state
    end, start = pages[page + VALUES_END], pages[page + VALUES]
    if start >= end:
        return -1, state
    width = signed(cut(words, start * 8, 8))
    while seen + left <= ordinal:
        seen += left
        left, value, bit, at = next_run(words, at, end, width)
        if at < 0 or width > 31:
            return -1, state
    state = (at, seen, left, bit, value)
    if bit < 0:
        return value, state
    first = bit + (ordinal - seen) * width
    if first + width > end * 8:
        return -1, state
    return signed(cut(words, first, width)), state


@kernel
def entries_at(words: Words, pages: Longs, owners: Longs, ordinals: Longs, entries: Longs) -> int:
    """The numbers of the entries that stand for values: of such places as `ordinals_at` gives; -1 for nulls.

    The entries of a page in PLAIN are its values. Returns the page in trouble, or -1.
    """
    last = -1
    state = (0, 0, 0, -1, 0)
    for place in range(owners.size):
        number, code = owners[place], ordinals[place]
        page = number * PAGE_WIDTH
        if code < 0:
            entries[place] = -1
            continue
        if pages[page + FORM] == CODED:
            if number != last:
                state, last = (pages[page + VALUES] + 1, 0, 0, -1, 0), number
            code, state = _code_at(words, pages, page, code, state)
        elif pages[page + FORM] != PLAIN:
            code = -1
        if code < 0 or code >= pages[page + ENTRIES]:
            return number  # type: ignore[no-any-return]
        entries[place] = pages[page + ENTRY] + code
    return -1


@kernel
def _count_set(words: Words, pages: Longs, page: int) -> int:
    """How many values of a page are not null; -1 for trouble."""
    found, seen, total = 0, 0, pages[page + COUNT]
    at, left, bit, value = pages[page + LEVELS], 0, -1, 0
    while seen < total:
        count, is_set, at, left, bit, value = level_run(words, pages, page, at, left, bit, value)
        count = min(count, total - seen)
        if count <= 0:
            return -1
        found += count * is_set
        seen += count
    return found


@kernel
def _mark_packed(
    words: Words, bit: int, width: int, count: int, first: int, known: int, used: Bytes, missing: int
) -> int:
    """Mark packed codes; how many entries are missing then, -1 for trouble."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for _ in range(count):
        code = signed(load(words, bit >> 3) >> np.uint64(bit & 7) & mask)
        if code >= known:
            return -1
        missing -= 1 - used[first + code]
        used[first + code] = 1
        bit += width
    return missing


@kernel
def _mark_page(words: Words, pages: Longs, page: int, used: Bytes, missing: int) -> int:
    """Mark the entries that a page uses, until none is missing; how many are, or -1 for trouble."""
    count, at, end = _count_set(words, pages, page), pages[page + VALUES], pages[page + VALUES_END]
    first, known = pages[page + ENTRY], pages[page + ENTRIES]
    if count < 0 or (count and at >= end):
        return -1
    width = signed(cut(words, at * 8, 8)) if count else 0
    at += 1
    while count and missing > 0:
        run, value, bit, at = next_run(words, at, end, width)
        if at < 0 or width > 31:
            return -1
        run = min(run, count)
        if bit >= 0:
            if bit + run * width > end * 8:
                return -1
            missing = _mark_packed(words, bit, width, run, first, known, used, missing)
        else:
            if value >= known:
                return -1
            missing -= 1 - used[first + value]
            used[first + value] = 1
        count -= run
    return missing


@kernel
def mark_entries(words: Words, pages: Longs, owners: Longs, used: Bytes, missing: Longs) -> int:
    """Mark the entries of dictionaries that pages use, until none of a chunk is missing; the page in trouble or -1.

    `owners` has the chunk of each page, `missing` the number of entries of each chunk that are not marked.
    """
    for number in range(owners.size):
        owner = owners[number]
        if pages[number * PAGE_WIDTH + FORM] == CODED and missing[owner] > 0:
            missing[owner] = _mark_page(words, pages, number * PAGE_WIDTH, used, missing[owner])
            if missing[owner] < 0:
                return number
    return -1

"""Pages of flat columns: found behind their headers, and decoded into runs or fixed-width values.

All pages of a column, from any number of files, are decoded by one call. Bytes are given as 64-bit words with at least
two words of padding behind them, so that a value of any width is cut out of two words. Nothing is trusted: a kernel
returns the number of the page that it cannot read, and -1 when all is well.
"""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels import rules as r
from windrow.kernels.checksums import crc32
from windrow.kernels.compiled import kernel
from windrow.kernels.hybrid import (
    CODED,
    COUNT,
    ENTRIES,
    ENTRY,
    FIRST,
    FORM,
    LAST,
    LEVELS,
    LEVELS_END,
    NULL_CODE,
    NULLS,
    PAGE_WIDTH,
    PLAIN,
    VALUES,
    VALUES_END,
    cut,
    kept,
    level_run,
    next_run,
    signed,
)
from windrow.kernels.native import bits_set, load
from windrow.kernels.thrift import walk

__all__ = ["count_set", "damaged_run", "decode_codes", "decode_rows", "index_texts", "join_rows", "scan_pages"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

# The numbers of a page header's record, as `windrow.parquet.page_grammar` lays it out.
FLAGS, KIND, SIZE, VALUES_IN, BODY, CHUNK, CRC, HEADER_WIDTH = 0, 1, 3, 4, 9, 10, 11, 12
PROTECTED = 2
DICTIONARY_KIND = 2
LOW_HALF = np.uint64(0xFFFFFFFF)


@kernel
def scan_pages(
    source: Bytes, starts: Longs, ends: Longs, values: Longs, grammar: Longs, layout: Longs, records: Longs
) -> tuple[int, int]:
    """Read the headers of all pages of many chunks: how many there are, or the negated trouble and the chunk in it.

    `values` says how many values each chunk has: reading it ends when the data pages have given so many.
    """
    pages = 0
    for chunk in range(starts.size):
        at, left = starts[chunk], values[chunk]
        while left > 0:
            row = pages * HEADER_WIDTH
            if row + HEADER_WIDTH > records.size:
                return -r.FULL, chunk
            layout[r.START], layout[r.USED] = row, 0
            body, _, _, _ = walk(source, at, grammar, layout, records)
            size, count = records[row + SIZE], records[row + VALUES_IN]
            if body < 0 or size < 0 or count < 0 or size > ends[chunk] - body:
                return -r.TRUNCATED, chunk
            records[row + BODY], records[row + CHUNK] = body, chunk
            at, pages = body + size, pages + 1
            if records[row + KIND] != DICTIONARY_KIND:
                if count > left:
                    return -r.TRUNCATED, chunk
                left -= count
    return pages, 0


@kernel
def damaged_run(
    source: Bytes, starts: Longs, ends: Longs, whole: Truths, grammar: Longs, layout: Longs, records: Longs
) -> int:
    """The first run of pages that is not what was written, or -1: pages have the CRC-32 that their headers state.

    A page without a checksum is passed over. A run that is `whole` ends where a page does; of another, the page that
    reaches beyond the end is not looked at, nor is what follows it.
    """
    for run in range(starts.size):
        at = starts[run]
        while at < ends[run]:
            layout[r.START], layout[r.USED] = 0, 0
            records[:] = 0
            body, _, _, _ = walk(source, at, grammar, layout, records)
            size = records[SIZE]
            if body < 0 or size < 0 or size > ends[run] - body:
                break
            if records[FLAGS] & PROTECTED and crc32(0, source, body, size) != records[CRC] & 0xFFFFFFFF:
                return run
            at = body + size
        if whole[run] and at != ends[run]:
            return run
    return -1


@kernel
def _append(codes: Ints, ends: Longs, runs: int, code: int, row: int) -> int:
    """Let a run of a code end at a row; it joins the run before it when that has the same code."""
    if runs and codes[runs - 1] == code:
        ends[runs - 1] = row
        return runs
    codes[runs] = code
    ends[runs] = row
    return runs + 1


@kernel
def _packed_codes(
    words: Words,
    pages: Longs,
    page: int,
    bit: int,
    width: int,
    count: int,
    seen: int,
    entries: Ints,
    codes: Ints,
    ends: Longs,
    runs: int,
    row: int,
) -> tuple[int, int]:
    """Append codes that stand one by one; the runs then, -1 for trouble, and the row."""
    for place in range(count):
        value = signed(cut(words, bit + place * width, width))
        if value >= pages[page + ENTRIES]:
            return -1, row
        if pages[page + FIRST] <= seen + place < pages[page + LAST]:
            row += 1
            runs = _append(codes, ends, runs, signed(entries[pages[page + ENTRY] + value]), row)
    return runs, row


@kernel
def _set_codes(
    words: Words,
    pages: Longs,
    page: int,
    state: tuple[int, int, int, int],
    width: int,
    count: int,
    seen: int,
    entries: Ints,
    codes: Ints,
    ends: Longs,
    runs: int,
    row: int,
) -> tuple[int, int, tuple[int, int, int, int]]:
    """Append the codes of `count` values that are set; the runs then (-1 for trouble), the row, and the state."""
    at, left, bit, value = state
    end = pages[page + VALUES_END]
    while count:
        while left == 0:
            left, value, bit, at = next_run(words, at, end, width)
            if at < 0:
                return -1, row, state
        step = min(count, left)
        if bit >= 0:
            if bit + step * width > end * 8:
                return -1, row, state
            runs, row = _packed_codes(words, pages, page, bit, width, step, seen, entries, codes, ends, runs, row)
            if runs < 0:
                return runs, row, state
            bit += step * width
        else:
            if value >= pages[page + ENTRIES]:
                return -1, row, state
            wanted = kept(pages, page, seen, step)
            if wanted:
                row += wanted
                runs = _append(codes, ends, runs, signed(entries[pages[page + ENTRY] + value]), row)
        seen, count, left = seen + step, count - step, left - step
    return runs, row, (at, left, bit, value)


@kernel
def _decode_codes(
    words: Words, pages: Longs, page: int, entries: Ints, codes: Ints, ends: Longs, runs: int, row: int
) -> tuple[int, int]:
    """Decode one page behind the runs there are; the runs then, -1 for trouble, and the row."""
    level_at, level_left, level_bit, level_value = pages[page + LEVELS], 0, -1, 0
    at, width = pages[page + VALUES], 0
    if pages[page + FORM] == CODED and at < pages[page + VALUES_END]:
        width = signed(cut(words, at * 8, 8))
    state = (at + 1, 0, -1, 0)
    seen, entry, total = 0, 0, pages[page + COUNT]
    while seen < total and width < 32:
        count, is_set, level_at, level_left, level_bit, level_value = level_run(
            words, pages, page, level_at, level_left, level_bit, level_value
        )
        if count < 0:
            return -1, row
        count = min(count, total - seen)
        if not is_set:
            wanted = kept(pages, page, seen, count)
            if wanted:
                row += wanted
                runs = _append(codes, ends, runs, NULL_CODE, row)
        elif pages[page + FORM] == PLAIN:
            for place in range(count):
                if pages[page + FIRST] <= seen + place < pages[page + LAST]:
                    row += 1
                    code = signed(entries[pages[page + ENTRY] + entry + place])
                    runs = _append(codes, ends, runs, code, row)
            entry += count
        else:
            runs, row, state = _set_codes(
                words, pages, page, state, width, count, seen, entries, codes, ends, runs, row
            )
            if runs < 0:
                return runs, row
        seen += count
    return runs if seen >= total else -1, row


@kernel
def decode_codes(words: Words, pages: Longs, entries: Ints, codes: Ints, ends: Longs) -> tuple[int, int]:
    """Decode pages of a dictionary column into runs of (code, end row); how many runs, and the page in trouble or -1.

    A page's own codes become `entries[ENTRY + code]`. A page in PLAIN has one entry for each of its values. A null's
    code is NULL_CODE.
    """
    runs, row = 0, 0
    for number in range(pages.size // PAGE_WIDTH):
        page = number * PAGE_WIDTH
        if pages[page + FORM] == NULLS:
            row += pages[page + LAST] - pages[page + FIRST]
            runs = _append(codes, ends, runs, NULL_CODE, row)
            continue
        runs, row = _decode_codes(words, pages, page, entries, codes, ends, runs, row)
        if runs < 0:
            return runs, number
    return runs, -1


@kernel
def _unpack(
    words: Words, bit: int, width: int, count: int, entries: Ints, entry: int, known: int, codes: Ints, row: int
) -> int:
    """Look up so many packed codes; -1 when one has no entry."""
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for place in range(count):
        code = signed(load(words, bit >> 3) >> np.uint64(bit & 7) & mask)
        if code >= known:
            return -1
        codes[row + place] = entries[entry + code]
        bit += width
    return 0


@kernel
def _row_codes(
    words: Words,
    pages: Longs,
    page: int,
    state: tuple[int, int, int, int],
    count: int,
    entries: Ints,
    codes: Ints,
    row: int,
) -> tuple[int, tuple[int, int, int, int]]:
    """Write the codes of the next `count` values that are set, from a row on; -1 for trouble, and the state."""
    at, left, bit, value = state
    end, entry, known = pages[page + VALUES_END], pages[page + ENTRY], pages[page + ENTRIES]
    width = signed(cut(words, pages[page + VALUES] * 8, 8))
    while count:
        while left == 0:
            left, value, bit, at = next_run(words, at, end, width)
            if at < 0 or width > 31:
                return -1, state
        step = min(count, left)
        if bit < 0:
            if value >= known:
                return -1, state
            for place in range(row, row + step):
                codes[place] = entries[entry + value]
        else:
            if bit + step * width > end * 8:
                return -1, state
            if _unpack(words, bit, width, step, entries, entry, known, codes, row) < 0:
                return -1, state
            bit += step * width
        row, count, left = row + step, count - step, left - step
    return 0, (at, left, bit, value)


@kernel
def _bits_set(words: Words, bit: int, count: int) -> int:
    """How many bits from one on are set."""
    found = 0
    for done in range(0, count, 64):
        found += bits_set(cut(words, bit + done, min(count - done, 64)))
    return found


@kernel
def _spread(words: Words, bit: int, count: int, is_set: int, codes: Ints, row: int) -> None:
    """Let the `is_set` codes from a row on stand where bits are set, and nulls where they are not."""
    for place in range(count - 1, -1, -1):
        at = bit + place
        level = signed(load(words, at >> 3) >> np.uint64(at & 7) & np.uint64(1))
        is_set -= level
        # all bits are set in the code of null; a branch would be guessed wrong too often
        codes[row + place] = signed(codes[row + is_set]) | (level - 1)


@kernel
def _page_rows(words: Words, pages: Longs, page: int, entries: Ints, codes: Ints, row: int) -> int:
    """Decode all codes of a page, from a row on; -1 for trouble."""
    at, end, last = pages[page + LEVELS], pages[page + LEVELS_END], row + pages[page + COUNT]
    state = (pages[page + VALUES] + 1, 0, -1, 0)
    if at == end:
        return _row_codes(words, pages, page, state, last - row, entries, codes, row)[0]
    while row < last:
        count, value, bit, at = next_run(words, at, end, 1)
        count = min(count, last - row)
        if at < 0 or (bit >= 0 and bit + count > end * 8):
            return -1
        # the value of a damaged run may be any
        is_set = _bits_set(words, bit, count) if bit >= 0 else count * (value != 0)
        trouble, state = _row_codes(words, pages, page, state, is_set, entries, codes, row)
        if trouble < 0:
            return -1
        if bit >= 0:
            _spread(words, bit, count, is_set, codes, row)
        elif not value:
            _null_rows(codes, row, count)
        row += count
    return 0


@kernel
def _null_rows(codes: Ints, row: int, count: int) -> None:
    for place in range(row, row + count):
        codes[place] = NULL_CODE


@kernel
def decode_rows(words: Words, pages: Longs, entries: Ints, codes: Ints) -> int:
    """Decode pages of dictionary codes into a code for each row; the page in trouble or -1."""
    row, most = 0, 0
    for page in range(0, pages.size, PAGE_WIDTH):
        if pages[page + LAST] - pages[page + FIRST] < pages[page + COUNT]:
            most = max(most, pages[page + COUNT])
    whole = np.empty(most, np.int32)
    for number in range(pages.size // PAGE_WIDTH):
        page, trouble = number * PAGE_WIDTH, 0
        first, wanted = pages[page + FIRST], pages[page + LAST] - pages[page + FIRST]
        if pages[page + FORM] == NULLS:
            _null_rows(codes, row, wanted)
        elif wanted == pages[page + COUNT]:
            trouble = _page_rows(words, pages, page, entries, codes, row)
        else:
            trouble = _page_rows(words, pages, page, entries, whole, 0)
            codes[row : row + wanted] = whole[first : first + wanted]
        if trouble < 0:
            return number
        row += wanted
    return -1


@kernel
def join_rows(codes: Ints, out: Ints, ends: Longs) -> None:
    """Join equal neighbours into runs of (code, end row), for which there is room."""
    runs = 0
    for row in range(codes.size):
        if row == 0 or codes[row] != codes[row - 1]:
            out[runs] = codes[row]
            runs += 1
        ends[runs - 1] = row + 1


@kernel
def index_texts(words: Words, starts: Longs, ends: Longs, counts: Longs, offsets: Longs, lengths: Longs) -> int:
    """Find the texts of PLAIN byte arrays: `counts` of them in each stretch of bytes; the stretch in trouble or -1."""
    place = 0
    for number in range(starts.size):
        at, end = starts[number], ends[number]
        for _ in range(counts[number]):
            if at + 4 > end:
                return number
            length = signed(load(words, at) & LOW_HALF)
            at += 4
            if length > end - at:
                return number
            offsets[place], lengths[place] = at, length
            at, place = at + length, place + 1
    return -1


@kernel
def count_set(words: Words, pages: Longs, counts: Longs) -> int:
    """Count the values of each page that are not null; the page in trouble or -1."""
    for number in range(counts.size):
        page, seen = number * PAGE_WIDTH, 0
        at, left, bit, value = pages[page + LEVELS], 0, -1, 0
        while seen < pages[page + COUNT]:
            count, is_set, at, left, bit, value = level_run(words, pages, page, at, left, bit, value)
            if count < 0:
                return number
            count = min(count, pages[page + COUNT] - seen)
            counts[number] += count * is_set
            seen += count
    return -1

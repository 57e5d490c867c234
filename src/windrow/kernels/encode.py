"""Columns become pages: all chunks of a column, whatever their number, are encoded by one call.

`bounds` are the rows at which pages are cut, `chunks` the number of each chunk's first page and, last, that of all
pages. What is written lies in one buffer, where the tables of pages and dictionaries say.
"""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917, FBT001

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = ["as_runs", "bit_width", "encode_levels", "encode_texts", "literal", "pack"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Grid = np.ndarray[tuple[int, int], np.dtype[np.int64]]

# The numbers of a page: its rows, how many of them are null, where its levels and its values are and how many bytes
# they have, the encoding of its values, its least and its greatest code (-1 when all are null).
ROWS, NULLS, LEVELS, LEVEL_BYTES, VALUES, VALUE_BYTES, ENCODING, LOW, HIGH = range(9)
PAGE_WIDTH = 9
PLAIN, CODED = 0, 8
# The numbers of a chunk's dictionary: its entries, none when it has no dictionary, where it is and its bytes.
ENTRIES, PLACE, SIZE = range(3)

STRETCH = 480
"""So many codes that are packed follow a header of one byte: readers unpack 32 at once."""
FEW_TEXTS = 16
"""Where a chunk has fewer than one in so many texts, those that it has are sorted and not looked for."""


@kernel
def _varint(out: Bytes, at: int, value: int) -> int:
    while value > 0x7F:
        out[at] = (value & 0x7F) | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


@kernel
def _repeat(out: Bytes, at: int, code: int, count: int, width: int) -> int:
    """Write a run of one code."""
    at = _varint(out, at, count << 1)
    for byte in range((width + 7) >> 3):
        out[at] = (code >> (8 * byte)) & 0xFF
        at += 1
    return at


@kernel
def literal(out: Bytes, at: int, codes: Ints, count: int, width: int) -> int:
    """Write codes one by one, in groups of eight; what is missing from the last group is 0.

    They are written in stretches, since DuckDB takes 1.4 times as long to decode a page of one stretch.
    """
    while count > STRETCH:
        at = _groups(out, at, codes, STRETCH, width)
        codes, count = codes[STRETCH:], count - STRETCH
    return _groups(out, at, codes, count, width)


@kernel
def _groups(out: Bytes, at: int, codes: Ints, count: int, width: int) -> int:
    """Write a stretch of codes."""
    groups = (count + 7) >> 3
    at = _varint(out, at, groups << 1 | 1)
    held, bits, step = np.uint64(0), np.uint64(0), np.uint64(width)
    for place in range(groups * 8):
        held |= (np.uint64(codes[place]) if place < count else np.uint64(0)) << bits
        bits += step
        if bits >= np.uint64(32):
            for byte in range(4):
                out[at + byte] = np.uint8((held >> np.uint64(8 * byte)) & np.uint64(0xFF))
            held >>= np.uint64(32)
            bits -= np.uint64(32)
            at += 4
    while bits > np.uint64(0):
        out[at] = np.uint8(held & np.uint64(0xFF))
        held >>= np.uint64(8)
        bits -= np.uint64(8)
        at += 1
    return at


@kernel
def pack(codes: Ints, lengths: Longs, first: int, last: int, width: int, pending: Ints, out: Bytes, at: int) -> int:
    """Write runs in the hybrid encoding: long ones as one code and a count, what lies between as groups of eight."""
    held = 0
    for run in range(first, last):
        code, count = codes[run], lengths[run]
        if count == 1:
            pending[held] = code
            held += 1
            continue
        fill = min((8 - held % 8) % 8, count)
        # a group that was begun has to be filled before a run can be written as one
        if count - fill < 8:
            fill = count
        for place in range(fill):
            pending[held + place] = code
        held, count = held + fill, count - fill
        if count:
            if held:
                at = literal(out, at, pending, held, width)
                held = 0
            at = _repeat(out, at, code, count, width)
    return literal(out, at, pending, held, width) if held else at


@kernel
def _pack_levels(
    codes: Ints, ends: Longs, run: int, low: int, high: int, scratch: tuple[Ints, Longs, Ints], out: Bytes, at: int
) -> int:
    """Write which rows from `low` up to `high` are set; the byte after it. The first of them is in run `run`."""
    levels, lengths, pending = scratch
    count, row = 0, low
    while row < high:
        end = min(ends[run], high)
        level = np.int32(codes[run] >= 0)
        if count and levels[count - 1] == level:
            lengths[count - 1] += end - row
        else:
            levels[count] = level
            lengths[count] = end - row
            count += 1
        run += ends[run] == end
        row = end
    return pack(levels, lengths, 0, count, 1, pending, out, at)


@kernel
def _write_levels(
    source: tuple[Ints, Longs],
    run: int,
    rows: tuple[int, int],
    pages: Longs,
    page: int,
    scratch: tuple[Ints, Longs, Ints],
    out: Bytes,
    at: int,
) -> int:
    """Write the levels of a page whose nulls are counted; the byte after them."""
    pages[page + LEVELS] = at
    if pages[page + NULLS] == 0:
        at = _repeat(out, at, 1, rows[1] - rows[0], 1)
    else:
        at = _pack_levels(source[0], source[1], run, rows[0], rows[1], scratch, out, at)
    pages[page + LEVEL_BYTES] = at - pages[page + LEVELS]
    return at


@kernel
def _localise(
    source: tuple[Ints, Longs],
    run: int,
    rows: tuple[int, int],
    coding: tuple[Ints, Ints],
    distinct: int,
    made: tuple[Ints, Longs],
    first: int,
    pages: Longs,
    page: int,
) -> tuple[int, int, int]:
    """Turn the runs of a page into runs of local codes, as they appear; where these end, distinct codes
    so far, and the run that the next page begins in."""
    (codes, ends), (local, used), (mine, lengths), (low, high) = source, coding, made, rows
    count, row, nulls, least, most = first, low, 0, -1, -1
    while row < high:
        end, code = min(ends[run], high), codes[run]
        if code < 0:
            nulls += end - row
        else:
            if local[code] < 0:
                local[code] = distinct
                used[distinct] = code
                distinct += 1
            mine[count] = local[code]
            lengths[count] = end - row
            count += 1
            least = code if least < 0 else min(least, code)
            most = max(most, code)
        run += ends[run] == end
        row = end
    pages[page + ROWS] = high - low
    pages[page + NULLS] = nulls
    pages[page + LOW] = least
    pages[page + HIGH] = most
    return count, distinct, run


@kernel
def _in_order(local: Ints, texts: int, used: Ints, distinct: int, mine: Ints, runs: int) -> None:
    """Give the local codes of a chunk out anew, in the order of their texts: these take fewer bytes so."""
    order, fresh = np.empty(distinct, np.int32), np.empty(distinct, np.int32)
    if texts > FEW_TEXTS * distinct:
        for place in range(distinct):
            order[place] = used[place]
        order.sort()
    else:
        place = 0
        for code in range(texts):
            if local[code] >= 0:
                order[place] = code
                place += 1
    for place in range(distinct):
        fresh[local[order[place]]] = place
        used[place] = order[place]
    for run in range(runs):
        mine[run] = fresh[mine[run]]


@kernel
def bit_width(distinct: int) -> int:
    """How many bits the codes of so many entries need; readers expect at least one."""
    width = 1
    while (1 << width) < distinct:
        width += 1
    return width


@kernel
def _dictionary(
    used: Ints, distinct: int, offsets: Longs, lengths: Longs, data: Bytes, most: int, out: Bytes, at: int
) -> int:
    """Write the entries, each behind its length; the byte after them, -1 when they have more than `most` bytes."""
    total = 0
    for place in range(distinct):
        total += 4 + lengths[used[place]]
    if total > most:
        return -1
    for place in range(distinct):
        source, length = offsets[used[place]], lengths[used[place]]
        for byte in range(4):
            out[at + byte] = (length >> (8 * byte)) & 0xFF
        at += 4
        for byte in range(length):
            out[at + byte] = data[source + byte]
        at += length
    return at


@kernel
def encode_texts(
    codes: Ints,
    ends: Longs,
    bounds: Longs,
    chunks: Longs,
    nullable: bool,
    texts: tuple[Longs, Longs, Bytes],
    most: int,
    pages: Grid,
    dictionaries: Grid,
    out: Bytes,
) -> int:
    """Encode runs of codes as pages of texts: for each its levels, and a width with codes of its chunk's dictionary.

    `texts` are the places, the lengths and the bytes of all texts. A chunk whose dictionary would have more than `most`
    bytes has none, and its pages no values: they are left to the caller. How many bytes were written.
    """
    offsets, text_lengths, data = texts
    rows, total = 0, pages.shape[0]
    for chunk in range(chunks.size - 1):
        rows = max(rows, bounds[chunks[chunk + 1]] - bounds[chunks[chunk]])
    local, used = np.full(offsets.size + 1, -1, np.int32), np.empty(min(rows, offsets.size) + 1, np.int32)
    mine, lengths, pending = np.empty(rows, np.int32), np.empty(rows, np.int64), np.empty(rows + 8, np.int32)
    levels, level_lengths = np.empty(rows, np.int32), np.empty(rows, np.int64)
    firsts, page_runs = np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64)
    table = pages.reshape(-1)
    source = codes, ends
    at = 0
    while page_runs[0] < ends.size and ends[page_runs[0]] <= bounds[0]:
        page_runs[0] += 1
    for chunk in range(chunks.size - 1):
        distinct, firsts[chunks[chunk]] = 0, 0
        for page in range(chunks[chunk], chunks[chunk + 1]):
            coding, made = (local, used), (mine, lengths)
            low, high, place = bounds[page], bounds[page + 1], page * PAGE_WIDTH
            firsts[page + 1], distinct, page_runs[page + 1] = _localise(
                source, page_runs[page], (low, high), coding, distinct, made, firsts[page], table, place
            )
        runs = firsts[chunks[chunk + 1]]
        _in_order(local, offsets.size, used, distinct, mine, runs)
        end = _dictionary(used, distinct, offsets, text_lengths, data, most, out, at)
        coded = distinct > 0 and end >= 0
        if coded:
            dictionaries[chunk, ENTRIES], dictionaries[chunk, PLACE], dictionaries[chunk, SIZE] = distinct, at, end - at
            at = end
        for page in range(chunks[chunk], chunks[chunk + 1]):
            if nullable:
                scratch = levels, level_lengths, pending
                rows_of, place = (bounds[page], bounds[page + 1]), page * PAGE_WIDTH
                at = _write_levels(source, page_runs[page], rows_of, table, place, scratch, out, at)
            pages[page, VALUES] = at
            if coded:
                pages[page, ENCODING], out[at] = CODED, bit_width(distinct)
                first, last, width = firsts[page], firsts[page + 1], bit_width(distinct)
                at = pack(mine, lengths, first, last, width, pending, out, at + 1)
            pages[page, VALUE_BYTES] = at - pages[page, VALUES]
        for place in range(distinct):
            local[used[place]] = -1
    return at


@kernel
def as_runs(codes: Ints, first: int, last: int, out: Ints, lengths: Longs) -> int:
    """Join equal neighbours into runs; how many there are."""
    count, before = 0, np.int64(-1)
    for place in range(first, last):
        code = np.int64(codes[place])
        if code == before:
            lengths[count - 1] += 1
        else:
            out[count] = code
            lengths[count] = 1
            count += 1
            before = code
    return count


@kernel
def encode_levels(valid: Bytes, bounds: Longs, pages: Grid, out: Bytes) -> None:
    """Encode which rows are set, page by page; without `valid` all of them are."""
    at, most = 0, 0
    for page in range(bounds.size - 1):
        most = max(most, bounds[page + 1] - bounds[page])
    levels, lengths, pending = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most + 8, np.int32)
    for page in range(bounds.size - 1):
        begin, low, high, count = at, bounds[page], bounds[page + 1], 0
        if valid.size:
            count = as_runs(valid, low, high, levels, lengths)  # type: ignore[arg-type]
            for run in range(count):
                pages[page, NULLS] += lengths[run] if levels[run] == 0 else 0
        if pages[page, NULLS] == 0 and high > low:
            at = _repeat(out, at, 1, high - low, 1)
        elif high > low:
            at = pack(levels, lengths, 0, count, 1, pending, out, at)
        pages[page, LEVELS], pages[page, LEVEL_BYTES] = begin, at - begin

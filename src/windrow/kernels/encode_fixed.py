"""Columns of fixed width become pages: all chunks of a column, whatever their number, are encoded by one call.

Values that repeat are coded by a dictionary, some pages at a time. What else is chosen for each chunk is tried on a
sample of its own values, with the compressor that writes the pages: whether codes take whole bytes, which a compressor
can tell apart where it sees nothing in packed bits, and how values are written that are not coded.
"""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917, FBT001

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.encode import (
    CODED,
    ENCODING,
    ENTRIES,
    PLACE,
    VALUE_BYTES,
    VALUES,
    as_runs,
    bit_width,
    literal,
    pack,
)
from windrow.kernels.frames import bound
from windrow.kernels.native import call, leading_zeros

__all__ = ["encode_fixed", "write_otherwise"]

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Grid = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Values = TypeVar("Values", npt.NDArray[np.uint64], npt.NDArray[np.uint32])
"""Values of eight or of four bytes."""

PLAIN, DELTAS, SPLIT = 0, 5, 9

TRIAL, REPEATS = 1024, 8
"""Of so many values at most three in four may be new, and each must come so often on average to be coded."""
JUDGED = 16 * 1024
"""Pages are coded or not together up to so many values: small ones alone would not show what repeats."""
CODES_TRIED, VALUES_TRIED = 512, 512
"""How many codes and how many values are tried of each of four pages."""
BLOCK, PART = 128, 32
"""Differences are packed in parts of a block, each with a width of its own."""


@kernel
def _slot(value: np.uint64, bits: int) -> int:
    return np.int64((value * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits))  # type: ignore[return-value]


@kernel
def _forget(table: Ints, bits: int, entries: Values, low: int, high: int) -> None:
    """Take the entries from `low` up to `high` out again, last in first out."""
    for number in range(high - 1, low - 1, -1):
        slot = _slot(np.uint64(entries[number]), bits)
        while table[slot] != number:
            slot = (slot + 1) & ((1 << bits) - 1)
        table[slot] = -1


@kernel
def _code_page(
    values: Values, start: int, end: int, table: Ints, bits: int, entries: Values, distinct: int, most: int, codes: Ints
) -> tuple[int, int]:
    """Code the values of a page; how many entries there are then, and whether the page was coded to its end."""
    before, code = distinct, np.int32(-1)
    for place in range(start, end):
        value = values[place]
        # times on a grid follow each other in the same order again and again
        if 0 <= code < distinct - 1 and entries[code + 1] == value:
            code += np.int32(1)
        elif code < 0 or entries[code] != value:
            slot = _slot(np.uint64(value), bits)
            while table[slot] >= 0 and entries[table[slot]] != value:
                slot = (slot + 1) & ((1 << bits) - 1)
            code = table[slot]
            if code < 0:
                # most pages that will not do show it early
                seen, new = place - start, distinct - before
                if distinct >= most or (seen >= TRIAL and 4 * new > 3 * seen):
                    return distinct, 0
                code = np.int32(distinct)
                table[slot] = code
                entries[distinct] = value
                distinct += 1
        codes[place - start] = code
    return distinct, 1


@kernel
def _changes(codes: Ints, first: int, last: int) -> int:
    """How many codes differ from the one ahead; where almost all do there are no runs to be found."""
    count = 0
    for place in range(first + 1, last):
        count += codes[place] != codes[place - 1]
    return count


@kernel
def _compressed(library: tuple[int, int], source: Bytes, size: int, frame: Bytes) -> int:
    """How many bytes the compressor makes of some."""
    packed = call(frame, 0, frame.size, library[0], library[1], source, 0, size)
    return size if packed < 0 else min(packed, size)


@kernel
def _nth(pages: Grid, first: int, last: int, coded: bool, number: int) -> int:
    """The page that is the `number`-th of those that are coded, or of those that are not."""
    for page in range(first, last):
        if (pages[page, ENCODING] == CODED) == coded:
            if number == 0:
                return page
            number -= 1
    return -1


@kernel
def _count(pages: Grid, first: int, last: int) -> int:
    """How many pages are coded."""
    count = 0
    for page in range(first, last):
        count += pages[page, ENCODING] == CODED
    return count


@kernel
def _code_width(
    library: tuple[int, int],
    codes: Ints,
    bounds: Longs,
    pages: Grid,
    first: int,
    last: int,
    distinct: int,
    frame: Bytes,
) -> int:
    """The bits of a code: whole bytes where a sixteenth of a sample is saved by them, else as few as there can be."""
    least = bit_width(distinct)
    whole, count = (least + 7) & ~7, _count(pages, first, last)
    if least == whole or count == 0:
        return least
    sample, at = np.empty(4 * CODES_TRIED, np.int32), 0
    for number in range(min(count, 4)):
        page = _nth(pages, first, last, True, number * count // min(count, 4))
        start = bounds[page] - bounds[first]
        size = min(bounds[page + 1] - bounds[page], CODES_TRIED)
        for place in range(size):
            sample[at + place] = codes[start + place]
        at += size
    tried = np.empty(3 * sample.size, np.uint8)
    packed = _compressed(library, tried, literal(tried, 0, sample, at, least), frame)
    return (
        whole if 16 * _compressed(library, tried, literal(tried, 0, sample, at, whole), frame) < 15 * packed else least
    )


@kernel
def _long_varint(out: Bytes, at: int, value: np.uint64) -> int:
    while value > np.uint64(0x7F):
        out[at] = np.uint8(value & np.uint64(0x7F)) | np.uint8(0x80)
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@kernel
def _folded(value: np.uint64) -> np.uint64:
    """The bits of a signed number in zigzag form."""
    return (value << np.uint64(1)) ^ (np.uint64(0) - (value >> np.uint64(63)))


@kernel
def _widened(value: np.uint64, size: int) -> np.uint64:
    """The bits of a signed number of so many bytes as one of eight."""
    if size == 8:
        return value
    value &= np.uint64(0xFFFFFFFF)
    return value | np.uint64(0xFFFFFFFF00000000) if value >> np.uint64(31) else value


@kernel
def _pack_part(deltas: npt.NDArray[np.uint64], first: int, width: int, out: Bytes, at: int) -> int:
    """Write the lowest bits of the numbers of a part; the byte after them."""
    held, bits = np.uint64(0), 0
    for place in range(PART):
        value = deltas[first + place]
        held |= value << np.uint64(bits)
        bits += width
        if bits >= 64:
            for byte in range(8):
                out[at + byte] = np.uint8((held >> np.uint64(8 * byte)) & np.uint64(0xFF))
            at, bits = at + 8, bits - 64
            held = value >> np.uint64(width - bits) if bits else np.uint64(0)
    for byte in range(bits >> 3):
        out[at + byte] = np.uint8((held >> np.uint64(8 * byte)) & np.uint64(0xFF))
    return at + (bits >> 3)


@kernel
def _deltas(values: Values, start: int, end: int, size: int, out: Bytes, at: int) -> int:
    """Write values as packed differences; the byte after them."""
    at = _long_varint(out, at, np.uint64(BLOCK))
    at = _long_varint(out, at, np.uint64(BLOCK // PART))
    at = _long_varint(out, at, np.uint64(end - start))
    at = _long_varint(out, at, _folded(_widened(np.uint64(values[start]), size)))
    deltas, sign = np.empty(BLOCK, np.uint64), np.uint64(1) << np.uint64(63)
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) if size == 8 else np.uint64(0xFFFFFFFF)
    for first in range(start + 1, end, BLOCK):
        count, least = min(BLOCK, end - first), ~np.uint64(0)
        for place in range(count):
            delta = _widened(np.uint64(values[first + place]) - np.uint64(values[first + place - 1]), size)
            deltas[place] = delta
            # numbers compare as signed ones once their sign is turned around
            least = min(least, delta ^ sign)
        least ^= sign
        at = _long_varint(out, at, _folded(least))
        widths, at = at, at + BLOCK // PART
        for part in range(BLOCK // PART):
            low, high = part * PART, min((part + 1) * PART, count)
            bits = np.uint64(0)
            for place in range(low, low + PART):
                deltas[place] = (deltas[place] - least) & mask if place < high else np.uint64(0)
                bits |= deltas[place]
            width = 64 - leading_zeros(bits)
            out[widths + part] = width
            at = _pack_part(deltas, low, width, out, at)
    return at


@kernel
def _split(values: Values, start: int, end: int, size: int, out: Bytes, at: int) -> int:
    """Write the first bytes of all values, then their second ones; the byte after them."""
    for byte in range(size):
        shift = np.uint64(8 * byte)
        for place in range(start, end):
            out[at + place - start] = np.uint8((np.uint64(values[place]) >> shift) & np.uint64(0xFF))
        at += end - start
    return at


@kernel
def write_otherwise(values: Values, start: int, end: int, way: int, out: Bytes, at: int) -> int:
    """Write values in a way other than by codes; the byte after them."""
    if way == DELTAS:
        return _deltas(values, start, end, values.itemsize, out, at)
    return _split(values, start, end, values.itemsize, out, at)


@kernel
def _best_otherwise(
    library: tuple[int, int],
    values: Values,
    bounds: Longs,
    pages: Grid,
    first: int,
    last: int,
    way: int,
    frame: Bytes,
) -> int:
    """How the values of a chunk are written that are not coded: in the way that is given if a fifth is saved by it:
    plain values are the fastest to read."""
    count = last - first - _count(pages, first, last)
    if way == PLAIN or count == 0:
        return PLAIN
    tried, plain, other = np.empty(16 * VALUES_TRIED + 64, np.uint8), 0, 0
    for number in range(min(count, 4)):
        page = _nth(pages, first, last, False, number * count // min(count, 4))
        start = bounds[page]
        end = min(start + VALUES_TRIED, bounds[page + 1])
        if end > start:
            size = _plain_bytes(values, start, end, tried)
            plain += _compressed(library, tried, size, frame)
            other += _compressed(library, tried, write_otherwise(values, start, end, way, tried, 0), frame)
    return way if 5 * other < 4 * plain else PLAIN


@kernel
def _plain_bytes(values: Values, start: int, end: int, out: Bytes) -> int:
    """Write values one after the other; how many bytes that are."""
    at, size = 0, values.itemsize
    for place in range(start, end):
        for byte in range(size):
            out[at + byte] = np.uint8((np.uint64(values[place]) >> np.uint64(8 * byte)) & np.uint64(0xFF))
        at += size
    return at


@kernel
def _code_chunk(
    values: Values,
    bounds: Longs,
    pages: Grid,
    first: int,
    last: int,
    table: Ints,
    bits: int,
    entries: Values,
    most: int,
    codes: Ints,
) -> int:
    """Code those pages of a chunk that pay; how many entries its dictionary has."""
    distinct, page = 0, first
    while page < last:
        after = page + 1
        while after < last and bounds[after + 1] - bounds[page] <= JUDGED:
            after += 1
        start, end = bounds[page], bounds[after]
        enough = min(most, distinct + max((end - start) // REPEATS, 1))
        found, coded = _code_page(
            values, start, end, table, bits, entries, distinct, enough, codes[start - bounds[first] :]
        )
        if coded:
            distinct = found
            for each in range(page, after):
                pages[each, ENCODING] = CODED if bounds[each + 1] > bounds[each] else PLAIN
        else:
            _forget(table, bits, entries, distinct, found)
        page = after
    return distinct


@kernel
def encode_fixed(
    library: tuple[int, int],
    values: Values,
    bounds: Longs,
    chunks: Longs,
    most: int,
    way: int,
    pages: Grid,
    dictionaries: Grid,
    entries: Values,
    out: Bytes,
) -> int:
    """Encode the values that are set by a dictionary, some pages at a time, where that pays; how many entries it has.

    Pages pay when their values come REPEATS times or more on average, or are in the dictionary already. All others stay
    as they are, or are written as `way` says. A dictionary has at most `most` entries, a power of two; its place is
    counted in `entries`.
    """
    bits, rows = 2, 0
    while (1 << bits) < 2 * most:
        bits += 1
    for chunk in range(chunks.size - 1):
        rows = max(rows, bounds[chunks[chunk + 1]] - bounds[chunks[chunk]])
    table, codes = np.full(1 << bits, -1, np.int32), np.empty(rows, np.int32)
    mine, lengths, pending = np.empty(rows, np.int32), np.empty(rows, np.int64), np.empty(rows + 8, np.int32)
    frame = np.empty(bound(16 * VALUES_TRIED + 64), np.uint8)
    at, total = 0, 0
    for chunk in range(chunks.size - 1):
        first, last, own = chunks[chunk], chunks[chunk + 1], entries[total:]
        begin = bounds[first]
        distinct = _code_chunk(values, bounds, pages, first, last, table, bits, own, most, codes)
        width = _code_width(library, codes, bounds, pages, first, last, distinct, frame)
        other = _best_otherwise(library, values, bounds, pages, first, last, way, frame)
        for page in range(first, last):
            start, end = bounds[page], bounds[page + 1]
            pages[page, VALUES] = at
            if pages[page, ENCODING] == CODED:
                out[at] = width
                if 4 * _changes(codes, start - begin, end - begin) > 3 * (end - start):
                    at = literal(out, at + 1, codes[start - begin : end - begin], end - start, width)
                else:
                    count = as_runs(codes, start - begin, end - begin, mine, lengths)
                    at = pack(mine, lengths, 0, count, width, pending, out, at + 1)
            elif other != PLAIN and end > start:
                pages[page, ENCODING] = other
                at = write_otherwise(values, start, end, other, out, at)
            pages[page, VALUE_BYTES] = at - pages[page, VALUES]
        _forget(table, bits, own, 0, distinct)
        dictionaries[chunk, ENTRIES], dictionaries[chunk, PLACE] = distinct, total
        total += distinct
    return total

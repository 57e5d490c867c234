"""Columns go through the order of a merge run by run, and become pages again.

The order is a sequence of (first row, rows, input); a column is a value for each row, or runs of (code, end row).
"""

# Kernels hand each other bare memory and places in it, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917, FBT001

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel, memory

__all__ = ["code_fixed", "encode_codes", "gather_codes", "gather_fixed", "gather_rows", "pack_codes", "pack_levels"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

SHORT = 16
"""Up to so many values are copied faster one by one than as a block."""

# The numbers of a page that was encoded: its rows, how many of them are null, the bytes of its levels and of its
# values, its least and its greatest code (-1 when all are null).
ROWS, NULLS, LEVEL_BYTES, VALUE_BYTES, LOW, HIGH = range(6)
ENCODED_WIDTH = 6


@kernel
def _signed(value: np.uint64 | np.int32) -> int:
    """The number that kernels calculate with; signed and unsigned together would become floating point."""
    return np.int64(value)  # type: ignore[return-value]


@kernel
def gather_fixed(starts: Longs, counts: Longs, values: Words, out: Words) -> None:
    """Copy the values of the rows in their order."""
    at = 0
    for run in range(starts.size):
        start, count = starts[run], counts[run]
        if count == 1:
            out[at] = values[start]
        elif count <= SHORT:
            for place in range(count):
                out[at + place] = values[start + place]
        else:
            out[at : at + count] = values[start : start + count]
        at += count


@kernel
def gather_codes(
    starts: Longs, counts: Longs, owners: Ints, cursors: Longs, codes: Ints, ends: Longs, out: Ints, out_ends: Longs
) -> int:
    """Take the runs of rows in their order; how many that gives. `cursors` are runs not behind those of each input."""
    runs, row = 0, 0
    for place in range(starts.size):
        start, stop, owner = starts[place], starts[place] + counts[place], owners[place]
        run = cursors[owner]
        while ends[run] <= start:
            run += 1
        while start < stop:
            end = min(ends[run], stop)
            row += end - start
            if runs and out[runs - 1] == codes[run]:
                out_ends[runs - 1] = row
            else:
                out[runs], out_ends[runs] = codes[run], row
                runs += 1
            start = end
            run += start < stop
        cursors[owner] = run
    return runs


@kernel
def gather_rows(starts: Longs, counts: Longs, codes: Ints, out: Ints, out_ends: Longs) -> int:
    """Take codes, one for each row, in the order of the rows; how many runs that gives."""
    runs, row, last = 0, 0, np.int32(-2)
    for place in range(starts.size):
        start = starts[place]
        for at in range(start, start + counts[place]):
            if codes[at] != last:
                last = codes[at]
                if runs:
                    out_ends[runs - 1] = row
                out[runs] = last
                runs += 1
            row += 1
    if runs:
        out_ends[runs - 1] = row
    return runs


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
def _literal(out: Bytes, at: int, codes: Ints, count: int, width: int) -> int:
    """Write codes one by one, in groups of eight; what is missing from the last group is 0."""
    groups = (count + 7) >> 3
    at = _varint(out, at, groups << 1 | 1)
    held, bits = np.uint64(0), 0
    for place in range(groups * 8):
        code = np.uint64(codes[place]) if place < count else np.uint64(0)
        held |= code << np.uint64(bits)
        bits += width
        while bits >= 8:
            out[at] = np.uint8(held & np.uint64(0xFF))
            held >>= np.uint64(8)
            bits -= 8
            at += 1
    return at


@kernel
def _pack(codes: Ints, lengths: Longs, first: int, last: int, width: int, pending: Ints, out: Bytes, at: int) -> int:
    """Write runs in the hybrid encoding: long ones as one code and a count, what lies between as groups of eight."""
    held = 0
    for run in range(first, last):
        code, count = codes[run], lengths[run]
        fill = min((8 - held % 8) % 8, count)
        # a group that was begun has to be filled before a run can be written as one
        if count - fill < 8:
            fill = count
        for place in range(fill):
            pending[held + place] = code
        held, count = held + fill, count - fill
        if count:
            if held:
                at = _literal(out, at, pending, held, width)
                held = 0
            at = _repeat(out, at, code, count, width)
    return _literal(out, at, pending, held, width) if held else at


@kernel
def _pack_levels(
    codes: Ints,
    ends: Longs,
    run: int,
    low: int,
    high: int,
    levels: Ints,
    lengths: Longs,
    pending: Ints,
    out: Bytes,
    at: int,
) -> int:
    """Write which rows from `low` up to `high` are set; the byte after it. The first of them is in run `run`."""
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
    return _pack(levels, lengths, 0, count, 1, pending, out, at)


@kernel
def _localise(
    codes: Ints,
    ends: Longs,
    run: int,
    low: int,
    high: int,
    local: Ints,
    used: Ints,
    distinct: int,
    mine: Ints,
    lengths: Longs,
    page: Longs,
) -> tuple[int, int, int]:
    """Turn the runs of a page into runs of local codes, given out by first appearance; how many runs, distinct codes so
    far, and the run that the next page begins in."""
    count, row = 0, low
    page[ROWS], page[NULLS], page[LOW], page[HIGH] = high - low, 0, -1, -1
    while row < high:
        end, code = min(ends[run], high), codes[run]
        if code < 0:
            page[NULLS] += end - row
        else:
            if local[code] < 0:
                local[code], used[distinct] = distinct, code
                distinct += 1
            mine[count], lengths[count] = local[code], end - row
            count += 1
            page[LOW] = code if page[LOW] < 0 else min(page[LOW], code)
            page[HIGH] = max(page[HIGH], code)
        run += ends[run] == end
        row = end
    return count, distinct, run


@kernel
def _bit_width(distinct: int) -> int:
    """How many bits the codes of so many entries need; readers expect at least one."""
    width = 1
    while (1 << width) < distinct:
        width += 1
    return width


@kernel
def encode_codes(
    codes: Ints, ends: Longs, bounds: Longs, nullable: bool, local: Ints, used: Ints, pages: Longs, out: Bytes
) -> tuple[int, int]:
    """Encode the pages of one chunk, which are cut at the rows `bounds`: for each its levels, the width and its codes.

    How many entries its dictionary has (they are in `used`), and how many bytes were written. `local` must be -1
    everywhere, and is again afterwards.
    """
    most = bounds[-1] - bounds[0]
    mine, lengths = np.empty(most, np.int32), np.empty(most, np.int64)
    firsts = np.zeros(bounds.size, np.int64)
    run, distinct = np.searchsorted(ends, bounds[0], side="right"), 0
    first_run = run
    for page in range(bounds.size - 1):
        into = firsts[page]
        count, distinct, run = _localise(
            codes,
            ends,
            run,
            bounds[page],
            bounds[page + 1],
            local,
            used,
            distinct,
            mine[into:],
            lengths[into:],
            pages[page],
        )
        firsts[page + 1] = into + count
    width, at, run = _bit_width(distinct), 0, first_run
    pending, levels, level_lengths = np.empty(most + 8, np.int32), np.empty(most, np.int32), np.empty(most, np.int64)
    for page in range(bounds.size - 1):
        begin = at
        if nullable:
            at = _pack_levels(
                memory(codes),
                memory(ends),
                run,
                bounds[page],
                bounds[page + 1],
                memory(levels),
                memory(level_lengths),
                memory(pending),
                memory(out),
                at,
            )
        while run < ends.size and ends[run] <= bounds[page + 1]:
            run += 1
        pages[page, LEVEL_BYTES], begin = at - begin, at
        out[at] = width
        at = _pack(
            memory(mine), memory(lengths), firsts[page], firsts[page + 1], width, memory(pending), memory(out), at + 1
        )
        pages[page, VALUE_BYTES] = at - begin
    for place in range(distinct):
        local[used[place]] = -1
    return distinct, at


@kernel
def _slot(value: np.uint64, bits: int) -> int:
    return _signed((value * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits))


@kernel
def _fill(table: Ints, bits: int, entries: Words, distinct: int) -> None:
    """Build the table of the entries there are."""
    table[:] = -1
    for number in range(distinct):
        slot = _slot(np.uint64(entries[number]), bits)
        while table[slot] >= 0:
            slot = (slot + 1) & (table.size - 1)
        table[slot] = number


@kernel
def _code_page(
    values: Words, start: int, end: int, table: Ints, bits: int, entries: Words, distinct: int, most: int, codes: Ints
) -> int:
    """Code the values of a page; how many entries there are then, -1 when they would be more than `most`."""
    before, code = distinct, np.int32(-1)
    for place in range(start, end):
        value = values[place]
        if code < 0 or entries[code] != value:
            slot = _slot(np.uint64(value), bits)
            while table[slot] >= 0 and entries[table[slot]] != value:
                slot = (slot + 1) & ((1 << bits) - 1)
            code = table[slot]
            if code < 0:
                # most pages that will not do show it early
                seen, new = place - start, distinct - before
                if distinct >= most or (seen >= TRIAL and 4 * new > 3 * seen):
                    return -1
                code = np.int32(distinct)
                table[slot] = code
                entries[distinct] = value
                distinct += 1
        codes[place] = code
    return distinct


TRIAL, REPEATS = 1024, 8
"""Of so many values at most three in four may be new, and each must come so often on average for a page to be coded."""


@kernel
def code_fixed(values: Words, bounds: Longs, codes: Ints, entries: Words, coded: Bytes) -> int:
    """Give the values of a chunk codes, page by page, where that pays: how many entries its dictionary has.

    A page pays when its values come REPEATS times or more on average, or are in the dictionary already; `coded` says
    which do. `entries` has room for a power of two.
    """
    bits = 2
    while (1 << bits) < 2 * entries.size:
        bits += 1
    table, distinct = np.full(1 << bits, -1, np.int32), 0
    for page in range(bounds.size - 1):
        start, end = bounds[page], bounds[page + 1]
        most = min(entries.size, distinct + max((end - start) // REPEATS, 1))
        found = _code_page(
            memory(values), start, end, memory(table), bits, memory(entries), distinct, most, memory(codes)
        )
        coded[page] = found >= 0 and end > start
        if found < 0:
            _fill(table, bits, entries, distinct)
        else:
            distinct = found
    return distinct


@kernel
def _as_runs(codes: Ints, first: int, last: int, out: Ints, lengths: Longs) -> int:
    """Join equal neighbours into runs; how many there are."""
    count = 0
    for place in range(first, last):
        if count and out[count - 1] == codes[place]:
            lengths[count - 1] += 1
        else:
            out[count] = codes[place]
            lengths[count] = 1
            count += 1
    return count


@kernel
def pack_codes(codes: Ints, bounds: Longs, coded: Bytes, distinct: int, out: Bytes, sizes: Longs) -> int:
    """Encode the pages that are coded, each as its width and its codes; `sizes` of them, and all bytes written."""
    width, at = _bit_width(distinct), 0
    most = bounds[-1] - bounds[0]
    mine, lengths, pending = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most + 8, np.int32)
    for page in range(bounds.size - 1):
        begin = at
        if not coded[page]:
            continue
        count = _as_runs(memory(codes), bounds[page], bounds[page + 1], memory(mine), memory(lengths))
        out[at] = width
        at = _pack(memory(mine), memory(lengths), 0, count, width, memory(pending), memory(out), at + 1)
        sizes[page] = at - begin
    return at


@kernel
def pack_levels(valid: Bytes, bounds: Longs, out: Bytes, sizes: Longs, nulls: Longs) -> int:
    """Encode which values are set, page by page: the bytes and the nulls of each, and all bytes that were written."""
    at, most = 0, bounds[-1] - bounds[0]
    levels, lengths, pending = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most + 8, np.int32)
    for page in range(bounds.size - 1):
        begin = at
        count = _as_runs(memory(valid), bounds[page], bounds[page + 1], memory(levels), memory(lengths))  # type: ignore[arg-type]
        for run in range(count):
            nulls[page] += lengths[run] if levels[run] == 0 else 0
        at = _pack(memory(levels), memory(lengths), 0, count, 1, memory(pending), memory(out), at)
        sizes[page] = at - begin
    return at

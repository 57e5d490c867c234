"""Ranges of rows, taken out of pages that stay encoded: which rows pass, and their values.

A row has an address, and pages lie in order of the addresses of their first rows. Ranges of rows are pairs of
addresses, from the first to before the last, one pair behind the other. What no page has is MISSING; bytes that cannot
be decoded are DAMAGED.
"""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.fixed import Values, decode_page
from windrow.kernels.hybrid import FIRST, LAST, PAGE_WIDTH, signed

__all__ = ["DAMAGED", "FULL", "MISSING", "codes_of_ranges", "passing_rows", "passing_runs", "values_of_ranges"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]

MISSING, FULL, DAMAGED = -1, -2, -3


@kernel
def _last_before(values: Longs, first: int, stop: int, most: int) -> int:
    """The last place from `first` to before `stop` whose value is at most that; the one before `first` if none is."""
    low, high = first, stop
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= most:
            low = middle + 1
        else:
            high = middle
    return low - 1


@kernel
def _add_range(out: Longs, count: int, first: int, stop: int) -> int:
    """Put a range behind others, or add to the last one, which ends where it begins; how many there are then."""
    if count and out[2 * count - 1] == first:
        out[2 * count - 1] = stop
        return count
    if 2 * count + 2 > out.size:
        return FULL
    out[2 * count] = first
    out[2 * count + 1] = stop
    return count + 1


@kernel
def passing_runs(
    starts: Longs,
    rows: Longs,
    places: Longs,
    runs: Longs,
    codes: Ints,
    ends: Longs,
    passing: Truths,
    ranges: Longs,
    out: Longs,
) -> int:
    """The ranges in which a column of texts has a code that passes: how many, MISSING, or FULL for want of room.

    Page n has `runs[n]` runs from the place `places[n]` on, which end at rows that count from its first. That of null
    is -1, which never passes.
    """
    count = 0
    for number in range(ranges.size // 2):
        at, stop = ranges[2 * number], ranges[2 * number + 1]
        page = _last_before(starts, 0, starts.size, at)
        while at < stop:
            if page < 0 or page >= starts.size or not starts[page] <= at < starts[page] + rows[page]:
                return MISSING
            base, limit = starts[page], min(stop, starts[page] + rows[page])
            run = _last_before(ends, places[page], places[page] + runs[page], at - base) + 1
            while at < limit:
                last, code = min(base + ends[run], limit), signed(codes[run])
                if code >= 0 and passing[code]:
                    count = _add_range(out, count, at, last)
                    if count < 0:
                        return FULL
                at = last
                run += 1
            page += 1
    return count


@kernel
def codes_of_ranges(
    starts: Longs, rows: Longs, places: Longs, runs: Longs, codes: Ints, ends: Longs, ranges: Longs, out: Ints
) -> int:
    """The code of each row of ranges: how many rows have one and are not null, or MISSING."""
    row, found = 0, 0
    for number in range(ranges.size // 2):
        at, stop = ranges[2 * number], ranges[2 * number + 1]
        page = _last_before(starts, 0, starts.size, at)
        while at < stop:
            if page < 0 or page >= starts.size or not starts[page] <= at < starts[page] + rows[page]:
                return MISSING
            base, limit = starts[page], min(stop, starts[page] + rows[page])
            run = _last_before(ends, places[page], places[page] + runs[page], at - base) + 1
            while at < limit:
                last, code = min(base + ends[run], limit), codes[run]
                for place in range(row, row + last - at):
                    out[place] = code
                if signed(code) >= 0:
                    found += last - at
                row += last - at
                at = last
                run += 1
            page += 1
    return found


@kernel
def values_of_ranges(
    starts: Longs,
    rows: Longs,
    places: Longs,
    words: Words,
    table: Longs,
    entries: Values,
    apart: Words,
    ranges: Longs,
    out: Values,
    valid: Bytes,
) -> int:
    """The value of each row of ranges, decoded out of their pages alone: how many rows, MISSING or DAMAGED.

    Page n is described in row `places[n]` of the table, as `windrow.kernels.hybrid` has it; all of its rows are wanted
    there. A null is 0 in `out`, and 0 in `valid`, which must be 1 before. `apart` has room for the values of a page
    that only decodes as a whole.
    """
    row, ready, apart_of = 0, -2, -1
    part = np.empty(PAGE_WIDTH, np.int64)
    for number in range(ranges.size // 2):
        at, stop = ranges[2 * number], ranges[2 * number + 1]
        page = _last_before(starts, 0, starts.size, at)
        while at < stop:
            if page < 0 or page >= starts.size or not starts[page] <= at < starts[page] + rows[page]:
                return MISSING
            base, limit, place = starts[page], min(stop, starts[page] + rows[page]), places[page] * PAGE_WIDTH
            for field in range(PAGE_WIDTH):
                part[field] = table[place + field]
            part[FIRST], part[LAST] = at - base, limit - base
            ready = ready if apart_of == page else -2
            row, ready = decode_page(words, part, 0, entries, apart, ready, out, valid, row)
            apart_of = page
            if row < 0:
                return DAMAGED
            at = limit
            page += 1
    return row


@kernel
def passing_rows(ranges: Longs, passing: Truths, out: Longs) -> int:
    """The ranges of those rows that pass: how many, or FULL for want of room."""
    count, row = 0, 0
    for number in range(ranges.size // 2):
        at, stop = ranges[2 * number], ranges[2 * number + 1]
        while at < stop:
            if passing[row]:
                first = at
                while at < stop and passing[row]:
                    at, row = at + 1, row + 1
                count = _add_range(out, count, first, at)
                if count < 0:
                    return FULL
            else:
                at, row = at + 1, row + 1
    return count

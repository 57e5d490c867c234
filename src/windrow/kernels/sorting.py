"""Rows of many inputs in the order of their keys, each of which is one 64-bit number.

Where the order jumps at almost every row and there are many inputs, sorting takes fewer passes than merging.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = ["changes", "sort_each", "sort_rows"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Grid = np.ndarray[tuple[int, int], np.dtype[np.int64]]

DIGIT = 8
"""Keys are sorted by so many bits at a time."""
WIDEST = 10
"""Words that have nothing beside them are sorted by at most so many bits at a time."""
SAMPLES = 16
"""So many rows of an input tell when it is of."""
MOVES = 16
"""Rows that move by more places on average are sorted faster than moved."""


@kernel
def _counts(words: Words, low: int, passes: int, digit: int) -> Grid:
    """How many words have each digit, digit by digit from a bit on."""
    counts, mask = np.zeros((passes, 1 << digit), np.int64), np.uint64((1 << digit) - 1)
    for place in range(words.size):
        rest = words[place] >> np.uint64(low)
        for each in range(passes):
            counts[each, np.int64(rest & mask)] += 1
            rest >>= np.uint64(digit)
    return counts


@kernel
def _sort_words(words: Words, low: int, high: int) -> Words:
    """Words in the order of their bits from `low` up to `high`, digit by digit; those that agree in them keep theirs.

    The words that are given become something else.
    """
    passes = max((high - low + WIDEST - 1) // WIDEST, 1)
    digit = max((high - low + passes - 1) // passes, 1)
    counts, mask = _counts(words, low, passes, digit), np.uint64((1 << digit) - 1)
    found, out = words, np.empty(words.size, np.uint64)
    for each in range(passes):
        starts, by = counts[each], np.uint64(low + each * digit)
        _cumulate(starts)
        for place in range(words.size):
            word = found[place]
            digit_of = np.int64(word >> by & mask)
            out[starts[digit_of]] = word
            starts[digit_of] += 1
        found, out = out, found
    return found


@kernel
def _sort_digits(keys: Words, bits: int, out: Words, out_rows: Ints) -> None:
    """The keys of all rows in their order, and the rows, by so many of their lowest bits: digit by digit."""
    passes, size, moves = (bits + DIGIT - 1) // DIGIT, keys.size, 0
    counts, mask = _counts(keys, 0, passes, DIGIT), np.uint64((1 << DIGIT) - 1)
    for digit in range(passes):
        moves += not _is_one(counts[digit], size)
    target, target_rows = out, out_rows
    source, source_rows = np.empty(size, np.uint64), np.empty(size, np.int32)
    if moves & 1 == 0:
        # the last pass writes to `out`
        source, source_rows, target, target_rows = target, target_rows, source, source_rows
    for row in range(size):
        source_rows[row] = row
    if moves == 0:
        out[:] = keys
    found = keys
    for digit in range(passes):
        starts = counts[digit]
        if not _is_one(starts, size):
            _cumulate(starts)
            _move_digits(found, source_rows, starts, np.uint64(digit * DIGIT), mask, target, target_rows)
            found = target
            source, source_rows, target, target_rows = target, target_rows, source, source_rows


@kernel
def _is_one(counts: Longs, size: int) -> bool:
    """Whether all rows have the same digit."""
    most = 0
    for bucket in range(counts.size):
        most = max(most, counts[bucket])
    return most == size


@kernel
def _cumulate(counts: Longs) -> None:
    """Turn counts into the place of the first of each."""
    at = 0
    for bucket in range(counts.size):
        count = counts[bucket]
        counts[bucket] = at
        at += count


@kernel
def _move_digits(
    keys: Words, rows: Ints, starts: Longs, by: np.uint64, mask: np.uint64, out: Words, out_rows: Ints
) -> None:
    """Move keys and rows to the places of their digits."""
    for row in range(keys.size):
        key = keys[row]
        digit_of = np.int64(key >> by & mask)
        place = starts[digit_of]
        starts[digit_of] = place + 1
        out[place] = key
        out_rows[place] = rows[row]


@kernel
def _sort_inside(keys: Words, rows: Ints, size: int, most: int) -> int:
    """Move every row ahead of those that come behind it; how often one moved, beyond `most` if that was too often."""
    moves = 0
    for place in range(1, size):
        key, row = keys[place], rows[place]
        hole = place
        while hole and (keys[hole - 1] > key or (keys[hole - 1] == key and rows[hole - 1] > row)):
            keys[hole], rows[hole] = keys[hole - 1], rows[hole - 1]
            hole -= 1
        if hole < place:
            keys[hole], rows[hole] = key, row
            moves += place - hole
            if moves > most:
                break
    return moves


@kernel
def _in_time(keys: Words, input_ends: Longs, tail: int) -> Longs:
    """The inputs ordered by the last bits of their keys, of which some are looked at."""
    about, order = np.zeros(input_ends.size, np.float64), np.empty(input_ends.size, np.int64)
    begin, mask = 0, np.uint64((1 << tail) - 1)
    for owner in range(input_ends.size):
        rows = input_ends[owner] - begin
        for sample in range(min(rows, SAMPLES)):
            about[owner] += np.float64(keys[begin + sample * rows // SAMPLES] & mask) / min(rows, SAMPLES)
        begin = input_ends[owner]
        hole = owner
        while hole > 0 and about[order[hole - 1]] > about[owner]:
            order[hole] = order[hole - 1]
            hole -= 1
        order[hole] = owner
    return order


@kernel
def _sort_series(
    keys: Words, input_ends: Longs, bits: int, tail: int, row_bits: int, out: Words, out_rows: Ints
) -> None:
    """The keys of all rows ordered by all bits but the last `tail`, and the rows: a word each holds both.

    Rows of a series come in the order of time of their inputs.
    """
    words, mask, at = np.empty(keys.size, np.uint64), np.uint64((1 << row_bits) - 1), 0
    for owner in _in_time(keys, input_ends, tail):
        for row in range(input_ends[owner - 1] if owner else 0, input_ends[owner]):
            words[at] = keys[row] >> np.uint64(tail) << np.uint64(row_bits) | np.uint64(row)
            at += 1
    words = _sort_words(words, row_bits, row_bits + bits - tail)
    for place in range(keys.size):
        origin = np.int64(words[place] & mask)
        out_rows[place] = origin
        out[place] = keys[origin]


def sort_rows(keys: Words, input_ends: Longs, bits: int, tail: int) -> tuple[Words, Ints]:
    """The keys of all rows in their order, and the rows, by so many of their lowest bits.

    Rows with the same key keep their order. All bits but the last `tail` are those of a series. Rows are sorted by
    these, and then hardly move where inputs follow each other in time; where they do, all bits are sorted by.
    """
    found, rows = np.empty_like(keys), np.empty(keys.size, np.int32)
    sort_each(keys, input_ends, bits, tail, found, rows)
    return found, rows


@kernel
def sort_each(keys: Words, input_ends: Longs, bits: int, tail: int, out: Words, out_rows: Ints) -> None:
    """The same, into two arrays."""
    row_bits = 1
    while keys.size >> row_bits:
        row_bits += 1
    if tail <= bits and bits - tail + row_bits <= 64 and tail < 64:
        _sort_series(keys, input_ends, bits, tail, row_bits, out, out_rows)
        # a row never moves out of its series, whose keys are all below those of the next
        if _sort_inside(out, out_rows, keys.size, MOVES * keys.size) <= MOVES * keys.size:
            return
    _sort_digits(keys, bits, out, out_rows)


@kernel
def changes(ordered: Words, bits: int, ends: Longs) -> int:
    """Where rows end whose keys agree in all but the last bits, the last row included; how many such places."""
    if ordered.size == 0:
        return 0
    if bits > 63:
        ends[0] = ordered.size
        return 1
    found, by = 0, np.uint64(bits)
    last = ordered[0] >> by
    for row in range(1, ordered.size):
        head = ordered[row] >> by
        # written in any case, and kept if it is an end: which it is cannot be foreseen
        ends[found] = row
        found += head != last
        last = head
    ends[found] = ordered.size
    return found + 1

"""Sums of the contents of a column: one by what its values are, one by their places too.

A value adds its hash to the first sum, and its hash times the weight of its row to the second, both modulo 2**64. The
row at place `p` of the outputs weighs `2 p + 1`. A null adds nothing and is counted. `sums` are these three numbers.

Weights are given cumulated, so that a run of one value is summed at once: `cumulated[row]` is the weight of all rows
before a row. Where it is empty, row `r` lies at place `r`, and all rows before it weigh `r * r`. The rows that count
are those of some ranges, which ascend.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.hashes import mix

__all__ = ["CONTENT", "NULLS", "PLACED", "cumulate", "sum_codes", "sum_runs", "sum_values", "weigh"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Places = TypeVar("Places", npt.NDArray[np.int64], npt.NDArray[np.int32])
"""Rows and counts of them; they have half the size where there are few."""
Values = TypeVar(
    "Values", npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.uint16], npt.NDArray[np.uint8]
)
"""Values of every width."""

CONTENT, PLACED, NULLS = range(3)


@kernel
def weigh(starts: Places, counts: Places, rows: int, place: int, weights: Words) -> int:
    """Give the first so many rows of an order their weights, the first of which lies at a place; -1 when all is well.

    The order is runs of (first row, rows), or single rows when `counts` is empty. The weight of row `r` becomes
    `weights[r + 1]`, which must be 0 before. A run that takes a row twice, or one that is not there, is returned.
    """
    weight, left = np.uint64(2) * np.uint64(place) + np.uint64(1), np.int64(rows)
    own, before = weights, np.uint64(0)
    for run in range(starts.size):
        start = np.int64(starts[run])
        count = np.int64(counts[run]) if counts.size else np.int64(1)
        count = count if count < left else left
        if start < 0 or count < 0 or start + count >= weights.size:
            return run
        if count == 1:
            # most runs of many orders
            before = own[start + 1]
            own[start + 1] = weight
            weight += np.uint64(2)
        else:
            for row in range(start + 1, start + count + 1):
                before |= own[row]
                own[row] = weight
                weight += np.uint64(2)
        if before:
            return run
        left -= count
        if not left:
            break
    return starts.size if left else -1


@kernel
def cumulate(weights: Words, firsts: Longs, lasts: Longs) -> int:
    """Add to each weight all those before it; -1 when those of the ranges have one and no others, else a row."""
    total, at, own = np.uint64(0), 1, weights
    for place in range(firsts.size + 1):
        first, last = weights.size - 1, weights.size - 1
        if place < firsts.size:
            first, last = firsts[place], lasts[place]
        for row in range(at, first + 1):
            if own[row]:
                return row - 1
            own[row] = total
        for row in range(first + 1, last + 1):
            if not own[row]:
                return row - 1
            total += own[row]
            own[row] = total
        at = last + 1
    return -1


@kernel
def mixed(value: np.uint64) -> np.uint64:
    """Spread every bit over all; no two values become the same."""
    # without the number a zero would add as much as a null
    return mix(value + np.uint64(0x9E3779B97F4A7C15))


@kernel
def _weight(cumulated: Words, first: int, last: int, given: int) -> np.uint64:
    if given:
        return np.uint64(cumulated[last] - cumulated[first])
    return np.uint64(last - first) * np.uint64(last + first)


@kernel
def sum_values(values: Values, valid: Bytes, cumulated: Words, firsts: Longs, lasts: Longs, sums: Words) -> None:
    """Add values of fixed width; `valid` is empty when all are set."""
    nullable, given = valid.size > 0, cumulated.size
    content, placed, nulls = np.uint64(0), np.uint64(0), np.uint64(0)
    for place in range(firsts.size):
        for row in range(firsts[place], lasts[place]):
            hashed = mixed(np.uint64(values[row]))
            if nullable:
                here = np.uint64(valid[row])
                hashed &= np.uint64(0) - here
                nulls += np.uint64(1) - here
            content += hashed
            placed += hashed * _weight(cumulated, row, row + 1, given)
    sums[CONTENT] += content
    sums[PLACED] += placed
    sums[NULLS] += nulls


@kernel
def sum_codes(codes: Ints, hashes: Words, cumulated: Words, firsts: Longs, lasts: Longs, sums: Words) -> None:
    """Add texts that have a code for each row; that of null is negative."""
    given = cumulated.size
    content, placed, nulls = np.uint64(0), np.uint64(0), np.uint64(0)
    for place in range(firsts.size):
        for row in range(firsts[place], lasts[place]):
            code = np.int64(codes[row])
            if code < 0:
                nulls += np.uint64(1)
            else:
                content += hashes[code]
                placed += hashes[code] * _weight(cumulated, row, row + 1, given)
    sums[CONTENT] += content
    sums[PLACED] += placed
    sums[NULLS] += nulls


@kernel
def sum_runs(
    codes: Ints, ends: Longs, hashes: Words, cumulated: Words, firsts: Longs, lasts: Longs, sums: Words
) -> None:
    """Add texts that are runs of (code, end row), which cover all rows."""
    content, placed, nulls, run, given = np.uint64(0), np.uint64(0), np.uint64(0), 0, cumulated.size
    for place in range(firsts.size):
        start, last = firsts[place], lasts[place]
        while start < last:
            while ends[run] <= start:
                run += 1
            end = min(ends[run], last)
            code = np.int64(codes[run])
            if code < 0:
                nulls += np.uint64(end - start)
            else:
                content += hashes[code] * np.uint64(end - start)
                placed += hashes[code] * _weight(cumulated, start, end, given)
            start = end
    sums[CONTENT] += content
    sums[PLACED] += placed
    sums[NULLS] += nulls

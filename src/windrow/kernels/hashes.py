"""Hashes of values are put together: those of columns to hashes of rows, those of elements to hashes of lists."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = ["add_salted", "mix", "rotated", "sum_elements"]

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@kernel
def mix(value: np.uint64) -> np.uint64:
    """Spread every bit over all; no two values become the same."""
    value = (value ^ (value >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    value = (value ^ (value >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return value ^ (value >> np.uint64(32))


@kernel
def rotated(value: np.uint64, bits: int) -> np.uint64:
    """Turn a number to the left by some bits."""
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@kernel
def add_salted(values: Words, valid: Truths, salt: np.uint64, rows: Words) -> None:
    """Add to each row the hash of its value; a null adds nothing."""
    for row in range(values.size):
        if valid[row]:
            rows[row] += mix(values[row] + salt)


@kernel
def sum_elements(elements: Words, offsets: Longs, lists: Words) -> None:
    """The hash of each list, from those of its elements and their places in it."""
    for number in range(lists.size):
        total, place = np.uint64(0), np.uint64(0)
        for element in range(offsets[number], offsets[number + 1]):
            place += np.uint64(0x9E3779B97F4A7C15)
            total += mix(elements[element] + place)
        lists[number] = total

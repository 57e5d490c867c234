"""Stable sorting by one or several 64-bit keys: a pass over the rows for every 11 bits that differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.compiled import kernel

__all__ = ["radix_pass"]

DIGIT = 11
_BUCKETS = 1 << DIGIT


@kernel
def radix_pass(keys: NDArray[np.uint64], shift: int, order: NDArray[np.int64], sorted_order: NDArray[np.int64]) -> bool:
    """Write `order` into `sorted_order`, stably by the digit of each row's key; False when all digits are equal."""
    starts = np.zeros(_BUCKETS + 1, np.int64)
    mask = np.uint64(_BUCKETS - 1)
    by = np.uint64(shift)
    for row in range(len(order)):
        starts[np.int64((keys[order[row]] >> by) & mask) + 1] += 1
    for bucket in range(_BUCKETS):
        if starts[bucket + 1] == len(order):
            return False
        starts[bucket + 1] += starts[bucket]
    for row in range(len(order)):
        digit = np.int64((keys[order[row]] >> by) & mask)
        sorted_order[starts[digit]] = order[row]
        starts[digit] += 1
    return True

"""Stable sorting by one or several 64-bit keys: a pass over the rows for every 11 bits that differ.

Keys travel with their rows, so that a pass reads memory from front to back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windrow.kernels.compiled import kernel

__all__ = ["radix_pass"]

DIGIT = 11
_BUCKETS = 1 << DIGIT


@kernel
def radix_pass(
    shift: int,
    keys: NDArray[np.uint64],
    order: NDArray[np.int32],
    sorted_keys: NDArray[np.uint64],
    sorted_order: NDArray[np.int32],
) -> bool:
    """Write keys and order anew, stably by a digit of the keys; False when all digits are equal."""
    starts = np.zeros(_BUCKETS + 1, np.int64)
    mask = np.uint64(_BUCKETS - 1)
    by = np.uint64(shift)
    for row in range(len(keys)):
        starts[np.int64((keys[row] >> by) & mask) + 1] += 1
    for bucket in range(_BUCKETS):
        if starts[bucket + 1] == len(keys):
            return False
        starts[bucket + 1] += starts[bucket]
    for row in range(len(keys)):
        digit = np.int64((keys[row] >> by) & mask)
        place = starts[digit]
        sorted_keys[place] = keys[row]
        sorted_order[place] = order[row]
        starts[digit] = place + 1
    return True

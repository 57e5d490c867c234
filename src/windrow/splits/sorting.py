"""Sorts the rows of a split: the order of `model.ordering`, by radix passes over packed keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.ordering import packed_keys
from windrow.model.sort_schema import SortSchema

__all__ = ["radix_order", "sorted_rows"]

_FEW_ROWS = 20_000
"""Below this, loading and calling a kernel costs more than it gains."""


def sorted_rows(table: pa.Table, schema: SortSchema) -> pa.Table:
    """Return the rows in the order of the sort schema; equal rows keep their order."""
    keys = packed_keys(table, schema)
    if not keys:
        return table
    order = np.lexsort(keys[::-1]) if table.num_rows < _FEW_ROWS else radix_order(keys)
    return table.take(pa.array(order))


def radix_order(keys: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.int64]:
    """Return the stable order of rows by several keys, the most significant first."""
    from windrow.kernels.radix import DIGIT, radix_pass

    order = np.arange(len(keys[0]))
    other = np.empty_like(order)
    for key in reversed(keys):
        for shift in range(0, int(key.max(initial=np.uint64(0))).bit_length(), DIGIT):
            if radix_pass(key, shift, order, other):
                order, other = other, order
    return order

"""Sorts the rows of a split: the order of `model.ordering`, by radix passes over packed keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.ordering import packed_keys
from windrow.model.sort_schema import SortSchema

__all__ = ["order_of", "radix_order", "sorted_rows"]

_FEW_ROWS = 20_000
"""Below this, loading and calling a kernel costs more than it gains."""


def sorted_rows(table: pa.Table, schema: SortSchema) -> pa.Table:
    """Return the rows in the order of the sort schema; equal rows keep their order."""
    keys = packed_keys(table, schema)
    return table.take(pa.array(order_of(keys))) if keys else table


def order_of(keys: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.signedinteger[Any]]:
    """Return the stable order of rows by several keys, the most significant first."""
    return np.lexsort(keys[::-1]) if len(keys[0]) < _FEW_ROWS else radix_order(keys)


def radix_order(keys: Sequence[npt.NDArray[np.uint64]]) -> npt.NDArray[np.int32]:
    """Return what `order_of` does, by compiled passes over the keys."""
    from windrow.kernels.radix import DIGIT, radix_pass

    order = np.arange(len(keys[0]), dtype=np.int32)
    other_order, other_keys = np.empty_like(order), np.empty(len(order), np.uint64)
    for number, key in enumerate(reversed(keys)):
        moved = key[order] if number else key.copy()
        for shift in range(0, int(key.max(initial=np.uint64(0))).bit_length(), DIGIT):
            if radix_pass(shift, moved, order, other_keys, other_order):
                moved, other_keys = other_keys, moved
                order, other_order = other_order, order
    return order

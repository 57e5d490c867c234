"""Bounds of units that follow each other in sort order, from the key that each one starts with.

A value lies between the key of its unit and that of the next one, if all keys before it are the same in both. Where
nulls, or NaN, come in the order does not matter: between two values there are none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.types import ColumnType

__all__ = ["KeyBounds", "completed", "key_bounds", "tied", "tightened"]


class KeyBounds(NamedTuple):
    """What is certain of one column beside its bounds, by unit: from first keys, or from synopses."""

    low: NDArray[Any]
    has_low: Mask
    high: NDArray[Any]
    has_high: Mask
    all_null: Mask
    null_free: Mask
    nan_free: Mask

    @classmethod
    def unknown(cls, size: int, column_type: ColumnType) -> KeyBounds:
        """Of a column that is no key."""
        values, nowhere = np.zeros(size, column_type.dtype), np.zeros(size, bool)
        return cls(values, nowhere, values, nowhere, nowhere, nowhere, nowhere)

    def take(self, units: NDArray[np.int64]) -> KeyBounds:
        """The same of other units, each one named by its position here."""
        return KeyBounds(*[each[units] for each in self])


def key_bounds(
    values: NDArray[Any], present: Mask, is_null: Mask, same_before: Mask, *, descending: bool = False
) -> KeyBounds:
    """What the first values of a key column tell, where there is one and where it is null.

    `same_before` says where all rows of a unit have the keys before this one in common.
    """
    # NaN alone differs from itself; as a bound it would be of no use.
    comparable = present & (values == values)  # noqa: PLR0124
    first, following = (values, comparable & same_before), (np.roll(values, -1), _next(comparable) & same_before)
    (low, has_low), (high, has_high) = (following, first) if descending else (first, following)
    return KeyBounds(
        low,
        has_low,
        high,
        has_high,
        all_null=same_before & is_null & _next(is_null),
        null_free=same_before & ~is_null & _next(~is_null),
        nan_free=has_low & has_high,
    )


def tied(keys: Sequence[Sequence[bytes | None]], size: int) -> Mask:
    """Units in which all rows have these keys in common: each key is the same in the next unit."""
    same = np.ones(size, bool)
    for key in keys:
        heads = np.empty(size, object)
        heads[:] = key
        same &= _next(np.ones(size, bool)) & (heads == np.roll(heads, -1))
    return same


def tightened(bounds: Bounds, keys: KeyBounds) -> Bounds:
    """The bounds, and where keys tell more, what they tell."""
    has_minimum, has_maximum = bounds.usable
    null_count = np.where(keys.all_null, bounds.count, np.where(keys.null_free, 0, bounds.null_count))
    return Bounds(
        np.where(keys.has_low, keys.low, bounds.minimum),
        np.where(keys.has_high, keys.high, bounds.maximum),
        has_minimum | keys.has_low,
        has_maximum | keys.has_high,
        null_count,
        bounds.has_null_count | keys.all_null | keys.null_free,
        bounds.count,
        bounds.nan_free | keys.nan_free,
    )


def completed(bounds: Bounds, others: KeyBounds) -> Bounds:
    """The bounds, and where there are none, those of others."""
    has_minimum, has_maximum = bounds.usable
    has_low, has_high = others.has_low & ~has_minimum, others.has_high & ~has_maximum
    return tightened(bounds, others._replace(has_low=has_low, has_high=has_high))


def _next(mask: Mask) -> Mask:
    """The same of the next unit; behind the last one it is False."""
    following = np.roll(mask, -1)
    following[-1:] = False
    return following

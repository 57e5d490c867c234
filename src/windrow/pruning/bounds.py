"""Bounds of a column in many units at once: splits, row groups, granules or samples, one array entry each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bounds", "Mask"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds and counts of one column, by unit.

    `minimum` and `maximum` have the dtype of the column's type. They lie outside of, or on, all values but nulls and
    NaN; whether they are exact or shortened outwards proves the same. Where a mask is false the entry is undefined.
    """

    minimum: NDArray[Any]
    maximum: NDArray[Any]
    has_minimum: Mask
    has_maximum: Mask
    null_count: NDArray[Any]
    has_null_count: Mask
    count: NDArray[Any]
    """Values in the unit, nulls included."""
    nan_free: Mask | bool = False
    """Where no value is NaN, or NaN is within the bounds; matters for floats alone."""

    @cached_property
    def usable(self) -> tuple[Mask, Mask]:
        """Where the minimum can be used, and where the maximum: bounds that contradict each other prove nothing."""
        has_minimum, has_maximum = self.has_minimum, self.has_maximum
        # NaN compares as false, so one of the two that is NaN takes the other with it.
        credible = ~(has_minimum & has_maximum) | (self.minimum <= self.maximum)
        if self.minimum.dtype.kind == "f":
            credible &= ~(np.isnan(self.minimum) | np.isnan(self.maximum))
        return has_minimum & credible, has_maximum & credible

    @cached_property
    def all_null(self) -> Mask:
        """Units that hold nothing but nulls for certain."""
        all_null: Mask = self.has_null_count & (self.null_count == self.count)
        return all_null

    @cached_property
    def null_free(self) -> Mask:
        """Units that hold no null for certain."""
        null_free: Mask = self.has_null_count & (self.null_count == 0)
        return null_free

    @classmethod
    def joined(cls, parts: Sequence[Bounds]) -> Bounds:
        """Of several sequences of units, one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.minimum for part in parts]),
            np.concatenate([part.maximum for part in parts]),
            np.concatenate([part.has_minimum for part in parts]),
            np.concatenate([part.has_maximum for part in parts]),
            np.concatenate([part.null_count for part in parts]),
            np.concatenate([part.has_null_count for part in parts]),
            np.concatenate([part.count for part in parts]),
            np.concatenate([np.broadcast_to(part.nan_free, len(part.count)) for part in parts]),
        )

    def without_values(self) -> Bounds:
        """The null counts alone."""
        none = np.zeros(len(self.count), bool)
        return replace(self, has_minimum=none, has_maximum=none, nan_free=False)

    def take(self, units: NDArray[np.int64]) -> Bounds:
        """The same of other units, each one named by its position here."""
        nan_free = self.nan_free if isinstance(self.nan_free, bool) else self.nan_free[units]
        return Bounds(
            self.minimum[units],
            self.maximum[units],
            self.has_minimum[units],
            self.has_maximum[units],
            self.null_count[units],
            self.has_null_count[units],
            self.count[units],
            nan_free,
        )

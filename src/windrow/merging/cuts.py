"""Where outputs end: at the first series that begins once an output has its share of the inputs' bytes.

Rows that are sorted by time first have no series that lie together: there an output ends at any row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from windrow.merging.inputs import Input
from windrow.merging.order import Merged, MergeOrder

__all__ = ["Cuts"]

FINENESS = 16
"""Weights of rows count sixteenths of a byte."""


@dataclass(eq=False)
class Cuts:
    """Counts bytes of inputs while their rows are written, and tells where an output ends."""

    weights: npt.NDArray[np.int64]
    """What a row of each input stands for."""
    total: int
    outputs: int
    anywhere: bool = False
    """Whether an output may end at any row."""
    done: int = 0
    """The weight of all rows that were written."""
    number: int = 1
    """Which output is being written."""

    @classmethod
    def of(cls, inputs: Sequence[Input], outputs: int, *, anywhere: bool = False) -> Cuts:
        """Cuts that make so many outputs of about the same size, as far as series allow where they have to."""
        weights = [max(source.size * FINENESS // max(source.rows, 1), 1) for source in inputs]
        total = sum(weight * source.rows for weight, source in zip(weights, inputs, strict=True))
        return cls(np.array(weights, np.int64), total, outputs, anywhere)

    def places(self, merged: Merged, ready: int) -> list[int]:
        """The places among the first `ready` rows of the order at which outputs end."""
        places: list[int] = []
        order, series = merged.order, merged.series_starts
        if self.number >= self.outputs or not order.rows:
            return places
        passed = self.done + np.cumsum(self.weights[order.inputs] * order.lengths)
        while self.number < self.outputs:
            share = self.total * self.number // self.outputs
            least = max(self._place(order, passed, share), places[-1] + 1 if places else 1)
            place = least if self.anywhere else _first_from(series, least)
            if place is None or place > ready:
                break
            places.append(place)
            # a long series may take the share of several outputs
            shares = self._weight(order, passed, places[-1]) * self.outputs // self.total
            self.number = max(self.number, shares) + 1
        return places

    def _place(self, order: MergeOrder, passed: npt.NDArray[np.int64], share: int) -> int:
        """The first place before which lies a weight of `share`."""
        run = int(np.searchsorted(passed, share))
        if run == passed.size:
            return order.rows + 1
        return int(order.ends[run]) - (int(passed[run]) - share) // int(self.weights[order.inputs[run]])

    def _weight(self, order: MergeOrder, passed: npt.NDArray[np.int64], place: int) -> int:
        """The weight of all rows before a place."""
        run = min(int(np.searchsorted(order.ends, place)), passed.size - 1)
        return int(passed[run]) - (int(order.ends[run]) - place) * int(self.weights[order.inputs[run]])

    def pass_by(self, order: MergeOrder) -> None:
        """Count rows as written."""
        if self.number < self.outputs:
            self.done += int((self.weights[order.inputs] * order.lengths).sum())


def _first_from(series: npt.NDArray[np.int64], least: int) -> int | None:
    """The first place from `least` on at which a series begins."""
    number = int(np.searchsorted(series, least))
    return None if number == series.size else int(series[number])

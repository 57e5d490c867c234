"""Sidecars of like files as one: the units in which row groups are judged and laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windrow.bounded import BoundedCache
from windrow.sidecar import Sidecar
from windrow.sidecar.bundle import Bundle, likeness

if TYPE_CHECKING:
    from windrow.planning.synopses import LearntColumn

__all__ = ["Unit", "bundled"]

_MOST_COLUMNS = 64
"""Sets of columns that are remembered of a unit."""


@dataclass(frozen=True)
class Unit:
    """A sidecar, or a bundle of like ones, with the files that it describes."""

    sidecar: Sidecar
    files: NDArray[np.int64]
    """The number of the file of every row group."""
    groups: NDArray[np.int64]
    """The position of every row group in its file."""
    singles: Sequence[Sidecar]
    """The sidecar of every file, by the order in which they were bundled."""
    owners: NDArray[np.int64]
    """Which of these every row group belongs to."""

    @cached_property
    def filters(self) -> BoundedCache[frozenset[str], bool]:
        """Whether columns have bloom filters, as far as that was looked up."""
        return BoundedCache("bloom filters of columns", _MOST_COLUMNS)

    @cached_property
    def cuts(self) -> BoundedCache[tuple[str, ...] | None, NDArray[np.int8]]:
        """Whether pages of columns can be taken out of row groups: 1 or 0, and -1 where that was not looked up."""
        return BoundedCache("cuts of columns", _MOST_COLUMNS)

    @cached_property
    def learnt(self) -> BoundedCache[str, LearntColumn | None]:
        """What queries learnt of columns, where the sidecar does not know all; None where it does."""
        return BoundedCache("learnt columns", _MOST_COLUMNS)

    @cached_property
    def filled(self) -> NDArray[np.bool_]:
        """Row groups that have rows: empty ones are never read."""
        filled: NDArray[np.bool_] = self.sidecar.row_counts > 0
        return filled

    @cached_property
    def cut(self) -> NDArray[np.bool_]:
        """Row groups that have more than one granule."""
        cut: NDArray[np.bool_] = self.sidecar.extensions.granule_counts > 1
        return cut

    @cached_property
    def kind(self) -> object:
        """The same for units of like files."""
        return likeness(self.singles[0]) or self.singles[0].name

    @property
    def is_lone(self) -> bool:
        """Whether every file has but one row group."""
        return len(self.files) == len(self.singles)


def bundled(sidecars: Sequence[Sidecar], numbers: Sequence[int] | None = None) -> list[Unit]:
    """Like sidecars together, all others alone; `numbers` are those of their files, if not counted from 0."""
    alike: dict[object, list[int]] = {}
    for place, sidecar in enumerate(sidecars):
        alike.setdefault(likeness(sidecar) or place, []).append(place)
    counted = np.arange(len(sidecars)) if numbers is None else np.asarray(numbers, np.int64)
    return [_unit([sidecars[place] for place in places], counted[places]) for places in alike.values()]


def _unit(singles: Sequence[Sidecar], numbers: NDArray[np.int64]) -> Unit:
    if len(singles) == 1:
        count = singles[0].row_group_count
        none = np.zeros(count, np.int64)
        return Unit(singles[0], numbers[none], np.arange(count), singles, none)
    bundle = Bundle(singles)
    return Unit(bundle, numbers[bundle.owners], bundle.groups, singles, bundle.owners)

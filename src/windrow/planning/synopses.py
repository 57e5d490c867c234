"""Bounds and nulls of row groups that queries learnt, for columns of which a sidecar does not know all.

Files whose writer left no statistics, or fewer, are pruned by them, with the evaluator that sidecars are pruned by. A
column of which the sidecar knows all costs a look-up; nothing is loaded for it. Synopses are of one content of a file
and of its row groups. Those that are about others count for nothing, and so does what cannot be read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import WindrowError
from windrow.planning.data_files import DataFile, file_id_of
from windrow.planning.units import Unit
from windrow.pruning.bounds import Mask
from windrow.pruning.key_bounds import KeyBounds
from windrow.pruning.types import ColumnType, Family
from windrow.sidecar.flat_columns import flat_column
from windrow.sidecar.pruning import OthersOf, nan_free

if TYPE_CHECKING:
    from windrow.statistics.cached_catalog import CachedCatalog
    from windrow.statistics.column_summary import ColumnSummary

__all__ = ["LearntColumn", "StatisticsUse", "learnt_column", "others_of", "summed_uses", "uses_of"]

_MOST_LOADED = 1_000
"""Files of which synopses of a column are looked up for one plan; those of more files are looked up by later ones."""
_PATIENCE = 30.0
"""Seconds after which statistics that were missing are looked up again: another process may have stored them."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StatisticsUse:
    """Where bounds and nulls of a column come from, in the row groups that a plan judged by them."""

    column: str
    row_groups: int
    written: int
    """Row groups of which the writer of the file left all of it."""
    learnt: int
    """Row groups of which queries learnt what the writer left out."""
    missing: int
    """Row groups of which something is in no statistics."""
    files: int
    files_missing: int
    """Files of which something is missing."""

    def plus(self, other: StatisticsUse) -> StatisticsUse:
        """Both together, of other files."""
        counts = [getattr(self, each.name) + getattr(other, each.name) for each in fields(self)[1:]]
        return StatisticsUse(self.column, *counts)


class LearntColumn:
    """What queries learnt of a column of the files of a unit. Hold the lock of their list while you plan with it."""

    def __init__(self, unit: Unit, name: str, gaps: Mask) -> None:
        self.name = name
        self.gaps = gaps
        """Row groups of which the sidecar does not know all."""
        self._unit = unit
        self._edges = np.searchsorted(unit.owners, np.arange(len(unit.singles) + 1))
        self._is_loaded = np.zeros(len(unit.singles), bool)
        self._summaries: dict[int, ColumnSummary] = {}
        self._bounds: dict[ColumnType, KeyBounds] = {}
        self._revision = -1
        self._loaded_at = 0.0

    def load(self, catalog: CachedCatalog, files: Sequence[DataFile], wanted: Mask) -> None:
        """Load synopses of the files of some row groups, as far as these have gaps; later again what was incomplete."""
        now = time.monotonic()
        if catalog.revision != self._revision or now - self._loaded_at > _PATIENCE:
            self._is_loaded = self._complete()
            self._revision, self._loaded_at = catalog.revision, now
        missing = [
            owner for owner in np.unique(self._unit.owners[wanted & self.gaps]).tolist() if not self._is_loaded[owner]
        ][:_MOST_LOADED]
        if not missing:
            return
        ids = {owner: file_id_of(files[self._file(owner)]) for owner in missing}
        try:
            loaded = catalog.load(set(ids.values()), [self.name])
        except (WindrowError, OSError) as error:
            _log.debug("statistics of %s are not read: %s", self.name, error)
            return
        self._is_loaded[missing] = True
        self._take(
            {owner: summary for owner, file in ids.items() if (summary := loaded.get(file.key, {}).get(self.name))}
        )

    def _take(self, summaries: dict[int, ColumnSummary]) -> None:
        sound = {
            owner: summary
            for owner, summary in summaries.items()
            if summary.layout.row_groups == tuple(self._unit.singles[owner].row_counts.tolist())
        }
        if any(self._summaries.get(owner) is not summary for owner, summary in sound.items()):
            self._bounds.clear()
        self._summaries |= sound

    def _complete(self) -> Mask:
        complete = np.zeros(len(self._is_loaded), bool)
        complete[[owner for owner, summary in self._summaries.items() if summary.is_complete]] = True
        return complete

    def _file(self, owner: int) -> int:
        return int(self._unit.files[self._edges[owner]])

    @property
    def is_known(self) -> bool:
        """Whether anything was loaded."""
        return bool(self._summaries)

    def bounds(self, column_type: ColumnType) -> KeyBounds | None:
        """What is certain of each row group of the unit, for a column of this type; None where nothing is."""
        if not self._summaries:
            return None
        if column_type not in self._bounds:
            self._bounds[column_type] = self._assembled(column_type)
        return self._bounds[column_type]

    def _assembled(self, column_type: ColumnType) -> KeyBounds:
        arrays = [each.copy() for each in KeyBounds.unknown(len(self.gaps), column_type)]
        for summary, place, groups in self._parts():
            try:
                learnt = _key_bounds(summary, column_type)
            except (TypeError, ValueError, OverflowError) as error:
                _log.debug("statistics of %s, column %s, are of no use: %s", summary.layout.key, self.name, error)
                continue
            for array, part in zip(arrays, learnt, strict=True):
                array[place] = part[groups]
        return KeyBounds(*arrays)

    @property
    def known(self) -> Mask:
        """Row groups of which synopses know all values."""
        known = np.zeros(len(self.gaps), bool)
        for summary, place, groups in self._parts():
            known[place] = summary.synopses.known[groups // summary.synopses.group_size]
        return known

    @property
    def nan_free(self) -> Mask:
        """Row groups that hold no NaN for certain."""
        free = np.zeros(len(self.gaps), bool)
        for summary, place, groups in self._parts():
            free[place] = np.broadcast_to(summary.synopses.bounds(summary.layout.row_counts).nan_free, groups.size)
        return free

    def _parts(self) -> Iterator[tuple[ColumnSummary, slice, NDArray[np.int64]]]:
        """Yield what is stored of each file, with its row groups in the unit and their places in the file."""
        for owner, summary in self._summaries.items():
            place = slice(*self._edges[owner : owner + 2].tolist())
            yield summary, place, self._unit.groups[place]


def learnt_column(unit: Unit, name: str) -> LearntColumn | None:
    """Where synopses of a column could be of use; None where the sidecar knows all, or the column is not flat."""
    sidecar = unit.sidecar
    column = flat_column(sidecar, name, ())
    if column is None or sidecar.from_questdb:
        return None
    chunks = sidecar.column(column.position)
    complete = chunks.all_null | (chunks.null_count[1] & chunks.minimum.present & chunks.maximum.present)
    if column.type.family is Family.FLOAT:
        complete &= chunks.all_null | nan_free(sidecar, column.position, np.arange(sidecar.row_group_count))
    gaps = unit.filled & ~complete
    return LearntColumn(unit, name, gaps) if gaps.any() else None


def _key_bounds(summary: ColumnSummary, column_type: ColumnType) -> KeyBounds:
    """What synopses prove of each row group of a file; where a column is of another type to a predicate, its nulls."""
    synopses = summary.synopses
    bounds = synopses.bounds(summary.layout.row_counts)
    has_minimum, has_maximum = bounds.usable
    low, has_low = _converted(bounds.minimum, has_minimum, synopses.type, column_type)
    high, has_high = _converted(bounds.maximum, has_maximum, synopses.type, column_type)
    free = np.broadcast_to(bounds.nan_free, has_low.size)
    return KeyBounds(low, has_low, high, has_high, bounds.all_null, bounds.null_free, free)


def _converted(values: NDArray[Any], has: Mask, own: ColumnType, wanted: ColumnType) -> tuple[NDArray[Any], Mask]:
    """Values as bounds of another column type hold them, and where there are some."""
    if (own.family, own.factor) != (wanted.family, wanted.factor):
        return np.zeros(len(values), wanted.dtype), np.zeros(len(values), bool)
    if wanted.dtype in (own.dtype, "object"):
        return values.astype(wanted.dtype, copy=False), has
    least, most = np.iinfo(wanted.dtype).min, np.iinfo(wanted.dtype).max
    fits = np.array([least <= int(value) <= most for value in values.tolist()], bool)
    return np.where(fits, values, 0).astype(wanted.dtype), has & fits


def others_of(learnt: Mapping[str, LearntColumn]) -> OthersOf | None:
    """What is certain of columns beside what a sidecar knows; None where nothing is."""
    if not any(column.is_known for column in learnt.values()):
        return None
    return lambda name, column_type: learnt[name].bounds(column_type) if name in learnt else None


def uses_of(unit: Unit, names: Iterable[str], judged: Mask) -> Iterator[StatisticsUse]:
    """Where bounds of columns come from, in the row groups that were judged; columns that are not flat have none."""
    for name in names:
        if not unit.sidecar.from_questdb and flat_column(unit.sidecar, name, ()) is not None:
            yield _use(unit, name, unit.learnt.get(name), judged)


def _use(unit: Unit, name: str, learnt: LearntColumn | None, judged: Mask) -> StatisticsUse:
    gaps = np.zeros(len(judged), bool) if learnt is None else judged & learnt.gaps
    missing = gaps if learnt is None else gaps & ~learnt.known
    count, open_count, missing_count = (int(mask.sum()) for mask in (judged, gaps, missing))
    files, files_missing = (len(np.unique(unit.owners[mask])) for mask in (judged, missing))
    written, learnt_count = count - open_count, open_count - missing_count
    return StatisticsUse(name, count, written, learnt_count, missing_count, files, files_missing)


def summed_uses(uses: Iterable[StatisticsUse]) -> tuple[StatisticsUse, ...]:
    """Uses of the same column in several units as one."""
    by_column: dict[str, StatisticsUse] = {}
    for use in uses:
        before = by_column.get(use.column)
        by_column[use.column] = use if before is None else before.plus(use)
    return tuple(by_column.values())

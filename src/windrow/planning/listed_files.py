"""What plans are made from, cached: files and their sidecars, and splits of a version in a range of time, as arrays.

A version never changes, so what was listed of it once need not be listed again. Nothing of a question is cached, nor
its answer. Ranges of time are widened to whole windows, so that questions about the same windows share a list.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windrow import forking
from windrow.bounded import BoundedCache
from windrow.metastore import Metastore, SplitQuery, TableRecord
from windrow.model.split import SplitMetadata
from windrow.parquet.placement import VirtualSchema
from windrow.planning.data_files import DataFile, file_id_of, open_sidecars, split_file, weight_of
from windrow.planning.scan_context import ScanContext
from windrow.planning.units import Unit, bundled
from windrow.planning.virtual_file import CachedSpace
from windrow.planning.virtual_schema import column_names, merged_schema, positions_in, schema_of
from windrow.pruning.zones import Zones
from windrow.sidecar import Sidecar
from windrow.statistics.layout import FileId
from windrow.storage import Store

__all__ = ["ListedFiles", "ListedSplits", "ListedVersions"]

_BYTES_PER_FILE = 3_000
_MOST_SPACES = 8
_SECOND = 1_000_000
_FIRST, _LAST = -(2**63), 2**63 - 1

_Key = tuple[str, int, tuple[int, int] | None]
_SpaceKey = tuple[object, tuple[str, ...] | None]


class ListedFiles:
    """Some files; hold `lock` while you plan with them."""

    def __init__(self, files: Sequence[DataFile]) -> None:
        self.lock = threading.RLock()
        self.files = files
        self._clear()
        forking.register(self)

    def _clear(self) -> None:
        self.weight = _BYTES_PER_FILE * len(self.files)
        self._sidecars: dict[int, Sidecar] = {}
        self._is_open = np.zeros(len(self.files), bool)
        self.row_groups = np.zeros(len(self.files), np.int64)
        """How many row groups each file has, as far as its sidecar was opened."""
        self._units: list[Unit] = []
        self._spaces: BoundedCache[_SpaceKey, CachedSpace | None] = BoundedCache("address spaces", _MOST_SPACES)

    def after_fork(self) -> None:
        """Keep what is here, in a forked child, unless it was being changed."""
        is_whole, self.lock = forking.was_free(self.lock), threading.RLock()
        if not is_whole:
            self._clear()

    @property
    def places(self) -> NDArray[np.int64]:
        """The places of all files."""
        return np.arange(len(self.files))

    def are_open(self, places: NDArray[np.int64]) -> bool:
        """Whether the sidecars of the files at the places were opened."""
        return bool(self._is_open[places].all())

    def units(self, context: ScanContext, places: NDArray[np.int64]) -> list[Unit]:
        """Units of all files that were ever needed, those at the places among them."""
        missing = self._unopened(places)
        if missing:
            self._add(missing, open_sidecars(context, [self.files[place] for place in missing]))
        return self._units

    def open(self, context: ScanContext, places: NDArray[np.int64]) -> None:
        """Open the sidecars of files, which may take requests; do so before you lock, and nobody waits for them."""
        with self.lock:
            missing = self._unopened(places)
        if missing:
            sidecars = open_sidecars(context, [self.files[place] for place in missing])
            with self.lock:
                self._add(missing, sidecars)

    def _unopened(self, places: NDArray[np.int64]) -> list[int]:
        unopened: list[int] = places[~self._is_open[places]].tolist()
        return unopened

    def _add(self, places: Sequence[int], sidecars: Sequence[Sidecar]) -> None:
        """Bundle sidecars with those that are open; others may have opened some of them meanwhile."""
        added = {place: each for place, each in zip(places, sidecars, strict=True) if place not in self._sidecars}
        if not added:
            return
        self._sidecars |= added
        # The bytes of a bundled sidecar are there twice.
        self.weight += sum(weight_of(sidecar) + sidecar.content.size for sidecar in added.values())
        self._is_open[list(added)] = True
        self.row_groups[list(added)] = [sidecar.row_group_count for sidecar in added.values()]
        numbers = sorted(self._sidecars)
        self._units = bundled([self._sidecars[number] for number in numbers], numbers)

    def rows_by_file(self, context: ScanContext) -> dict[FileId, int]:
        """The rows of each file, under what its statistics are stored by."""
        self.open(context, self.places)
        with self.lock:
            return {file_id_of(file): int(self._sidecars[at].row_counts.sum()) for at, file in enumerate(self.files)}

    def shows_bounds(self, context: ScanContext, column: str) -> bool:
        """Whether the writers of all files left bounds of a column."""
        self.open(context, self.places)
        with self.lock:
            return all(_shows_bounds(sidecar, column) for sidecar in self._sidecars.values())

    def space(self, unit: Unit, columns: tuple[str, ...] | None) -> CachedSpace | None:
        """The address space for some columns of the files of a unit; None where they cannot be read so."""
        return self._spaces.get_or_make((unit.kind, columns), lambda: self._space(unit, columns))

    def _space(self, unit: Unit, columns: tuple[str, ...] | None) -> CachedSpace | None:
        schema = _schema(unit.sidecar, columns)
        return None if schema is None else CachedSpace(self.files, schema)


class ListedSplits(ListedFiles):
    """Splits of one version and of one schema epoch."""

    def __init__(self, context: ScanContext, splits: Sequence[SplitMetadata], epoch: int = 0) -> None:
        stores: dict[str, Store] = {}
        super().__init__([split_file(context, split, stores) for split in splits])
        self.splits = splits
        self.epoch = epoch
        self.zones = Zones(splits)
        # A registered file may not know its times; it may hold any.
        self._first = np.array([_FIRST if each.time_min is None else each.time_min for each in splits], np.int64)
        self._last = np.array([_LAST if each.time_max is None else each.time_max for each in splits], np.int64)

    def within(self, time_range: tuple[int, int] | None) -> NDArray[np.int64]:
        """The places of the splits that reach into a range of time."""
        if time_range is None:
            return self.places
        low, high = time_range
        return np.flatnonzero((self._last >= low) & (self._first < high))


def _shows_bounds(sidecar: Sidecar, column: str) -> bool:
    positions = sidecar.column_positions(column)
    return len(positions) == 1 and bool(sidecar.column(positions[0]).minimum.present.all())


def _schema(sidecar: Sidecar, columns: tuple[str, ...] | None) -> VirtualSchema | None:
    footer = schema_of(sidecar)
    known = column_names(footer)
    own = set(known)
    wanted = known if columns is None else [name for name in columns if name in own]
    # A file without any column would have no rows.
    schema = merged_schema([footer], wanted or known[:1])
    return None if positions_in(footer, schema) is None else schema


class ListedVersions:
    """Lists of splits, those that were used last, as many as weigh no more than the budget together."""

    def __init__(self, budget: int) -> None:
        self._lists: BoundedCache[_Key, tuple[ListedSplits, ...]] = BoundedCache("lists of splits", budget=budget)

    def splits(
        self,
        context: ScanContext,
        metastore: Metastore,
        table: TableRecord,
        version: int,
        time_range: tuple[int, int] | None,
    ) -> tuple[ListedSplits, ...]:
        """The splits of a version that reach into a range of time, and perhaps others of the same windows.

        Those of each schema epoch are apart, the newest first; there is one at least.
        """
        widened = None if time_range is None else _widened(time_range, table.settings.window * _SECOND)

        key = table.table_id, version, widened
        found = self._lists.get(key)
        if found is None:
            pages = metastore.splits(table.table_id, version, SplitQuery(time_range=widened))
            found = _by_epoch(context, [split for page in pages for split in page])
        # Sidecars that were opened since have made it heavier.
        self._lists.put(key, found, sum([each.weight for each in found]))
        return found


def _by_epoch(context: ScanContext, splits: Sequence[SplitMetadata]) -> tuple[ListedSplits, ...]:
    """Zones and bounds of one column are of one type only within an epoch."""
    groups: dict[int, list[SplitMetadata]] = {}
    for split in splits:
        groups.setdefault(split.scope.doc_mapping_uid, []).append(split)
    return tuple(ListedSplits(context, groups[epoch], epoch) for epoch in sorted(groups, reverse=True)) or (
        ListedSplits(context, ()),
    )


def _widened(time_range: tuple[int, int], window: int) -> tuple[int, int]:
    low, high = time_range
    return low // window * window, -(-high // window) * window

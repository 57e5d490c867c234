"""One file that queries read: which row groups of which columns are open, and the bytes to learn them from."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import WindrowError
from windrow.learning.fetched_bytes import FetchedBytes
from windrow.parquet.schema import Leaf
from windrow.planning.data_files import DataFile, file_id_of
from windrow.planning.virtual_file import VirtualFile
from windrow.planning.virtual_schema import arrow_of, merged_schema, schema_of
from windrow.sidecar import Sidecar
from windrow.sidecar.restore import restore_chunks
from windrow.statistics.catalog import Catalog
from windrow.statistics.collector import FileCollector, collects
from windrow.statistics.layout import FileLayout
from windrow.statistics.synopsis import MOST_SYNOPSES

__all__ = ["FlatColumn", "ScannedFile", "load_together", "whole_row_groups"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FlatColumn:
    """A column of a file whose values are not nested."""

    name: str
    leaf: Leaf
    type: pa.DataType

    @property
    def is_nullable(self) -> bool:
        """Whether there are definition levels."""
        return self.leaf.max_definition > 0


@dataclass(eq=False)
class ScannedFile:
    """One content of one file, as far as it was read, and what is known of it."""

    file: DataFile
    sidecar: Sidecar
    catalog: Catalog
    data: FetchedBytes
    most_synopses: int = MOST_SYNOPSES
    """Row groups share a synopsis where there are more of them."""
    failed: set[tuple[str, int]] = field(default_factory=set)
    """Columns in row groups that could not be learnt; nobody tries again."""
    loaded: set[str] = field(default_factory=set)
    """Columns whose statistics were loaded from the catalog."""

    @cached_property
    def layout(self) -> FileLayout:
        """Its row groups."""
        return FileLayout(file_id_of(self.file), tuple(self.sidecar.row_counts.tolist()))

    @cached_property
    def columns(self) -> dict[str, FlatColumn]:
        """The columns that there are statistics of; of those with one name none."""
        footer = schema_of(self.sidecar)
        flat = [leaf for leaf in footer.leaves if len(leaf.path) == 1 and not leaf.max_repetition]
        names = [leaf.path[0].lower() for leaf in footer.leaves]
        lone = [leaf for leaf in flat if names.count(leaf.path[0].lower()) == 1]
        if not lone:
            return {}
        types = arrow_of(merged_schema([footer], [leaf.path[0] for leaf in lone]))
        found = [FlatColumn(leaf.path[0], leaf, kind) for leaf, kind in zip(lone, types.types, strict=True)]
        return {each.name: each for each in found if collects(self.layout, each.type)}

    @cached_property
    def collector(self) -> FileCollector:
        """Takes what is learnt."""
        return FileCollector(self.layout, most_synopses=self.most_synopses)

    def open_chunks(self, names: Collection[str], row_groups: Collection[int]) -> Iterator[tuple[FlatColumn, int]]:
        """Yield the columns and row groups, of these, that nothing is known of yet."""
        chosen = [self.columns[name] for name in names if name in self.columns]
        load_together(self.catalog, [self], [each.name for each in chosen])
        for column in chosen:
            for row_group in row_groups:
                if (column.name, row_group) not in self.failed and self.collector.wants(column.name, row_group):
                    yield column, row_group

    def open_samples(self, names: Collection[str], row_groups: Collection[int]) -> Iterator[tuple[FlatColumn, int]]:
        """Yield the columns and row groups, of these, whose values are known, but not at the rows of the sample."""
        for column in [self.columns[name] for name in names if name in self.columns]:
            for row_group in row_groups:
                is_open = self.collector.lacks_sample(column.name, row_group)
                if is_open and (column.name, row_group) not in self.failed:
                    yield column, row_group

    def chunks(self, column: FlatColumn) -> NDArray[np.void]:
        """The records of a column's chunks, by row group."""
        return restore_chunks(self.sidecar, None, [column.leaf.index])[:, 0]

    def store(self) -> None:
        """Hand what was learnt since to the catalog; what cannot be stored yet is handed over the next time."""
        changed = self.collector.changed
        if changed:
            try:
                self.catalog.store(changed)
            except WindrowError as error:
                if error.retryable:
                    raise
                _log.debug("statistics of %s are not stored: %s", self.layout.key, error)
            self.collector.take_changed()


def load_together(catalog: Catalog, files: Sequence[ScannedFile], names: Collection[str]) -> None:
    """Load the statistics of columns of files, as far as they were not loaded."""
    missing = [each for each in files if not each.loaded.issuperset(names)]
    if not missing:
        return
    stored = catalog.load([each.layout.file for each in missing], sorted(names))
    for each in missing:
        columns = stored.get(each.layout.key, {})
        each.collector.know({name: summary for name, summary in columns.items() if name not in each.loaded})
        each.loaded.update(names)


def whole_row_groups(virtual: VirtualFile, sidecars: Mapping[int, Sidecar]) -> dict[int, list[int]]:
    """By the number of a file, the row groups of which all rows are in a virtual file: as a whole, or all granules.

    A row group that is cut by rows is in it with all of them.
    """
    found: dict[int, set[int]] = {}
    granules: dict[tuple[int, int], int] = {}
    for number, row_group, first, stop, _ in virtual.placed.places.tolist():
        if stop < 0:
            found.setdefault(number, set()).add(row_group)
        else:
            granules[number, row_group] = granules.get((number, row_group), 0) + stop - first
    for (number, row_group), count in granules.items():
        # Pieces of a plan do not overlap.
        if number in sidecars and count == sidecars[number].extensions.granule_counts[row_group]:
            found.setdefault(number, set()).add(row_group)
    return {number: sorted(groups) for number, groups in found.items()}

"""Learns at once, by reading files of no table, what queries would leave behind one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from windrow.context import Context
from windrow.errors import Damaged, InvalidInput, NotFound, WindrowError
from windrow.model.rows import Rows
from windrow.model.shown import ShownByField
from windrow.planning.data_files import DataFile, file_id_of, open_sidecars
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.virtual_schema import arrow_schema
from windrow.statistics.cached_catalog import CachedCatalog
from windrow.statistics.catalog import Columns
from windrow.statistics.report import StatisticsRow, column_rows
from windrow.storage.handles import StoredFile
from windrow.upkeep.split_learning import learn_missing, opened_file

__all__ = ["FileAnalysis", "Files"]


@dataclass(frozen=True, slots=True, repr=False)
class FileAnalysis(ShownByField):
    """What was read of files for their statistics."""

    pattern: str
    files: int
    rows: int
    columns: int
    """Columns of files of which something was learnt; of the others everything was known."""


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet files that are in no table: those of a path, a glob or an address."""

    context: Context
    pattern: str
    beside: bool = field(default=False, repr=False)
    """Whether sidecars of local files are put beside them."""

    def analyze(
        self, columns: Collection[str] | None = None, *, on_files: Callable[[int, int], None] = lambda _, __: None
    ) -> FileAnalysis:
        """Learn the statistics of all columns, or of some, at once: queries would learn them one after the other.

        Only what is not known is read. `on_files` is given the rows and bytes of files as they are done.
        """
        found, catalog = self._found()
        files = found.find(self.pattern)
        known = _columns(found, files)
        unknown = sorted(set(columns or ()).difference(known))
        if unknown:
            raise NotFound(f"{self.pattern}: there is no column {unknown[0]!r}; there are {', '.join(known)}")
        rows = learnt = 0
        for file, count, learnt_columns in self._learnt(files, catalog, columns):
            catalog.store(learnt_columns)
            rows, learnt = rows + count, learnt + len(learnt_columns)
            on_files(count, file.identity.size)
        return FileAnalysis(self.pattern, len(files), rows, learnt)

    def statistics(self) -> Rows[StatisticsRow]:
        """Return what is known of the values of each column; no data is read.

        >>> lake.files("raw/*.parquet").statistics()  # doctest: +SKIP
        """
        found, catalog = self._found()
        files = found.find(self.pattern)
        sidecars = open_sidecars(found.context, files)
        sizes = {file_id_of(file): int(each.row_counts.sum()) for file, each in zip(files, sidecars, strict=True)}
        return Rows(StatisticsRow, tuple(column_rows(sizes, _columns(found, files), catalog)))

    def _found(self) -> tuple[ForeignFiles, CachedCatalog]:
        if self.context.learnt is None:
            raise InvalidInput(
                f"{self.pattern}: statistics of files in no table are stored in the cache folder, and this lake was "
                "opened without one; give connect a cache with room on disk"
            )
        return self.context.foreign_files(beside=self.beside), self.context.learnt

    def _learnt(
        self, files: Sequence[DataFile], catalog: CachedCatalog, columns: Collection[str] | None
    ) -> Iterator[tuple[DataFile, int, Columns]]:
        with ThreadPoolExecutor(self.context.limits.threads, "windrow") as pool:
            yield from pool.map(partial(_learn, catalog=catalog, columns=columns), files)


def _columns(found: ForeignFiles, files: Sequence[DataFile]) -> list[str]:
    """The columns of the first file, which are those of queries."""
    [sidecar] = open_sidecars(found.context, files[:1])
    return [column.name for column in arrow_schema(sidecar)]


def _learn(file: DataFile, *, catalog: CachedCatalog, columns: Collection[str] | None) -> tuple[DataFile, int, Columns]:
    try:
        opened = opened_file(StoredFile(file.store, file.key, file.identity.size, expect=file.identity))
        return file, opened.metadata.num_rows, learn_missing(opened, file_id_of(file), catalog, columns)
    except WindrowError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise Damaged(f"{file.uri}: it cannot be read for statistics: {error}; write it anew") from error

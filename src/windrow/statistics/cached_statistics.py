"""The statistics of one table or of some files, put together when a query first needs them, and then cached.

Everything here is a dictionary look-up once it is there. What changed since is looked at when the catalog has another
revision, as long as something is left to learn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from windrow.bounded import BoundedCache
from windrow.errors import WindrowError
from windrow.statistics.cached_catalog import CachedCatalog
from windrow.statistics.catalog import Columns
from windrow.statistics.column_summary import ColumnSummary
from windrow.statistics.layout import FileId
from windrow.statistics.sketch import Sketch, united
from windrow.statistics.table_statistics import ColumnStatistics, TableStatistics
from windrow.statistics.table_summary import table_statistics

__all__ = ["MOST_FILES", "CachedStatistics"]

MOST_FILES = 256
"""Tables of more files have no statistics here: to put them together would take longer than they could save."""
_MOST_CACHED = 32
"""Sets of columns of one relation."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Statistics of some columns, and what they were made of."""

    revision: int
    statistics: TableStatistics
    summaries: tuple[ColumnSummary, ...]
    is_complete: bool
    """Whether no query can add to them."""


class CachedStatistics:
    """The statistics of the files of one relation, which are always the same. Threads may share it."""

    def __init__(
        self,
        catalog: CachedCatalog,
        files: Callable[[], Mapping[FileId, int] | None],
        shows_bounds: Callable[[str], bool] = lambda _: True,
        guess: Callable[[Sequence[str]], Mapping[str, ColumnStatistics]] = lambda _: {},
    ) -> None:
        """`files` gives the rows of each file, or None for too many; `shows_bounds` of a column: engines see them.

        `guess` gives vague statistics of columns that nothing was learnt of.
        """
        self._catalog = catalog
        self._list = files
        self._files: Mapping[FileId, int] = {}
        self._rows: int | None = None
        self._is_listed = False
        self._entries: BoundedCache[tuple[str, ...], _Entry] = BoundedCache("statistics of relations", _MOST_CACHED)
        self.shows_bounds = shows_bounds
        self._guess = guess

    @property
    def rows(self) -> int | None:
        """The rows of all files; None where there are too many files."""
        if not self._is_listed:
            try:
                files = self._list()
            except WindrowError as error:
                _log.debug("files are not listed for their statistics: %s", error)
                return None
            if files is not None and len(files) <= MOST_FILES:
                self._files, self._rows = files, sum(files.values())
            self._is_listed = True
        return self._rows

    def of(self, columns: tuple[str, ...]) -> TableStatistics | None:
        """The statistics of some columns, the same object until they change; None where there are too many files.

        The columns are in the order of the table, in which keys are looked for.
        """
        entry = self._entries.get(columns)
        if entry is not None and (entry.is_complete or entry.revision == self._catalog.revision):
            return entry.statistics
        if self.rows is None:
            return None
        made = self._made(columns, entry)
        self._entries.put(columns, made)
        return made.statistics

    def guessed(self, columns: tuple[str, ...]) -> TableStatistics | None:
        """The same with vague statistics of columns that nothing was learnt of, for explanations."""
        learnt = self.of(columns)
        if learnt is None:
            return None
        guesses = self._guess([name for name in columns if name not in learnt.columns])
        both = {**guesses, **learnt.columns}
        return TableStatistics(learnt.row_count, {name: both[name] for name in columns if name in both}, learnt.sample)

    def sketch(self, column: str) -> Sketch | None:
        """The distinct values of a column in all files; None where that of a file is not complete."""
        if self.rows is None:
            return None
        summaries = _summaries(self._load([column]))
        if len(summaries) < len(self._files) or not all(each.is_complete for each in summaries):
            return None
        return united(each.sketch for each in summaries)

    def _made(self, columns: Collection[str], before: _Entry | None) -> _Entry:
        """The statistics of today: those of before, where nothing was learnt since."""
        revision = self._catalog.revision
        learnt = self._load(columns)
        summaries = _summaries(learnt)
        if before is not None and [*map(id, before.summaries)] == [*map(id, summaries)]:
            return _Entry(revision, before.statistics, before.summaries, before.is_complete)
        statistics = table_statistics({file.key: rows for file, rows in self._files.items()}, learnt, columns)
        is_complete = len(summaries) == len(self._files) * len(columns) and all(each.is_complete for each in summaries)
        return _Entry(revision, statistics, summaries, is_complete)

    def _load(self, columns: Collection[str]) -> dict[str, Columns]:
        return self._catalog.load(list(self._files), columns)


def _summaries(learnt: Mapping[str, Columns]) -> tuple[ColumnSummary, ...]:
    return tuple(summary for columns in learnt.values() for summary in columns.values())

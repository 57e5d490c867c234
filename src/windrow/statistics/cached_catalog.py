"""Statistics that were loaded lately, for the queries of one lake: none of them waits twice for the same record.

What another process learnt meanwhile is noticed after a while, as far as there was something left to learn. Everything
that is made of statistics can be cached under the `revision` that it was made at.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from windrow.bounded import BoundedCache
from windrow.statistics.catalog import Catalog, Columns
from windrow.statistics.column_summary import ColumnSummary
from windrow.statistics.layout import FileId

__all__ = ["CachedCatalog"]

_BUDGET = 64 * 2**20
_PATIENCE = 30.0
"""Seconds after which an incomplete record is loaded again."""
_Key = tuple[FileId, str]
_RECORD_BYTES, _SKETCH_BYTES, _SYNOPSIS_BYTES = 2_000, 4_096, 400


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What a catalog had of one column of one file; None is nothing."""

    summary: ColumnSummary | None
    at: float

    @property
    def is_complete(self) -> bool:
        return self.summary is not None and self.summary.is_complete

    @property
    def weight(self) -> int:
        if self.summary is None:
            return _RECORD_BYTES
        sample = 0 if self.summary.sample is None else self.summary.sample.values.nbytes
        return _RECORD_BYTES + _SKETCH_BYTES + _SYNOPSIS_BYTES * len(self.summary.synopses.facts) + sample


class CachedCatalog:
    """A catalog before another one, in memory. Threads may share it."""

    def __init__(self, catalog: Catalog, *, budget: int = _BUDGET, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalog = catalog
        self._clock = clock
        self._loaded: BoundedCache[_Key, _Loaded] = BoundedCache("statistics", budget=budget)
        self._revisions = itertools.count(1)
        self.revision = 0
        """Another number after every change that is stored or noticed here."""

    def load(self, files: Collection[FileId], columns: Collection[str]) -> dict[str, Columns]:
        """What is stored of some columns of files, by the key of a file; files without statistics are missing."""
        names = list(columns)
        entries = {(file, name): self._fresh(file, name) for file in files for name in names}
        for missing, some in _by_files([key for key, entry in entries.items() if entry is None]):
            entries |= self._loaded_again(some, missing)
        loaded: dict[str, Columns] = {}
        for (file, name), entry in entries.items():
            if entry is not None and entry.summary is not None:
                loaded.setdefault(file.key, {})[name] = entry.summary
        return loaded

    def store(self, columns: Mapping[str, ColumnSummary]) -> None:
        """Add what was learnt of columns of one file; the next load has it."""
        try:
            self._catalog.store(columns)
        finally:
            for name, summary in columns.items():
                self._loaded.drop((summary.layout.file, name))
            self._revise()

    def _fresh(self, file: FileId, name: str) -> _Loaded | None:
        entry = self._loaded.get((file, name))
        is_fresh = entry is not None and (entry.is_complete or self._clock() - entry.at < _PATIENCE)
        return entry if is_fresh else None

    def _loaded_again(self, files: Collection[FileId], names: Collection[str]) -> dict[_Key, _Loaded]:
        now, stored = self._clock(), self._catalog.load(files, names)
        entries = {(file, name): _Loaded(stored.get(file.key, {}).get(name), now) for file in files for name in names}
        is_news = False
        for key, entry in entries.items():
            before = self._loaded.get(key)
            is_news |= _rows(entry) != _rows(before)
            self._loaded.put(key, entry, entry.weight)
        if is_news:
            self._revise()
        return entries

    def _revise(self) -> None:
        self.revision = next(self._revisions)


def _rows(entry: _Loaded | None) -> int:
    return 0 if entry is None or entry.summary is None else entry.summary.known_rows


def _by_files(keys: Collection[_Key]) -> list[tuple[list[str], list[FileId]]]:
    """Columns that are missing of the same files, together."""
    files_of: dict[str, list[FileId]] = {}
    for file, name in keys:
        files_of.setdefault(name, []).append(file)
    groups: dict[tuple[FileId, ...], list[str]] = {}
    for name, files in files_of.items():
        groups.setdefault(tuple(files), []).append(name)
    return [(names, list(files)) for files, names in groups.items()]

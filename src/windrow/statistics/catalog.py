"""Where statistics are stored between queries: of splits in the metastore, of other files in a folder of this machine.

What two processes learn at once is united. What cannot be read, or is about another content of a file, counts as
nothing: what is not known costs time, and is learnt again. What cannot be stored is an error, for the caller to judge.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from windrow.cache import CacheKey, DiskCache
from windrow.errors import Damaged, WindrowError
from windrow.metastore import Metastore, StoredStatistics
from windrow.statistics.column_summary import ColumnSummary
from windrow.statistics.encoding import decode, encode
from windrow.statistics.layout import FileId
from windrow.storage.failures import disk_failure

__all__ = ["Catalog", "Columns", "FolderCatalog", "TableCatalog"]

Columns = dict[str, ColumnSummary]
"""What is known of columns of a file, by name."""

_TRIES = 8
_BUDGET = 256 * 2**20
_log = logging.getLogger(__name__)


class Catalog(Protocol):
    """Statistics by file and column."""

    def load(self, files: Collection[FileId], columns: Collection[str]) -> dict[str, Columns]:
        """What is known of some columns of files, by the key of a file; files of which nothing is known are missing."""

    def store(self, columns: Mapping[str, ColumnSummary]) -> None:
        """Add what was learnt of columns of one file to what is known; an error leaves what was there."""


class TableCatalog:
    """The statistics of a table's splits, in the metastore."""

    def __init__(self, metastore: Metastore, table_id: str) -> None:
        self._metastore = metastore
        self._table_id = table_id

    def load(
        self, files: Collection[FileId], columns: Collection[str] | None, *, with_samples: bool = True
    ) -> dict[str, Columns]:
        """What is known of some columns of splits, or of all, by the id of a split."""
        by_key, known = {file.key: file for file in files}, dict[str, Columns]()
        try:
            stored = self._metastore.statistics(self._table_id, list(by_key), columns)
        except WindrowError as error:
            _log.debug("statistics of %s are not read: %s", self._table_id, error)
            return {}
        for entry in (each for each in stored if each.column):
            summary = _decoded(entry.data, by_key[entry.split_id], entry.column, with_sample=with_samples)
            if summary is not None:
                known.setdefault(entry.split_id, {})[entry.column] = summary
        return known

    def store(self, columns: Mapping[str, ColumnSummary]) -> None:
        """Add what was learnt of columns of one split to what is known."""
        left = dict(columns)
        for _ in range(_TRIES):
            left = self._tried(left)
            if not left:
                return

    def _tried(self, columns: Mapping[str, ColumnSummary]) -> Columns:
        """Store columns, and return those that another process changed meanwhile."""
        if not columns:
            return {}
        file = next(iter(columns.values())).layout.file
        found = {each.column: each for each in self._metastore.statistics(self._table_id, [file.key], list(columns))}
        entries = []
        for name, summary in columns.items():
            stored = found.get(name)
            data = encode(_united(summary, None if stored is None else stored.data, name))
            if stored is None or stored.data != data:
                entries.append(StoredStatistics(file.key, name, 0 if stored is None else stored.revision, data))
        refused = self._metastore.store_statistics(self._table_id, entries) if entries else []
        return {entry.column: columns[entry.column] for entry in refused}


class FolderCatalog:
    """The statistics of files that belong to no table, in a folder of this machine: bounded, the oldest go first."""

    def __init__(self, folder: Path, budget: int = _BUDGET) -> None:
        self._lock = folder / "lock"
        self._cache = DiskCache(folder, budget, name="statistics")

    def load(self, files: Collection[FileId], columns: Collection[str]) -> dict[str, Columns]:
        """What is known of some columns of files, by the address of a file."""
        found = {file.key: self._load(file, columns) for file in files}
        return {key: known for key, known in found.items() if known}

    def store(self, columns: Mapping[str, ColumnSummary]) -> None:
        """Add what was learnt of columns of one file to what is known."""
        try:
            with self._locked():
                for name, summary in columns.items():
                    key = _key(summary.layout.file, name)
                    self._cache.write(key, encode(_united(summary, self._cache.find(key), name)))
        except OSError as error:
            raise disk_failure(error, str(self._cache.folder)) from error

    def _load(self, file: FileId, columns: Collection[str]) -> Columns:
        stored = {name: self._cache.find(_key(file, name)) for name in columns}
        found = {name: _decoded(data, file, name) for name, data in stored.items() if data}
        return {name: summary for name, summary in found.items() if summary is not None}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among all processes; the system releases the lock of one that dies."""
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _key(file: FileId, column: str) -> CacheKey:
    return CacheKey(file.key, -1, -1, identity=f"{file.digest.hex()} {column}")


def _united(summary: ColumnSummary, stored: bytes | None, name: str) -> ColumnSummary:
    known = _decoded(stored, summary.layout.file, name) if stored else None
    is_alike = known is not None and known.type == summary.type and known.layout == summary.layout
    return summary.union(known) if known is not None and is_alike else summary


def _decoded(data: bytes, file: FileId, column: str, *, with_sample: bool = True) -> ColumnSummary | None:
    """What some bytes tell of a column of a file; None where they are damaged, or are of another content of it."""
    try:
        return decode(data, file, name=f"{file.key}, column {column}", with_sample=with_sample)
    except Damaged as error:
        _log.debug("%s", error)
        return None

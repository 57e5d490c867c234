"""What SQLite knows of a local lake: whether it is whole, a table, its columns, the files of a range of time.

These are few statements, written out, that run on Python's own driver; `windrow.metastore` has the same for every
database and every case, and is what tests compare them with. Whatever is not as usual is `Unusual`: the caller
then goes by the metastore, which finds out what it is, and says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow import forking
from windrow.identity.names import BESIDE, MARKER, MARKER_FORMAT
from windrow.model.ids import time_ordered_id
from windrow.network_disks import network_file_system

__all__ = ["REVISION", "Catalog", "File", "Table", "Unusual"]

REVISION = "0011"
"""The schema of the metastore that these statements are written for."""
_BUSY_SECONDS = 30
_PIN_MICROSECONDS = 60_000_000
_LONGEST_WINDOW = 3600
_HALF = 7 * 86_400_000_000
_FORGOTTEN = 20
_NO_WINDOW, _TIMED = 0, 2

_LAKE = """
select lake_key from windrow_lakes where lake_id = ? and address = '.'
and exists (select 1 from windrow_tables where windrow_tables.lake_key = windrow_lakes.lake_key)
and exists (select 1 from windrow_identity)"""
_TABLE = """
select table_key, name, settings, version, oldest_version, schema_epoch, checksum from windrow_tables
where lake_key = ? and lower(name) = ? and dropped_at is null"""
_COLUMNS = """
select name, type from windrow_columns
where table_key = ? and schema_epoch = 0 and since_version <= ? order by field_id"""
_FILES = """
select window_kind, window_start, data_key, size_bytes, row_count from windrow_splits
where table_key = :key and window_kind = :kind and window_start between :first and :last
and added_version <= :version and (removed_version is null or removed_version > :version)
and (:low is null or time_max is null or time_max >= :low)
and (:high is null or time_min is null or time_min <= :high)
order by window_start, split_id limit :most"""
_COLD = "select 1 from windrow_splits where table_key = ? and window_kind > ? limit 1"
"""Splits of longer windows."""
_PIN = "insert into windrow_pins (pin_id, table_key, version, owner, expires_at) values (?, ?, ?, ?, ?)"


class Unusual(Exception):
    """Something that is left to the metastore."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table."""

    path: str
    rows: int
    window: int | None
    """The second at which its window starts; None where it has none."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table at its newest version."""

    key: int
    name: str
    timestamp: str
    version: int
    columns: dict[str, str]
    """The types of its columns, in their order, as Arrow spells them."""


class Catalog:
    """The metastore in the folder of a local lake."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = os.path.realpath(root)
        self._lake_id = _lake_id(root)
        if set("?#%") & set(str(root)) or network_file_system(root / BESIDE) is not None:
            raise Unusual

    @contextmanager
    def opened(self) -> Iterator[OpenCatalog]:
        """Connect while the block lasts; a process is not forked meanwhile."""
        try:
            with forking.working():
                connection = sqlite3.connect(
                    f"file:{self._root / BESIDE}?mode=rw", _BUSY_SECONDS, isolation_level=None, uri=True
                )
                try:
                    yield OpenCatalog(connection, self._folder, self._lake_id)
                finally:
                    connection.close()
        except (sqlite3.Error, OSError, ValueError, TypeError, LookupError) as error:
            raise Unusual from error


class OpenCatalog:
    """The metastore of a lake while it is connected to."""

    def __init__(self, connection: sqlite3.Connection, folder: str, lake_id: str) -> None:
        self._connection = connection
        self._folder = folder
        lake = self._one(_LAKE, lake_id)
        revision = self._one("select version_num from windrow_migrations")
        if lake is None or revision != (REVISION,) or self._one("pragma journal_mode") != ("wal",):
            raise Unusual
        self._lake_key = lake[0]

    def _one(self, statement: str, *values: object) -> Any:
        return self._connection.execute(statement, values).fetchone()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")

    @contextmanager
    def pinned(self, name: str) -> Iterator[Table]:
        """Give a table at its newest version, of which no file goes away while the block lasts."""
        pin = time_ordered_id(time.time_ns() // 1_000_000, os.urandom(10))
        with self._transaction():
            table = self._table(name)
            owner = f"a reader on {os.uname().nodename or 'this machine'}, process {os.getpid()}"
            self._one(_PIN, pin, table.key, table.version, owner, time.time_ns() // 1000 + _PIN_MICROSECONDS)
        try:
            yield table
        finally:
            self._one("delete from windrow_pins where pin_id = ?", pin)

    def _table(self, name: str) -> Table:
        row = self._one(_TABLE, self._lake_key, name.lower())
        if row is None:
            raise Unusual
        key, name, settings, version, oldest, epoch, checksum = row
        found = hashlib.sha256(f"{oldest} {epoch} {settings}".encode()).hexdigest()[:16]
        has_attributes = self._one("select 1 from windrow_attributes where table_key = ?", key)
        if checksum != found or epoch or has_attributes or version < oldest or self._one(_COLD, key, _TIMED):
            raise Unusual
        columns = dict(self._connection.execute(_COLUMNS, (key, version)).fetchall())
        return Table(key, name, json.loads(settings)["timestamp"], version, columns)

    def files(self, table: Table, span: tuple[int | None, int | None], most: int) -> list[File] | None:
        """The files that may have rows in a range of time, in the order of their windows; None where there are more."""
        low, high = span
        first = -(2**63) if low is None else low // 1_000_000 - _LONGEST_WINDOW
        last = 2**63 - 1 if high is None else high // 1_000_000
        values = {"key": table.key, "version": table.version, "low": low, "high": high, "most": most + 1}
        # Rows without a time match no range.
        kinds = range(_TIMED + 1) if low is None and high is None else (_NO_WINDOW, _TIMED)
        rows: list[tuple[int, int, str, int, int]] = []
        for kind in kinds:
            bounds = {"first": first, "last": last} if kind == _TIMED else {"first": 0, "last": 0}
            rows += self._connection.execute(_FILES, {**values, **bounds, "kind": kind}).fetchall()
        return None if len(rows) > most else [self._file(*row) for row in rows]

    def _file(self, kind: int, start: int, key: str, size: int, rows: int) -> File:
        path = f"{self._folder}/{key}"
        # A registered file is its owner's, and may be any.
        if kind == _NO_WINDOW or ":" in key or set("*?[") & set(path) or Path(path).stat().st_size != size:
            raise Unusual
        return File(path, rows, start if kind == _TIMED else None)

    def count_query(self, table: Table, windows: set[int]) -> None:
        """Count a query of windows, as `windrow.metastore.heat` does."""
        now = time.time_ns() // 1000
        with self._transaction():
            self._one("delete from windrow_heat where table_key = ? and at < ?", table.key, now - _FORGOTTEN * _HALF)
            for start in windows:
                row = self._one(
                    "select queries, at from windrow_heat where table_key = ? and window_start = ?", table.key, start
                )
                cooled = 0.0 if row is None else row[0] * 0.5 ** (max(now - row[1], 0) / _HALF)
                self._one("insert or replace into windrow_heat values (?, ?, ?, ?)", table.key, start, cooled + 1, now)


def _lake_id(root: Path) -> str:
    """The id of the lake in a folder, by its marker."""
    try:
        marker = json.loads((root / MARKER).read_bytes())
        format_, lake_id, metastore = marker["format"], marker["lake_id"], marker["metastore"]
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise Unusual from error
    if format_ != MARKER_FORMAT or metastore != BESIDE:
        raise Unusual
    return str(lake_id)

"""A folder of QuestDB's tables, read-only: the database, its tables, and their rows.

database = open_database("/var/lib/questdb/db")
database.tables()
database.table("trades").scan(where="symbol = 'BTC-USD'", columns=["ts", "price"]).to_arrow()
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from windrow.engines.duckdb.questdb import scan_snapshot
from windrow.engines.scan import Scan
from windrow.model.limits import NO_LIMITS, Limits
from windrow.model.predicate import Predicate
from windrow.model.rows import Rows
from windrow.questdb.registry import database_folder, find_table, table_folder, table_folders, table_name
from windrow.questdb.snapshot import Native, Snapshot, open_snapshot

__all__ = ["Database", "DatabaseTable", "TableEntry", "open_database", "open_table"]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table of a database."""

    name: str
    folder: str


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """One table. Each snapshot, and each scan, is of the newest commit when it is made."""

    name: str
    folder: Path
    native: Native = "refuse"
    """What is done about native partitions, which are not read: an error, or they are left out by "skip"."""
    recover: bool = False
    """Whether partitions are read that a killed QuestDB left with a wrong size."""
    deadline: float = 5.0
    """Seconds to wait for a consistent state."""
    limits: Limits = NO_LIMITS

    def snapshot(self) -> Snapshot:
        """Read the newest committed state: partitions, committed sizes, columns."""
        return open_snapshot(self.folder, native=self.native, recover=self.recover, deadline=self.deadline)

    def scan(self, where: str | Predicate | None = None, columns: Iterable[str] | None = None) -> Scan:
        """Return some columns of the rows that meet a condition, for any engine; all from one snapshot, taken now."""
        return scan_snapshot(self.snapshot(), where, columns, limits=self.limits)


@dataclass(frozen=True, slots=True)
class Database:
    """A database folder; the settings are those of its tables."""

    folder: Path
    native: Native = "refuse"
    recover: bool = False
    deadline: float = 5.0
    limits: Limits = NO_LIMITS

    def tables(self) -> Rows[TableEntry]:
        """Return the tables that have a folder, by name."""
        folders = table_folders(self.folder)
        return Rows(TableEntry, tuple(TableEntry(name, folders[name].name) for name in sorted(folders)))

    def table(self, name: str) -> DatabaseTable:
        """Return a table by name, whatever its case, or raise NotFound with the nearest name."""
        spelled, folder = find_table(self.folder, name)
        return DatabaseTable(spelled, folder, self.native, self.recover, self.deadline, self.limits)


def open_database(
    path: str | Path,
    *,
    native: Native = "refuse",
    recover: bool = False,
    deadline: float = 5.0,
    limits: Limits = NO_LIMITS,
) -> Database:
    """Open the folder of a database, or the root folder of a server; nothing is ever written to it.

    Native partitions are refused, or left out with `native="skip"`. `recover` reads partitions that a killed QuestDB
    left with a size that no footer describes. `deadline` bounds the seconds of waiting for a consistent state.
    """
    return Database(database_folder(path), native, recover, deadline, limits)


def open_table(
    path: str | Path,
    *,
    native: Native = "refuse",
    recover: bool = False,
    deadline: float = 5.0,
    limits: Limits = NO_LIMITS,
) -> DatabaseTable:
    """Open one table by its own folder; the settings are those of `open_database`."""
    folder = table_folder(path)
    return DatabaseTable(table_name(folder), folder, native, recover, deadline, limits)

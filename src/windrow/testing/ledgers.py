"""What a metastore on SQLite holds, read past the metastore: which files a version shows, and which pins there are.

Whoever proves something of every step looks here as often as wanted; a look at a database that has not changed costs
next to nothing. The metastore itself is asked too, less often, and has to say the same.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

__all__ = ["Ledger"]


class Ledger:
    """The rows of one table's splits and pins, as the database had them at the last look."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        self._splits: list[tuple[str, int, int | None]] = []
        self._keys: dict[int, list[str]] = {}
        self._mark = -1
        self.newest = 0
        """The newest version."""
        self.pins: dict[str, int] = {}
        """When pins run out, by their ids."""

    def look(self) -> None:
        """Look again."""
        (mark,) = self._connection.execute("PRAGMA data_version").fetchone()
        if mark == self._mark:
            return
        self._mark, self._keys = mark, {}
        (self.newest,) = self._connection.execute("select max(version) from windrow_tables").fetchone()
        self.pins = dict(self._connection.execute("select pin_id, expires_at from windrow_pins"))
        columns = "data_key, added_version, removed_version"
        self._splits = self._connection.execute(f"select {columns} from windrow_splits order by split_id").fetchall()

    def keys(self, version: int) -> list[str]:
        """Return the files that a version shows."""
        if version not in self._keys:
            self._keys[version] = [
                key
                for key, added, removed in self._splits
                if added <= version and (removed is None or removed > version)
            ]
        return self._keys[version]

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

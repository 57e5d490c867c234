"""Tables that get another name, or are dropped: one transaction each, read back when the answer was lost.

No file is touched. A renamed table keeps its folder. A dropped one gives its name free at once and keeps its row, by
which garbage collection finds its files later; whatever was being written into it cannot be published any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row, delete, func, select, update

from windrow.errors import InvalidInput
from windrow.metastore.catalog import refuse_dropped, refuse_same_name
from windrow.metastore.commits import Change, Commits
from windrow.metastore.guards import microseconds
from windrow.metastore.records import CommitState, DroppedTable, TableRecord, dropped_of, folder_of, table_of
from windrow.metastore.schema import commits, metadata, pins, tables
from windrow.model.ids import check_name

__all__ = ["TableNaming"]


class TableNaming(Commits):
    """The part of a metastore that renames and drops tables, and forgets dropped ones."""

    def rename_table(self, table_id: str, name: str) -> TableRecord:
        """Give a table another name; its folder, its versions and its open commits stay as they are."""
        problem = check_name(name)
        if problem:
            raise InvalidInput(problem)

        def rename(connection: Connection, table: Row[Any]) -> None:
            refuse_same_name(connection, self.lake_key, name, but=table.table_key)
            changed = update(tables).where(tables.c.table_key == table.table_key)
            connection.execute(changed.values(name=name, folder=folder_of(table)))

        return table_of(self._change(table_id, rename, lambda table: bool(table.name == name)))

    def drop_table(self, table_id: str) -> DroppedTable:
        """Take a table out of the lake: its name is free, nothing can be published into it; its files stay."""

        def drop(connection: Connection, table: Row[Any]) -> None:
            now = self.database.now(connection)
            mine = (commits.c.table_key == table.table_key, commits.c.state == CommitState.OPEN)
            connection.execute(update(commits).where(*mine).values(state=CommitState.ABORTED))
            gone = {"name": _tombstone(table), "dropped_name": table.name, "dropped_at": now}
            changed = update(tables).where(tables.c.table_key == table.table_key)
            connection.execute(changed.values(folder=folder_of(table), **gone))

        return dropped_of(self._change(table_id, drop, lambda table: table.dropped_at is not None))

    def _change(
        self,
        table_id: str,
        apply: Callable[[Connection, Row[Any]], None],
        is_done: Callable[[Row[Any]], bool],
    ) -> Row[Any]:
        """Change a table's row by one transaction, unless that is done already; a lost outcome is read back."""

        def read(connection: Connection) -> Row[Any]:
            return self.held_even_dropped(connection, self.table_key(connection, table_id))

        def lock(connection: Connection) -> Row[Any]:
            # New tables and names come one after the other in a database.
            self.database.one_at_a_time(connection)
            return read(connection)

        def changed(connection: Connection, row: Row[Any]) -> Row[Any]:
            refuse_dropped(row)
            apply(connection, row)
            return read(connection)

        text = f"it changed the table {table_id}"
        return self.change_once(Change(table_id, text, lock, read, changed, lambda row: row if is_done(row) else None))

    def folders(self) -> frozenset[str]:
        """Return the folders of all tables of the lake, those of dropped ones too until they are collected."""
        with self.database.reading() as connection:
            rows = connection.execute(select(tables).where(tables.c.lake_key == self.lake_key))
            return frozenset(map(folder_of, rows))

    def dropped_tables(self, *, grace: float = 0) -> list[DroppedTable]:
        """Return the dropped tables, oldest first, each with what keeps its files at least for now."""
        with self.database.reading() as connection:
            now = self.database.now(connection)
            gone = (tables.c.lake_key == self.lake_key, tables.c.dropped_at.is_not(None))
            rows = connection.execute(select(tables).where(*gone).order_by(tables.c.dropped_at, tables.c.table_id))
            began = now - (microseconds("grace", grace) if grace else 0)
            return [dropped_of(row, _holders(connection, row, now, began)) for row in rows]

    def forget_table(self, table_id: str) -> bool:
        """Remove all rows of a dropped table whose files are gone, and return whether there were any."""
        with self.database.writing() as connection:
            row = connection.execute(
                select(tables).where(tables.c.table_id == table_id).with_for_update()
            ).one_or_none()
            if row is None:
                return False
            if row.dropped_at is None:
                raise InvalidInput(f"the table {row.name!r} is in use; drop it first")
            for each in reversed(metadata.sorted_tables):
                if "table_key" in each.c:
                    connection.execute(delete(each).where(each.c.table_key == row.table_key))
            self._keys.drop(table_id)
            return True


def _tombstone(table: Row[Any]) -> str:
    """Return a name that no table can have."""
    return f"#{table.table_id}"


def _holders(connection: Connection, table: Row[Any], now: int, began: int) -> tuple[str, ...]:
    """Say who may need a dropped table: readers, writers that have not noticed yet, and the grace period."""
    alive = (pins.c.table_key == table.table_key, pins.c.expires_at > now)
    holders = [f"pin of {pin.owner} on version {pin.version}" for pin in connection.execute(select(pins).where(*alive))]
    leased = (commits.c.table_key == table.table_key, commits.c.lease_expires_at > now)
    aborted = (*leased, commits.c.state == CommitState.ABORTED)
    writers = connection.execute(select(func.count()).select_from(commits).where(*aborted)).scalar_one()
    holders += [f"{writers} commits whose writers may still be at work"] if writers else []
    return (*holders, *(["the grace period"] if table.dropped_at > began else []))

"""Statistics of columns, by split: bytes that go with their split, and are replaced only by who read what was there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from windrow.metastore.catalog import Catalog
from windrow.metastore.records import StoredStatistics
from windrow.metastore.schema import splits, statistics
from windrow.metastore.stored import in_pieces

__all__ = ["Statistics", "forget_statistics"]


class Statistics(Catalog):
    """The part of a metastore that knows statistics of columns."""

    def statistics(
        self, table_id: str, split_ids: Collection[str], columns: Collection[str] | None = None
    ) -> list[StoredStatistics]:
        """Return what is stored of some splits, of these columns or of all, by split and column."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            found = [each for ids in in_pieces(split_ids) for each in _stored(connection, key, ids, columns)]
        return sorted(found, key=lambda each: (each.split_id, each.column))

    def store_statistics(self, table_id: str, entries: Sequence[StoredStatistics]) -> list[StoredStatistics]:
        """Store statistics over those of the same revision (0 for none), and return those that others changed since.

        What belongs to no split of the table is passed over.
        """
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            known = _known(connection, key, {entry.split_id for entry in entries})
            # two that store the same entries in one order never wait for each other
            ordered = sorted(entries, key=lambda each: (each.split_id, each.column))
            return [each for each in ordered if each.split_id in known and not self._replaced(connection, key, each)]

    def _replaced(self, connection: Connection, key: int, entry: StoredStatistics) -> bool:
        """Whether an entry could be stored."""
        values = {"revision": entry.revision + 1, "data": entry.data}
        place = {"table_key": key, "split_id": entry.split_id, "column_name": entry.column}
        if not entry.revision:
            insert = sqlite.insert if self.database.is_sqlite else postgresql.insert
            added = insert(statistics).values(place | values).on_conflict_do_nothing().returning(statistics.c.revision)
            return connection.execute(added).one_or_none() is not None
        same = [statistics.c[name] == value for name, value in place.items()]
        changed = update(statistics).where(*same, statistics.c.revision == entry.revision).values(values)
        return bool(connection.execute(changed).rowcount)


def forget_statistics(connection: Connection, key: int, split_ids: Collection[str]) -> None:
    """Remove what is stored of splits."""
    connection.execute(delete(statistics).where(statistics.c.table_key == key, statistics.c.split_id.in_(split_ids)))


def _stored(
    connection: Connection, key: int, split_ids: Collection[str], columns: Collection[str] | None
) -> list[StoredStatistics]:
    found = select(statistics).where(statistics.c.table_key == key, statistics.c.split_id.in_(split_ids))
    if columns is not None:
        found = found.where(statistics.c.column_name.in_(columns))
    return [
        StoredStatistics(row.split_id, row.column_name, row.revision, row.data) for row in connection.execute(found)
    ]


def _known(connection: Connection, key: int, split_ids: Collection[str]) -> set[str]:
    known: set[str] = set()
    for ids in in_pieces(split_ids):
        found = select(splits.c.split_id).where(splits.c.table_key == key, splits.c.split_id.in_(ids))
        known.update(connection.execute(found).scalars())
    return known

"""The lakes that a database serves, each with an id and an address; tables belong to one of them."""

from __future__ import annotations

from sqlalchemy import Connection, Row, delete, exists, func, insert, select, update

from windrow.errors import AlreadyExists, Conflict
from windrow.metastore.catalog import Catalog
from windrow.metastore.guards import check_id
from windrow.metastore.records import LakeRecord
from windrow.metastore.schema import lakes, tables

__all__ = ["Lakes"]

_COUNT = select(func.count()).where(tables.c.lake_key == lakes.c.lake_key).scalar_subquery()
_ALL = select(lakes, _COUNT.label("tables")).order_by(lakes.c.lake_key)
_FIRST = 0
"""The key that the tables of a database have which knows no lakes yet."""
_UNCLAIMED = select(exists().where(tables.c.lake_key == _FIRST))


class Lakes(Catalog):
    """The part of a metastore that knows its lakes. Until a lake is named, the tables of the first one are seen."""

    def lakes(self) -> list[LakeRecord]:
        """Return the lakes that the database serves, in the order in which they came."""
        with self.database.reading() as connection:
            return _records(connection)

    def has_unclaimed_tables(self) -> bool:
        """Whether there are tables of the time before databases knew their lakes; the first lake claims them."""
        with self.database.reading() as connection:
            claimed = any(each.lake_key == _FIRST for each in _records(connection))
            return not claimed and bool(connection.execute(_UNCLAIMED).scalar_one())

    def add_lake(self, lake_id: str, address: str, *, claims: bool) -> LakeRecord:
        """Serve one more lake; the one that has the address already is returned as it is.

        A lake that `claims` takes the tables that no lake has yet: Conflict when another was faster.
        """
        check_id("lake", lake_id)
        with self.database.writing() as connection:
            # Of two that come at once, the second finds the first.
            self.database.one_at_a_time(connection)
            served = _records(connection)
            same = next((each for each in served if each.address == address), None)
            if same is not None:
                return same
            first = next((each for each in served if each.lake_key == _FIRST), None)
            if claims and first is not None:
                raise Conflict(f"another lake, at {first.address}, came first; open the lake again")
            key = _FIRST if claims else 1 + max((each.lake_key for each in served), default=_FIRST)
            values = {"lake_key": key, "lake_id": lake_id, "address": address}
            with self.database.refusing_twins(f"the lake id {lake_id} is taken; give every lake an id of its own"):
                connection.execute(insert(lakes).values(created_at=self.database.now(connection), **values))
            return next(each for each in _records(connection) if each.lake_key == key)

    def move_lake(self, lake_id: str, address: str) -> None:
        """Know a lake by another address from now on."""
        with (
            self.database.writing() as connection,
            self.database.refusing_twins(f"another lake of the database is at {address}; move that one first"),
        ):
            connection.execute(update(lakes).where(lakes.c.lake_id == lake_id).values(address=address))

    def forget_lake(self, lake_id: str) -> None:
        """Serve a lake no longer that has no tables."""
        with self.database.writing() as connection:
            self.database.one_at_a_time(connection)
            served = next((each for each in _records(connection) if each.lake_id == lake_id), None)
            if served is not None and served.tables:
                raise AlreadyExists(f"the lake {lake_id} has tables; it cannot be forgotten")
            connection.execute(delete(lakes).where(lakes.c.lake_id == lake_id))


def _records(connection: Connection) -> list[LakeRecord]:
    return [_record(row) for row in connection.execute(_ALL)]


def _record(row: Row[tuple[int, str, str, int, int]]) -> LakeRecord:
    return LakeRecord(row.lake_key, row.lake_id, row.address, row.created_at, row.tables)

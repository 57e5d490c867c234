"""How often queries read windows: they are counted, and count half as much after a week."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import delete, insert, select, update

from windrow.metastore.catalog import Catalog
from windrow.metastore.schema import heat

__all__ = ["HeatRecords"]

_HALF = 7 * 86_400_000_000
"""Microseconds."""
_FORGOTTEN = 20
"""After so many times as long nothing is left to speak of."""


class HeatRecords(Catalog):
    """The part of a metastore that counts which windows queries read."""

    def add_queries(self, table_id: str, queries: Mapping[int, int]) -> None:
        """Count queries of the windows that start at these seconds."""
        with self.database.writing() as connection:
            key, now = self.table_key(connection, table_id), self.database.now(connection)
            of_table = heat.c.table_key == key
            connection.execute(delete(heat).where(of_table, heat.c.at < now - _FORGOTTEN * _HALF))
            counted = select(heat).where(of_table, heat.c.window_start.in_(queries))
            cooled = {row.window_start: _cooled(row.queries, now - row.at) for row in connection.execute(counted)}
            for start, count in queries.items():
                values = {"queries": cooled.get(start, 0.0) + count, "at": now}
                if start in cooled:
                    connection.execute(update(heat).where(of_table, heat.c.window_start == start).values(values))
                else:
                    connection.execute(insert(heat).values(table_key=key, window_start=start, **values))

    def heat(self, table_id: str) -> dict[int, float]:
        """Return how often queries read windows of late, by the second at which they start."""
        with self.database.reading() as connection:
            key, now = self.table_key(connection, table_id), self.database.now(connection)
            rows = connection.execute(select(heat).where(heat.c.table_key == key))
            return {row.window_start: _cooled(row.queries, now - row.at) for row in rows}


def _cooled(queries: float, age: int) -> float:
    cooled: float = queries * 0.5 ** (max(age, 0) / _HALF)
    return cooled

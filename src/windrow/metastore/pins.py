"""Pins: a reader's hold on a version, so that garbage collection leaves what it reads."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import delete, insert, select, update

from windrow.errors import NotFound, SnapshotExpired
from windrow.metastore.catalog import Catalog
from windrow.metastore.guards import check_id, microseconds
from windrow.metastore.records import Pin
from windrow.metastore.schema import pins

__all__ = ["PinRecords"]


class PinRecords(Catalog):
    """The pins of a metastore."""

    def pin(self, table_id: str, version: int, *, pin_id: str, owner: str, seconds: float) -> Pin:
        """Hold a version for some seconds; SnapshotExpired when it cannot be read any more."""
        check_id("pin", pin_id)
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            # Held, so that collection cannot move past the version in between.
            row = self.held(connection, key)
            if version > row.version or version < 0:
                raise NotFound(f"table {row.name!r} has no version {version}; the newest is {row.version}")
            if version < row.oldest_version:
                raise SnapshotExpired(f"snapshot expired: version {version} of table {row.name!r} is no longer kept")
            expires = self.database.now(connection) + microseconds("pin", seconds)
            values = {"pin_id": pin_id, "table_key": key, "version": version, "owner": owner, "expires_at": expires}
            with self.database.refusing_twins(f"the pin id {pin_id} is taken; give every pin an id of its own"):
                connection.execute(insert(pins).values(values))
            return Pin(pin_id, table_id, version, owner, expires)

    def renew(self, pin: Pin, *, seconds: float) -> Pin:
        """Hold on for some seconds from now; SnapshotExpired when the pin ran out already."""
        with self.database.writing() as connection:
            now = self.database.now(connection)
            expires = now + microseconds("pin", seconds)
            alive = (pins.c.pin_id == pin.pin_id, pins.c.expires_at > now)
            if connection.execute(update(pins).where(*alive).values(expires_at=expires)).rowcount != 1:
                raise SnapshotExpired(
                    f"snapshot expired: the pin on version {pin.version} ran out before it was renewed; open the table "
                    "again"
                )
            return replace(pin, expires_at=expires)

    def release(self, pin: Pin) -> None:
        """Let go of a version; letting go twice is fine."""
        with self.database.writing() as connection:
            connection.execute(delete(pins).where(pins.c.pin_id == pin.pin_id))

    def pins(self, table_id: str) -> list[Pin]:
        """Return the pins of a table that have not run out, oldest version first."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            alive = (pins.c.table_key == key, pins.c.expires_at > self.database.now(connection))
            rows = connection.execute(select(pins).where(*alive).order_by(pins.c.version, pins.c.pin_id))
            return [Pin(row.pin_id, table_id, row.version, row.owner, row.expires_at) for row in rows]

"""What garbage collection takes and leaves: which versions stay, which splits nobody can need any more.

Nothing here touches a file. A split goes in three steps: its row is marked as deleting, which only works while no
version that stays shows it; its files are deleted by the run that marked it; its row is forgotten. A run that stops in
between is continued by the next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, delete, func, select, update

from windrow.metastore.guards import microseconds
from windrow.metastore.listing import Listing
from windrow.metastore.records import (
    CommitRecord,
    CommitState,
    Orphans,
    Retired,
    check_table_row,
    commit_of,
    table_checksum,
)
from windrow.metastore.schema import commits, pins, quarantine, splits, tables
from windrow.metastore.statistics import forget_statistics
from windrow.metastore.stored import in_pieces
from windrow.model.split import SplitMetadata

__all__ = ["Collecting"]


class Collecting(Listing):
    """The part of a metastore that garbage collection works with."""

    def expired_commits(self, table_id: str) -> list[CommitRecord]:
        """Return the commits that are open although their lease ran out, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(select(commits).where(*self._expired(connection, table_id)).order_by(*_AGE))
            return [commit_of(row, table_id) for row in rows]

    def end_expired(self, table_id: str) -> list[str]:
        """Abort the commits whose lease ran out, and return their ids: from then on they cannot be published."""
        with self.database.writing() as connection:
            self.held(connection, self.table_key(connection, table_id))
            statement = update(commits).where(*self._expired(connection, table_id))
            ended = connection.execute(statement.values(state=CommitState.ABORTED).returning(commits.c.commit_id))
            return sorted(ended.scalars())

    def horizon(self, table_id: str, *, grace: float, upto: int | None = None) -> int:
        """Return the oldest version that must stay readable.

        That is the one that was the newest when the grace period began, or an older one that is pinned; never a
        newer one than `upto`.
        """
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            table = connection.execute(select(tables).where(tables.c.table_key == key)).one()
            return self._horizon(connection, table, grace, upto)

    def drop_versions(self, table_id: str, *, grace: float, upto: int | None = None) -> int:
        """Drop the versions before the horizon, and return the oldest that stays."""
        with self.database.writing() as connection:
            # Held, so that no reader pins a version in between.
            table = self.held(connection, self.table_key(connection, table_id))
            check_table_row(table)
            horizon = self._horizon(connection, table, grace, upto)
            key, checksum = table.table_key, table_checksum(table.settings, horizon, table.schema_epoch)
            raised = update(tables).where(tables.c.table_key == key)
            connection.execute(raised.values(oldest_version=horizon, checksum=checksum))
            gone = (pins.c.table_key == key, pins.c.expires_at <= self.database.now(connection))
            connection.execute(delete(pins).where(*gone))
            return horizon

    def retired(self, table_id: str, version: int) -> Retired:
        """Count the splits that no version from this one on shows."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            counts = select(func.count(), func.coalesce(func.sum(splits.c.size_bytes), 0))
            row = connection.execute(counts.where(splits.c.table_key == key, splits.c.removed_version <= version)).one()
            return Retired(int(row[0]), int(row[1]))

    def claim(self, table_id: str, *, limit: int) -> list[SplitMetadata]:
        """Mark some splits that no readable version shows as deleting; return them, and those marked before."""
        with self.database.writing() as connection:
            table = self.held(connection, self.table_key(connection, table_id))
            chosen = select(splits.c.split_id).where(*_beyond(table)).order_by(splits.c.removed_version).limit(limit)
            marked = update(splits).where(splits.c.split_id.in_(chosen), *_beyond(table))
            now = self.database.now(connection)
            since = func.coalesce(splits.c.deleting_since, now)
            rows = connection.execute(marked.values(deleting_since=since).returning(splits)).all()
            return [self._split(connection, row, table_id) for row in rows]

    def forget(self, table_id: str, split_ids: Collection[str]) -> int:
        """Remove the rows of splits that are marked as deleting, and return how many there were."""
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            forgotten = 0
            for ids in in_pieces(split_ids):
                marked = (splits.c.table_key == key, splits.c.split_id.in_(ids), splits.c.deleting_since.is_not(None))
                forgotten += connection.execute(delete(splits).where(*marked)).rowcount
                kept_away = (quarantine.c.table_key == key, quarantine.c.split_id.in_(ids))
                connection.execute(delete(quarantine).where(*kept_away))
                forget_statistics(connection, key, ids)
            return forgotten

    def orphans(self, table_id: str, split_ids: Collection[str], *, ended: Collection[str] = ()) -> Orphans:
        """Judge names of splits that lie in the store.

        An orphan is no split of the metastore, and the commit that wrote it has ended. A name of a commit that the
        metastore does not know is `unknown`: nobody can say whose it is. `ended` are commits to take for ended, by
        those who only look.
        """
        # Commits are read before splits: one that ends in between has been taken for open, and its splits stay. The
        # other way round, splits that were published in between would look like orphans of an ended commit.
        states = self._states(table_id, {name: _writers(name) for name in split_ids})
        recorded = self.recorded_splits(table_id, split_ids)
        over = {name for name in split_ids if ended and not set(ended).isdisjoint(_writers(name))}
        rest = [name for name in split_ids if name not in recorded]
        return Orphans(
            dead=frozenset(
                name for name in rest if name in over or (states[name] and CommitState.OPEN not in states[name])
            ),
            unknown=frozenset(name for name in rest if not states[name]),
        )

    def _expired(self, connection: Connection, table_id: str) -> tuple[ColumnElement[bool], ...]:
        key, now = self.table_key(connection, table_id), self.database.now(connection)
        return commits.c.table_key == key, commits.c.state == CommitState.OPEN, commits.c.lease_expires_at <= now

    def _states(self, table_id: str, writers: Mapping[str, list[str]]) -> dict[str, set[str]]:
        """Return, for each name, the states of the commits that may have written it."""
        states: dict[str, str] = {}
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            for ids in in_pieces({each for candidates in writers.values() for each in candidates}):
                named = (commits.c.table_key == key, commits.c.commit_id.in_(ids))
                rows = connection.execute(select(commits.c.commit_id, commits.c.state).where(*named))
                states.update({row.commit_id: row.state for row in rows})
        return {name: {states[each] for each in candidates if each in states} for name, candidates in writers.items()}

    def _horizon(self, connection: Connection, table: Row[Any], grace: float, upto: int | None) -> int:
        now = self.database.now(connection)
        began = now - (microseconds("grace", grace) if grace else 0)
        settled = select(func.max(commits.c.version)).where(
            commits.c.table_key == table.table_key, commits.c.published_at <= began
        )
        pinned = select(func.min(pins.c.version)).where(pins.c.table_key == table.table_key, pins.c.expires_at > now)
        bounds = (connection.execute(settled).scalar_one() or 0, connection.execute(pinned).scalar_one(), upto)
        return max(int(table.oldest_version), min(bound for bound in bounds if bound is not None))


_AGE = (commits.c.opened_at, commits.c.commit_id)


def _beyond(table: Row[Any]) -> tuple[ColumnElement[bool], ...]:
    """Splits that no readable version shows."""
    return splits.c.table_key == table.table_key, splits.c.removed_version <= table.oldest_version


def _writers(name: str) -> list[str]:
    """Return the ids of commits that may have written a split: its name is theirs, a dash and more."""
    parts = name.split("-")
    return ["-".join(parts[:count]) for count in range(1, len(parts))]

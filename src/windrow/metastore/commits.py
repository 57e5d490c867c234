"""Commits: opened under a lease, published in one transaction, read back when the answer was lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Row, bindparam, insert, select, text, update

from windrow.errors import CommitUnknown, Conflict, InvalidInput, LeaseExpired, MetastoreError, NotFound, Outcome
from windrow.metastore import guards
from windrow.metastore.catalog import Catalog, refuse_dropped
from windrow.metastore.database import Database
from windrow.metastore.records import (
    Checkpoint,
    CommitKind,
    CommitRecord,
    CommitState,
    Published,
    commit_of,
    split_row,
    window_of,
)
from windrow.metastore.schema import checkpoints, commits, splits, tables
from windrow.metastore.scopes import ScopeKeys, Scopes
from windrow.model.scope import CompactionScope
from windrow.model.split import SplitMetadata
from windrow.model.window import Window

__all__ = [
    "PUBLISH_STEPS",
    "Change",
    "Commits",
    "check_lease",
    "record_published",
]

PUBLISH_STEPS = ("begun", "checked", "replaced", "added", "versioned", "committing", "committed")
"""The named points of a publish, in order; `at_step` is called at each with its name."""

_BY_ID = select(commits).where(commits.c.commit_id == bindparam("wanted"))
_LOCKED = _BY_ID.with_for_update()

_WAITS = (0.0, 0.2, 1.0, 3.0)
"""Seconds before each attempt to read an outcome back."""

Step = Callable[[str], None]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A change of one row by one transaction."""

    id: str
    """What is changed."""
    text: str
    """For errors: what the metastore did."""
    lock: Callable[[Connection], Row[Any]]
    """Returns the row, for the transaction to change."""
    read: Callable[[Connection], Row[Any]]
    """Returns the row, once no transaction changes it."""
    apply: Callable[[Connection, Row[Any]], T]
    result: Callable[[Row[Any]], T | None]
    """The result of a change that is done already."""


class Commits(Catalog):
    """The commits of a metastore."""

    _scopes: Scopes

    def __init__(self, database: Database, *, at_step: Step, sleep: Callable[[float], None]) -> None:
        super().__init__(database)
        self._at_step = at_step
        self._sleep = sleep
        self._scope_keys = ScopeKeys()

    def open_commit(
        self,
        table_id: str,
        kind: CommitKind,
        *,
        commit_id: str,
        lease: float,
        summary: Mapping[str, Any] | None = None,
    ) -> CommitRecord:
        """Open a commit before anything is written; `lease` is in seconds; `heartbeat` prolongs it.

        The same id again takes the commit over from an attempt that was lost: the earlier attempt can no longer
        publish. A published commit is returned as it is. `summary` is that of the first opening, for all attempts.
        """
        guards.check_id("commit", commit_id)
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            self.held(connection, key)
            now = self.database.now(connection)
            expires = now + guards.microseconds("lease", lease)
            row = _commit_row(connection, commit_id)
            if row is None:
                connection.execute(
                    insert(commits).values(_new_commit(commit_id, key, kind, now, expires, summary or {}))
                )
            elif row.table_key != key or row.kind != kind:
                raise Conflict(f"commit {commit_id} belongs to another table or is of kind {row.kind}; use a new id")
            elif row.state != CommitState.PUBLISHED:
                connection.execute(
                    _update(commit_id).values(
                        state=CommitState.OPEN, attempt=row.attempt + 1, opened_at=now, lease_expires_at=expires
                    )
                )
            return commit_of(_required(_commit_row(connection, commit_id), commit_id), table_id)

    def heartbeat(self, commit_id: str, *, attempt: int = 1, lease: float) -> CommitRecord:
        """Prolong the lease of an open commit to `lease` seconds from now; LeaseExpired when it ran out already."""
        with self.database.writing() as connection:
            row = _required(_commit_row(connection, commit_id), commit_id)
            now = self.database.now(connection)
            check_lease(row, attempt, now)
            connection.execute(_update(commit_id).values(lease_expires_at=now + guards.microseconds("lease", lease)))
            return self._record(connection, commit_id)

    def abort(self, commit_id: str, *, attempt: int | None = None) -> None:
        """Give a commit up; its files become orphans. A published commit cannot be given up.

        With `attempt`, only that attempt is given up: one that was taken over must not end its successor.
        """
        with self.database.writing() as connection:
            row = _required(_commit_row(connection, commit_id), commit_id)
            if attempt is not None:
                _check_attempt(row, attempt)
            if row.state == CommitState.PUBLISHED:
                raise Conflict(
                    f"commit {commit_id} is published as version {row.version} and cannot be aborted",
                    retryable=False,
                    outcome=Outcome.COMMITTED,
                )
            connection.execute(_update(commit_id).values(state=CommitState.ABORTED))

    def commit(self, commit_id: str) -> CommitRecord:
        """Read a commit back by its id.

        PostgreSQL waits for a transaction that is still changing it: one whose client lost the connection may yet end.
        """
        with self.database.reading() as connection:
            return self._record(connection, commit_id)

    def commits(self, table_id: str, *, limit: int | None = None) -> Iterator[CommitRecord]:
        """Yield the commits of a table, newest first."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            query = select(commits).where(commits.c.table_key == key)
            query = query.order_by(commits.c.opened_at.desc(), commits.c.commit_id.desc()).limit(limit)
            rows = connection.execute(query).all()
        for row in rows:
            yield commit_of(row, table_id)

    def checkpoint(self, table_id: str, source_id: str) -> str | None:
        """Return how far a source has been published into a table."""
        with self.database.reading() as connection:
            return _position(connection, self.table_key(connection, table_id), source_id)

    def checkpoints(self, table_id: str, version: int) -> dict[str, str]:
        """Return how far sources had been published at a version, as far as they did not go on since."""
        with self.database.reading() as connection:
            query = select(checkpoints.c.source_id, checkpoints.c.position)
            query = query.join(commits, commits.c.commit_id == checkpoints.c.commit_id)
            mine = (checkpoints.c.table_key == self.table_key(connection, table_id), commits.c.version <= version)
            rows = connection.execute(query.where(*mine).order_by(checkpoints.c.source_id))
            return {row.source_id: row.position for row in rows}

    def publish(
        self,
        commit_id: str,
        *,
        attempt: int = 1,
        add: Sequence[SplitMetadata] = (),
        replace: Collection[str] = (),
        checkpoint: Checkpoint | None = None,
        columns: Collection[str] = (),
        attributes: Collection[str] = (),
        summary: Mapping[str, Any] | None = None,
    ) -> Published:
        """Make a commit visible: all of it as one new version, or nothing.

        The lease must be held by this attempt, every replaced split must still be visible, every added one must be
        new and keep the invariants, and the checkpoint must continue where the source stands. The same commit id
        again changes nothing and returns the first result. When the connection is lost, the outcome is read back.
        """

        def apply(connection: Connection, row: Row[Any]) -> Published:
            result = self._apply(connection, row, attempt, add, replace, checkpoint, columns, summary or {})
            self.publish_attributes(connection, row.table_key, attributes, result.version)
            return result

        return self.publish_once(commit_id, apply)

    def publish_once(self, commit_id: str, apply: Callable[[Connection, Row[Any]], Published]) -> Published:
        """Publish an open commit by one transaction, or return its first result; a lost outcome is read back."""
        change = Change(
            commit_id,
            f"it published commit {commit_id}",
            lock=lambda connection: self._locked(connection, commit_id),
            read=lambda connection: _required(_commit_row(connection, commit_id), commit_id),
            apply=apply,
            result=lambda row: _published_of(row) if row.state == CommitState.PUBLISHED else None,
        )
        return self.change_once(change)

    def change_once(self, change: Change[T]) -> T:
        """Make a change, or return its first result; a lost outcome is read back."""
        surely_open = False
        try:
            with self.database.writing() as connection:
                row = change.lock(connection)
                result = change.result(row)
                if result is not None:
                    return result
                surely_open = True
                result = change.apply(connection, row)
                self._at_step("committing")
                surely_open = False
        except MetastoreError as error:
            if surely_open:
                raise _not_committed(error) from error
            return self._read_back(change, error)
        self._at_step("committed")
        return result

    def _read_back(self, change: Change[T], error: MetastoreError) -> T:
        """Return the outcome of a change whose connection failed. Its row is locked while the transaction is open."""
        for wait in _WAITS:
            self._sleep(wait)
            try:
                with self.database.reading() as connection:
                    result = change.result(change.read(connection))
            except MetastoreError:
                continue
            if result is None:
                raise _not_committed(error) from error
            return result
        raise CommitUnknown(
            f"the metastore was lost while {change.text}, and did not come back; whether that is done is unknown. "
            f"Look again when the metastore answers, and delete nothing until then ({error})",
            change.id,
        ) from error

    def _apply(
        self,
        connection: Connection,
        row: Row[Any],
        attempt: int,
        add: Sequence[SplitMetadata],
        replace: Collection[str],
        checkpoint: Checkpoint | None,
        columns: Collection[str],
        summary: Mapping[str, Any],
    ) -> Published:
        self._at_step("begun")
        now = self.database.now(connection)
        check_lease(row, attempt, now)
        key = row.table_key
        table = connection.execute(select(tables).where(tables.c.table_key == key)).one()
        guards.check_added(row.commit_id, add)
        guards.check_replaced(add, replace)
        guards.check_table(add, table.table_id)
        guards.check_epoch(CommitKind(row.kind), add, table.name, table.schema_epoch)
        _move_checkpoint(connection, key, row.commit_id, checkpoint)
        self._at_step("checked")
        version = table.version + 1
        removed = self._remove(connection, key, version, replace)
        self._at_step("replaced")
        keys = self._scope_keys.of(connection, key, {split.scope for split in add})
        self._insert(connection, key, version, add, keys)
        guards.check_conserved(CommitKind(row.kind), add, self._windows_of(connection, removed, table.table_id))
        self._at_step("added")
        self.publish_columns(connection, table, columns, version)
        rows_added, rows_removed = (sum(split.row_count for split in group) for group in (add, removed))
        result = Published(row.commit_id, version, len(add), len(removed), rows_added, rows_removed)
        connection.execute(update(tables).where(tables.c.table_key == key).values(version=version))
        record_published(connection, result, now, {**commit_of(row, table.table_id).summary, **summary})
        self._at_step("versioned")
        return result

    def _windows_of(
        self, connection: Connection, removed: Sequence[Row[Any]], table_id: str
    ) -> Iterator[tuple[CompactionScope, Window | None, int]]:
        """Yield scope, window and rows of each split that is replaced."""
        for row in removed:
            scope = self._scopes.of(connection, row.scope_key, table_id)
            yield scope, window_of(row.window_kind, row.window_start, scope.window_duration), row.row_count

    def _locked(self, connection: Connection, commit_id: str) -> Row[Any]:
        """Return the commit's row, holding the table: publishes of one table happen one after the other."""
        row = _required(_commit_row(connection, commit_id, lock=False), commit_id)
        table = self.held_even_dropped(connection, row.table_key)
        row = _required(_commit_row(connection, commit_id), commit_id)
        if row.state != CommitState.PUBLISHED:
            refuse_dropped(table)
        return row

    def _remove(self, connection: Connection, key: int, version: int, replace: Collection[str]) -> Sequence[Row[Any]]:
        if not replace:
            return ()
        ids, value = _id_list(self.database, replace)
        statement = text(
            "UPDATE windrow_splits SET removed_version = :version "
            f"WHERE split_id IN ({ids}) AND table_key = :key AND removed_version IS NULL "
            "RETURNING split_id, scope_key, window_kind, window_start, row_count"
        )
        removed = connection.execute(statement, {"version": version, "key": key, "ids": value}).all()
        if len(removed) != len(replace):
            gone = sorted(set(replace) - {row.split_id for row in removed})
            raise Conflict(
                f"{len(gone)} of {len(replace)} splits to replace are no longer visible (the first: {gone[0]}); "
                "another commit replaced or dropped them. Plan again from the current version"
            )
        return removed

    def _insert(
        self,
        connection: Connection,
        key: int,
        version: int,
        add: Sequence[SplitMetadata],
        keys: Mapping[CompactionScope, int],
    ) -> None:
        if not add:
            return
        rows = [split_row(split, key, keys[split.scope], version) for split in add]
        inserted = self.database.insert_rows(connection, splits, rows)
        if inserted != len(add):
            raise MetastoreError(f"the metastore took {inserted} of {len(add)} splits; nothing was published")

    def _record(self, connection: Connection, commit_id: str) -> CommitRecord:
        row = _required(_commit_row(connection, commit_id), commit_id)
        query = select(tables.c.table_id).where(tables.c.table_key == row.table_key)
        return commit_of(row, connection.execute(query).scalar_one())


def _commit_row(connection: Connection, commit_id: str, *, lock: bool = True) -> Row[Any] | None:
    return connection.execute(_LOCKED if lock else _BY_ID, {"wanted": commit_id}).one_or_none()


def _required(row: Row[Any] | None, commit_id: str) -> Row[Any]:
    if row is None:
        raise NotFound(f"there is no commit {commit_id}; open it first")
    return row


def _update(commit_id: str) -> Any:
    return update(commits).where(commits.c.commit_id == commit_id)


def _new_commit(
    commit_id: str, key: int, kind: CommitKind, now: int, expires: int, summary: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "commit_id": commit_id,
        "table_key": key,
        "kind": kind,
        "state": CommitState.OPEN,
        "attempt": 1,
        "opened_at": now,
        "lease_expires_at": expires,
        "added": 0,
        "removed": 0,
        "rows_added": 0,
        "rows_removed": 0,
        "summary": _summary_text(summary),
    }


def _check_attempt(row: Row[Any], attempt: int) -> None:
    if row.attempt != attempt:
        raise LeaseExpired(
            f"commit {row.commit_id} was taken over by attempt {row.attempt}; this is attempt {attempt}, and its work "
            "is lost"
        )


def check_lease(row: Row[Any], attempt: int, now: int) -> None:
    """Refuse to go on with a commit that is not open for this attempt."""
    if row.state != CommitState.OPEN:
        raise LeaseExpired(f"commit {row.commit_id} is {row.state}; start a new one")
    _check_attempt(row, attempt)
    if row.lease_expires_at <= now:
        late = (now - row.lease_expires_at) / 1e6
        raise LeaseExpired(
            f"the lease of commit {row.commit_id} ran out {late:.1f} s ago; its files may be collected. Start a new "
            "commit, with a longer lease or more frequent heartbeats"
        )


def _move_checkpoint(connection: Connection, key: int, commit_id: str, checkpoint: Checkpoint | None) -> None:
    if checkpoint is None:
        return
    position = _position(connection, key, checkpoint.source_id)
    if position != checkpoint.previous:
        raise Conflict(
            f"source {checkpoint.source_id!r} stands at {position!r}, not at {checkpoint.previous!r}; another run "
            "published in between. Read the checkpoint again and continue from there"
        )
    values = {"position": checkpoint.position, "commit_id": commit_id}
    where = {"table_key": key, "source_id": checkpoint.source_id}
    if position is None:
        connection.execute(insert(checkpoints).values(**where, **values))
    else:
        conditions = [checkpoints.c[name] == value for name, value in where.items()]
        connection.execute(update(checkpoints).where(*conditions).values(values))


def _position(connection: Connection, key: int, source_id: str) -> str | None:
    query = select(checkpoints.c.position)
    query = query.where(checkpoints.c.table_key == key, checkpoints.c.source_id == source_id)
    return connection.execute(query).scalar_one_or_none()


def record_published(connection: Connection, result: Published, now: int, summary: Mapping[str, Any]) -> None:
    """Mark a commit as published."""
    connection.execute(
        _update(result.commit_id).values(
            state=CommitState.PUBLISHED,
            published_at=now,
            version=result.version,
            added=result.added,
            removed=result.removed,
            rows_added=result.rows_added,
            rows_removed=result.rows_removed,
            summary=_summary_text(summary),
        )
    )


def _summary_text(summary: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(summary), ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"summary: JSON cannot hold it ({error}); use text, numbers, lists and mappings") from error


def _not_committed(error: MetastoreError) -> MetastoreError:
    """Return the error as one after which surely nothing has changed."""
    return MetastoreError(str(error), retryable=error.retryable, outcome=Outcome.NOT_COMMITTED)


def _published_of(row: Row[Any]) -> Published:
    """Return the result of a commit that is published."""
    if row.version is None:
        raise InvalidInput(f"commit {row.commit_id} has no version")
    return Published(row.commit_id, row.version, row.added, row.removed, row.rows_added, row.rows_removed)


def _id_list(database: Database, ids: Collection[str]) -> tuple[str, Any]:
    """Return SQL for any number of ids as one bound value, and that value."""
    if database.is_sqlite:
        return "SELECT value FROM json_each(:ids)", json.dumps(list(ids))
    return "SELECT unnest(CAST(:ids AS text[]))", list(ids)

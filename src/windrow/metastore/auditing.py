"""Whether a metastore holds together: the database's own check, the types of values, and what rows say of each other.

Most values of a table stand in two places: in a row and in an index, in a split and in its commit, here and in the file
or the Delta log. A flipped byte changes one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Column, Connection, Float, Integer, LargeBinary, Row, func, or_, select, text

from windrow.errors import Damaged
from windrow.metastore.catalog import column_of
from windrow.metastore.listing import Listing
from windrow.metastore.records import CommitState, check_table_row, commit_of, folder_of
from windrow.metastore.schema import checkpoints, columns, commits, metadata, scopes, splits, tables, type_changes
from windrow.model.split import sidecar_key

__all__ = ["Auditing"]

_MOST = 20


class Auditing(Listing):
    """The part of a metastore that a check asks."""

    def integrity(self) -> list[str]:
        """Return what is wrong with the database as such; a server looks after that itself."""
        if not self.database.is_sqlite:
            return []
        with self.database.reading() as connection:
            lines = connection.execute(text(f"PRAGMA integrity_check({_MOST})")).scalars().all()
            problems = [str(each) for each in lines if each != "ok"]
            if not problems:
                rows = connection.execute(text("PRAGMA foreign_key_check")).all()
                problems += [f"a row of {row[0]} belongs to no row of {row[2]}" for row in rows[:_MOST]]
            return problems or list(_mistyped(connection))

    def problems(self, table_id: str) -> list[str]:
        """Return where rows of a table contradict each other."""
        try:
            with self.database.reading() as connection:
                self.database.see_one_moment(connection)
                key = self.table_key(connection, table_id)
                table = connection.execute(select(tables).where(tables.c.table_key == key)).one()
                check_table_row(table)
                contradictions = [
                    *_versions(connection, table, table_id),
                    *_splits(connection, table),
                    *_columns(connection, table),
                    *_checkpoints(connection, table),
                ]
        except Damaged as error:
            return [str(error)]
        return contradictions[:_MOST]


def _mistyped(connection: Connection) -> Iterator[str]:
    """SQLite holds a value of any type in any column; Windrow never wrote one of another."""
    for table in metadata.sorted_tables:
        for column in table.columns:
            wrong = func.typeof(column).not_in(_types(column))
            count = connection.execute(select(func.count()).select_from(table).where(wrong)).scalar_one()
            if count:
                yield f"{table.name} holds {count} values of another type in the column {column.name}"


def _types(column: Column[Any]) -> list[str]:
    if isinstance(column.type, Float):
        names = ["real", "integer"]
    elif isinstance(column.type, LargeBinary):
        names = ["blob"]
    else:
        names = ["integer" if isinstance(column.type, Integer) else "text"]
    return [*names, "null"] if column.nullable else names


def _versions(connection: Connection, table: Row[Any], table_id: str) -> Iterator[str]:
    """Every readable version was made by one commit, which says what it added and removed."""
    oldest, newest = table.oldest_version, table.version
    if not 0 <= oldest <= newest:
        yield f"the oldest version is {oldest}, the newest {newest}"
        return
    mine = select(commits).where(commits.c.table_key == table.table_key)
    made = {}
    for row in connection.execute(mine):
        record = commit_of(row, table_id)
        if (record.version is not None) != (record.state is CommitState.PUBLISHED):
            yield f"commit {record.commit_id} is {record.state} and has the version {record.version}"
        elif record.version is not None:
            made[record.version] = record
    if max(made, default=0) > newest:
        yield f"there is a commit of version {max(made)}, the newest is {newest}"
    readable = range(oldest + 1, newest + 1)
    yield from (f"version {version} was made by no commit" for version in readable if version not in made)
    added = _sums(connection, table, splits.c.added_version)
    removed = _sums(connection, table, splits.c.removed_version)
    for version in readable:
        commit = made.get(version)
        if commit is None:
            continue
        if (commit.added, commit.rows_added) != added.get(version, (0, 0)):
            yield f"version {version} added other splits or rows than its commit says"
        if (commit.removed, commit.rows_removed) != removed.get(version, (0, 0)):
            yield f"version {version} removed other splits or rows than its commit says"


def _sums(connection: Connection, table: Row[Any], version: Column[int]) -> dict[int, tuple[int, int]]:
    sums = select(version, func.count(), func.sum(splits.c.row_count)).where(
        splits.c.table_key == table.table_key, version > table.oldest_version
    )
    return {row[0]: (int(row[1]), int(row[2])) for row in connection.execute(sums.group_by(version))}


def _splits(connection: Connection, table: Row[Any]) -> Iterator[str]:
    """A split came before it went, by the commit that it names, in a scope of its table."""
    mine = splits.c.table_key == table.table_key
    added, removed = splits.c.added_version, splits.c.removed_version
    odd = or_(added < 1, added > table.version, removed <= added, removed > table.version)
    rows = connection.execute(select(splits.c.split_id, added, removed).where(mine, odd).limit(_MOST))
    yield from (f"split {row[0]} was added in version {row[1]} and removed in {row[2]}" for row in rows)
    by_commit = select(splits.c.split_id).join(commits, commits.c.commit_id == splits.c.commit_id)
    other = or_(commits.c.version.is_(None), commits.c.version != added, commits.c.table_key != table.table_key)
    rows = connection.execute(by_commit.where(mine, other).limit(_MOST))
    yield from (f"split {row[0]} was added in another version than its commit" for row in rows)
    by_scope = select(splits.c.split_id).outerjoin(scopes, scopes.c.scope_key == splits.c.scope_key)
    strange = or_(scopes.c.table_key.is_(None), scopes.c.table_key != table.table_key)
    rows = connection.execute(by_scope.where(mine, strange).limit(_MOST))
    yield from (f"split {row[0]} is in no scope of the table" for row in rows)
    yield from islice(_misplaced(connection, table), _MOST)
    recorded = select(tables.c.table_key)
    rows = connection.execute(select(splits.c.split_id).where(splits.c.table_key.not_in(recorded)).limit(_MOST))
    yield from (f"split {row[0]} is in no table" for row in rows)


def _misplaced(connection: Connection, table: Row[Any]) -> Iterator[str]:
    """Sidecars are named by their splits: beside the data, or with those of registered files."""
    placed = select(splits.c.split_id, splits.c.data_key, splits.c.sidecar_key)
    placed = placed.where(splits.c.table_key == table.table_key, splits.c.sidecar_key.is_not(None))
    for split_id, data, sidecar in connection.execute(placed):
        if sidecar not in (sidecar_key(data), sidecar_key(f"{folder_of(table)}/_registered/{split_id}.parquet")):
            yield f"split {split_id} has a sidecar at {sidecar!r}, which is another place than its own"


def _plain(kind: str) -> str:
    """The text of a type without names of a map's entries, which a stored type does not keep."""
    return re.sub(r" \('[^']*'(?:, '[^']*')*\)", "", kind)


def _columns(connection: Connection, table: Row[Any]) -> Iterator[str]:
    first = min(1, table.version)
    published = 0
    for row in connection.execute(select(columns).where(columns.c.table_key == table.table_key)):
        since = row.since_version
        published += row.schema_epoch == table.schema_epoch and since is not None
        if _plain(str(column_of(row).type)) != _plain(row.type):
            yield f"column {row.name!r} has two types: {column_of(row).type} and {row.type}"
        if since is not None and not first <= since <= table.version:
            yield f"column {row.name!r} came in version {since}"
        if row.field_id < 1 or not 0 <= row.schema_epoch <= table.schema_epoch:
            yield f"column {row.name!r} has the field id {row.field_id} of epoch {row.schema_epoch}"
    begun = select(type_changes.c.schema_epoch).where(type_changes.c.table_key == table.table_key)
    if sorted(connection.execute(begun).scalars()) != list(range(1, table.schema_epoch + 1)):
        yield f"the table is at schema epoch {table.schema_epoch}, and its changes of types are others"
    holds = select(splits.c.split_id).where(splits.c.table_key == table.table_key).limit(1)
    if not published and connection.execute(holds).first() is not None:
        yield "the table has splits and no columns"


def _checkpoints(connection: Connection, table: Row[Any]) -> Iterator[str]:
    recorded = select(commits.c.commit_id).where(commits.c.table_key == table.table_key)
    mine = (checkpoints.c.table_key == table.table_key, checkpoints.c.commit_id.not_in(recorded))
    rows = connection.execute(select(checkpoints.c.source_id).where(*mine).limit(_MOST))
    yield from (f"the checkpoint of source {row[0]!r} was set by no commit of the table" for row in rows)

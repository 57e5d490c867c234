"""Schema epochs: a column gets a type that its older values do not have, as one commit and one version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Row, insert, or_, select, update

from windrow.errors import Conflict, InvalidInput, NotFound
from windrow.metastore.catalog import column_of, columns_at, epoch_at, stored_type
from windrow.metastore.commits import Commits, check_lease, record_published
from windrow.metastore.records import CommitKind, Published, commit_of, table_checksum
from windrow.metastore.schema import columns, scopes, splits, tables, type_changes
from windrow.metastore.stored import stored
from windrow.model.epochs import OldValues, SchemaHistory, TypeChange

__all__ = ["Epochs"]


class Epochs(Commits):
    """The schema epochs of a metastore's tables."""

    def history(self, table_id: str, version: int | None = None) -> SchemaHistory:
        """Return the schema epochs of a table up to a version (the newest by default)."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            row = connection.execute(select(tables).where(tables.c.table_key == key)).one()
            if not row.schema_epoch:
                return SchemaHistory()
            epoch = epoch_at(connection, row, version)
            mine = (type_changes.c.table_key == key, type_changes.c.schema_epoch <= epoch)
            changes = connection.execute(select(type_changes).where(*mine).order_by(type_changes.c.schema_epoch)).all()
            types = {
                each: {column.name: column.type for column in map(column_of, columns_at(connection, key, each))}
                for each in range(epoch + 1)
            }
        return SchemaHistory(epoch, types, tuple(map(_change_of, changes)))

    def visible_epochs(self, table_id: str, version: int) -> frozenset[int]:
        """Return the schema epochs of the splits that are visible at a version."""
        with self.database.reading() as connection:
            mine = splits.c.table_key == self.table_key(connection, table_id)
            visible = (
                splits.c.added_version <= version,
                or_(splits.c.removed_version.is_(None), splits.c.removed_version > version),
            )
            query = select(scopes.c.doc_mapping_uid).distinct().join(splits, splits.c.scope_key == scopes.c.scope_key)
            return frozenset(connection.execute(query.where(mine, *visible)).scalars())

    def change_type(
        self,
        commit_id: str,
        *,
        attempt: int = 1,
        column: str,
        kind: pa.DataType,
        rule: OldValues,
        epoch: int,
        version: int | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> Published:
        """Give a column another type, by a commit that is open for it: the next schema epoch and a new version begin.

        `rule` says how values of earlier epochs are read. Nothing happens unless `epoch` is the next one and `version`,
        if it is given, the newest. What was written under an earlier epoch can no longer be published. The same commit
        id again changes nothing and returns the first result; when the connection is lost, the outcome is read back.
        """

        def apply(connection: Connection, row: Row[Any]) -> Published:
            self._at_step("begun")
            now = self.database.now(connection)
            check_lease(row, attempt, now)
            if row.kind != CommitKind.RETYPE:
                raise InvalidInput(f"commit {commit_id} is of kind {row.kind}; open one of kind retype")
            table = connection.execute(select(tables).where(tables.c.table_key == row.table_key)).one()
            change = TypeChange(epoch, table.version + 1, column, rule)
            _begin_epoch(connection, table, change, kind, version)
            result = Published(commit_id, table.version + 1, 0, 0, 0, 0)
            record_published(connection, result, now, {**commit_of(row, table.table_id).summary, **(summary or {})})
            return result

        return self.publish_once(commit_id, apply)


def _begin_epoch(
    connection: Connection, table: Row[Any], change: TypeChange, kind: pa.DataType, version: int | None
) -> None:
    planned = (change.epoch - 1, table.version if version is None else version)
    if planned != (table.schema_epoch, table.version):
        raise Conflict(
            f"table {table.name!r} is at schema epoch {table.schema_epoch} and version {table.version}, and the change "
            f"of column {change.column!r} was planned at epoch {planned[0]} and version {planned[1]}; plan it again"
        )
    key = table.table_key
    before = columns_at(connection, key, table.schema_epoch)
    if change.column not in {row.name for row in before}:
        raise NotFound(f"table {table.name!r} has no column {change.column!r}; inspect.columns() lists them")
    place = {"table_key": key, "schema_epoch": change.epoch}
    rows = [
        {
            **place,
            "name": row.name,
            "field_id": row.field_id,
            "since_version": row.since_version,
            **(stored_type(kind) if row.name == change.column else {"type": row.type, "arrow": row.arrow}),
        }
        for row in before
    ]
    connection.execute(insert(columns), rows)
    values = {"name": change.column, "rule": change.rule, "since_version": change.since_version}
    connection.execute(insert(type_changes).values(**place, **values))
    checksum = table_checksum(table.settings, table.oldest_version, change.epoch)
    raised = {"schema_epoch": change.epoch, "version": change.since_version, "checksum": checksum}
    connection.execute(update(tables).where(tables.c.table_key == key).values(raised))


def _change_of(row: Row[Any]) -> TypeChange:
    rule = stored("windrow_type_changes", row.name, "rule", OldValues, row.rule)
    return TypeChange(row.schema_epoch, row.since_version, row.name, rule)

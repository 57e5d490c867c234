"""Making a table again that the metastore lost: from what its mirror and its files say, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlalchemy import func, insert, select, update

from windrow.errors import AlreadyExists
from windrow.metastore.catalog import stored_type
from windrow.metastore.epochs import Epochs
from windrow.metastore.records import CommitState, LostTable, TableRecord, split_row, table_checksum, table_of
from windrow.metastore.schema import attributes, checkpoints, columns, commits, splits, tables, type_changes
from windrow.model.split import SidecarLocation

__all__ = ["Restoring"]


class Restoring(Epochs):
    """The part of a metastore that repair works with."""

    def restore_table(self, lost: LostTable) -> TableRecord:
        """Make a table again as it was at one version; older versions are gone. AlreadyExists when it is there."""
        record = lost.record
        with self.database.writing() as connection:
            self.database.one_at_a_time(connection)
            place = func.coalesce(tables.c.folder, tables.c.name)
            named = (tables.c.lake_key == self.lake_key) & ((tables.c.name == record.name) | (place == record.folder))
            taken = select(tables.c.lake_key).where(named | (tables.c.table_id == record.table_id))
            owners = set(connection.execute(taken).scalars())
            if self.lake_key in owners:
                raise AlreadyExists(f"the metastore knows the table {record.name!r}; there is nothing to restore")
            if owners:
                raise AlreadyExists(
                    f"the metastore knows the table {record.name!r} as one of another lake, of which this is a copy; "
                    "give the copy a database of its own"
                )
            connection.execute(insert(tables).values(lake_key=self.lake_key, **_table_row(record)))
            row = connection.execute(select(tables).where(tables.c.table_id == record.table_id)).one()
            key = row.table_key
            rows = _rows_of(lost, key)
            for table in (commits, columns, type_changes, attributes, checkpoints):
                if rows[table.name]:
                    connection.execute(insert(table), rows[table.name])
            keys = self._scope_keys.of(connection, key, {split.scope for split, _ in lost.splits})
            values = [split_row(split, key, keys[split.scope], version) for split, version in lost.splits]
            if values:
                self.database.insert_rows(connection, splits, values)
            return table_of(row)

    def place_sidecars(self, table_id: str, places: Mapping[str, SidecarLocation]) -> None:
        """Say where sidecars are that were made again."""
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            for split_id, place in places.items():
                mine = (splits.c.table_key == key, splits.c.split_id == split_id)
                values = {
                    "sidecar_key": place.key,
                    "sidecar_offset": place.offset,
                    "sidecar_length": place.length,
                }
                connection.execute(update(splits).where(*mine).values(values))


def _table_row(record: TableRecord) -> dict[str, Any]:
    return {
        "table_id": record.table_id,
        "name": record.name,
        "folder": record.folder,
        "settings": record.settings.to_json(),
        "created_at": record.created_at,
        "version": record.version,
        "oldest_version": record.version,
        "schema_epoch": record.schema_epoch,
        "checksum": table_checksum(record.settings.to_json(), record.version, record.schema_epoch),
    }


def _rows_of(lost: LostTable, key: int) -> dict[str, list[dict[str, Any]]]:
    record = lost.record
    return {
        commits.name: [
            {
                "commit_id": each.commit_id,
                "table_key": key,
                "kind": each.kind,
                "state": CommitState.PUBLISHED,
                "attempt": each.attempt,
                "opened_at": each.opened_at,
                "lease_expires_at": each.lease_expires_at,
                "published_at": each.published_at,
                "version": each.version,
                "added": each.added,
                "removed": each.removed,
                "rows_added": each.rows_added,
                "rows_removed": each.rows_removed,
                "summary": "{}",
            }
            for each in lost.commits
        ],
        columns.name: [
            {
                "table_key": key,
                "schema_epoch": epoch,
                "name": each.name,
                "field_id": each.field_id,
                "since_version": min(1, record.version),
                **stored_type(kinds[each.name]),
            }
            for epoch, kinds in (lost.history.types or {record.schema_epoch: _types(lost)}).items()
            for each in lost.columns
            if each.name in kinds
        ],
        type_changes.name: [
            {
                "table_key": key,
                "schema_epoch": each.epoch,
                "name": each.column,
                "rule": each.rule,
                "since_version": each.since_version,
            }
            for each in lost.history.changes
        ],
        attributes.name: [{"table_key": key, "name": name, "since_version": 0} for name in lost.attributes],
        checkpoints.name: [
            {"table_key": key, "source_id": source, "position": position, "commit_id": commit_id}
            for source, (position, commit_id) in lost.checkpoints.items()
        ],
    }


def _types(lost: LostTable) -> dict[str, pa.DataType]:
    return {each.name: each.type for each in lost.columns}

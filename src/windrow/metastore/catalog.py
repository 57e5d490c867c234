"""Which tables there are, their settings and their columns."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, insert, select, update

from windrow.bounded import BoundedCache, memo
from windrow.errors import AlreadyExists, InvalidInput, NotFound, Outcome
from windrow.metastore.database import Database
from windrow.metastore.guards import check_id
from windrow.metastore.records import MOST_ATTRIBUTES, CommitState, TableColumn, TableRecord, table_checksum, table_of
from windrow.metastore.schema import attributes, columns, commits, tables, type_changes
from windrow.metastore.stored import stored
from windrow.model.ids import check_name
from windrow.model.names import check_against_table, twins_in
from windrow.model.settings import TableSettings
from windrow.model.stored_types import type_from_text, type_to_text
from windrow.model.widening import WAYS_OUT, plain, widened

__all__ = ["Catalog", "column_of", "columns_at", "epoch_at", "refuse_dropped", "refuse_same_name", "stored_type"]

_MOST_KEYS = 10_000

# Statements that everything begins with are put together once: to do that takes longer than to run them.
_ALL = (
    select(tables).where(tables.c.lake_key == bindparam("lake"), tables.c.dropped_at.is_(None)).order_by(tables.c.name)
)
_BY_NAME = select(tables).where(tables.c.lake_key == bindparam("lake"), tables.c.name == bindparam("wanted"))
_HELD = select(tables).where(tables.c.table_key == bindparam("wanted")).with_for_update()
_COLUMNS = (
    select(columns)
    .where(columns.c.table_key == bindparam("key"), columns.c.schema_epoch == bindparam("epoch"))
    .order_by(columns.c.field_id)
)


class Catalog:
    """The tables of a metastore: the part that the other parts build on."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.lake_key = 0
        """The lake whose tables are seen; the first, unless another is named."""
        self._keys: BoundedCache[str, int] = BoundedCache("keys of tables", _MOST_KEYS)

    def create_table(
        self, name: str, settings: TableSettings, *, table_id: str, folder: str | None = None
    ) -> TableRecord:
        """Create an empty table at version 0, or raise AlreadyExists.

        Its folder is called like the table, unless another table has or had that folder.
        """
        problem = check_name(name)
        if problem:
            raise InvalidInput(problem)
        check_id("table", table_id)
        values = {
            "table_id": table_id,
            "name": name,
            "settings": settings.to_json(),
            "version": 0,
            "oldest_version": 0,
            "schema_epoch": 0,
            "checksum": table_checksum(settings.to_json(), 0, 0),
            "lake_key": self.lake_key,
        }
        with self.database.writing() as connection:
            self.database.one_at_a_time(connection)
            refuse_same_name(connection, self.lake_key, name)
            place = folder or _free_folder(connection, self.lake_key, name, table_id)
            with self.database.refusing_twins(f"the table id {table_id} is taken; give every table an id of its own"):
                connection.execute(
                    insert(tables).values(created_at=self.database.now(connection), folder=place, **values)
                )
            return table_of(_row(connection, tables.c.table_id == table_id))

    def table(self, name: str) -> TableRecord:
        """Return a table by name, or raise NotFound with the nearest name."""
        with self.database.reading() as connection:
            row = connection.execute(_BY_NAME, {"lake": self.lake_key, "wanted": name}).one_or_none()
            if row is not None:
                return table_of(row)
            names = [each.name for each in connection.execute(_ALL, {"lake": self.lake_key})]
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none yet'}"
        raise NotFound(f"there is no table {name!r}; {hint}")

    def mark(self) -> int | None:
        """Return a number that differs once anything changed; None where only a look at the rows can tell."""
        return self.database.mark()

    def tables(self) -> list[TableRecord]:
        """Return all tables of the lake, by name."""
        with self.database.reading() as connection:
            return [table_of(row) for row in connection.execute(_ALL, {"lake": self.lake_key})]

    def change_settings(self, table_id: str, settings: TableSettings) -> TableRecord:
        """Replace the settings of a table; splits that exist keep what they were written with."""
        with self.database.writing() as connection:
            key, text = self.table_key(connection, table_id), settings.to_json()
            row = self.held(connection, key)
            checksum = table_checksum(text, row.oldest_version, row.schema_epoch)
            changed = update(tables).where(tables.c.table_key == key)
            connection.execute(changed.values(settings=text, checksum=checksum))
            return table_of(_row(connection, tables.c.table_key == key))

    def reserve_columns(self, table_id: str, schema: pa.Schema) -> dict[str, TableColumn]:
        """Give every column of a batch its field id and the type that the table has for it, before files are written.

        A column becomes part of the table only when a commit that names it is published. A column that exists widens
        where the new type asks for it; a type that cannot join the table's is refused. What a run reserved that failed
        binds nobody: while no commit is open, a column that was never published takes any type. Whoever reserves
        before opening a commit reserves once more after it.
        """
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            epoch = self.held(connection, key).schema_epoch
            reserved = connection.execute(_COLUMNS, {"key": key, "epoch": epoch}).all()
            reserved_before = {row.name: column_of(row) for row in reserved}
            unseen = {row.name for row in reserved if row.since_version is None}
            free = set() if not unseen or self._is_being_written(connection, key) else unseen
            for name in twins_in(free, schema.names):
                # What binds nobody takes no name either.
                _forget(connection, key, epoch, name)
                del reserved_before[name]
            wanted = _joined(schema, reserved_before, free)
            new = [column for column in wanted.values() if column.name not in reserved_before]
            if new:
                place = {"table_key": key, "schema_epoch": epoch}
                rows = [
                    {**place, "name": each.name, "field_id": each.field_id, **stored_type(each.type)} for each in new
                ]
                connection.execute(insert(columns), rows)
            for column in wanted.values():
                if column.name in reserved_before and column != reserved_before[column.name]:
                    _widen(connection, key, epoch, column)
            return wanted

    def _is_being_written(self, connection: Connection, key: int) -> bool:
        """Whether a commit of the table may still be published."""
        live = (commits.c.state == CommitState.OPEN, commits.c.lease_expires_at > self.database.now(connection))
        open_ones = select(commits.c.commit_id).where(commits.c.table_key == key, *live).limit(1)
        return connection.execute(open_ones).first() is not None

    def columns(self, table_id: str, version: int | None = None) -> tuple[TableColumn, ...]:
        """Return the columns that published splits hold at a version (the newest by default), by field id."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            epoch = epoch_at(connection, _row(connection, tables.c.table_key == key), version)
            newest = math.inf if version is None else version
            shown = [row for row in columns_at(connection, key, epoch) if row.since_version <= newest]
            return tuple(column_of(row) for row in shown)

    def publish_columns(self, connection: Connection, table: Row[Any], names: Collection[str], version: int) -> None:
        """Mark reserved columns as part of the table from a version on."""
        if not names:
            return
        mine = (columns.c.table_key == table.table_key, columns.c.schema_epoch == table.schema_epoch)
        named = (*mine, columns.c.name.in_(names))
        missing = set(names).difference(connection.execute(select(columns.c.name).where(*named)).scalars())
        if missing:
            raise InvalidInput(
                f"column {min(missing)!r} has no field id; reserve the columns of a batch before publishing"
            )
        unseen = update(columns).where(*named, columns.c.since_version.is_(None))
        connection.execute(unseen.values(since_version=version))

    def attributes(self, table_id: str, version: int | None = None) -> tuple[str, ...]:
        """Return the attributes that rows keep in the residual column at a version (the newest by default), by name."""
        with self.database.reading() as connection:
            query = select(attributes.c.name).where(attributes.c.table_key == self.table_key(connection, table_id))
            if version is not None:
                query = query.where(attributes.c.since_version <= version)
            return tuple(sorted(connection.execute(query).scalars()))

    def publish_attributes(self, connection: Connection, key: int, names: Collection[str], version: int) -> None:
        """Remember new names of attributes, as many as a table may have."""
        if not names:
            return
        published = set(connection.execute(select(attributes.c.name).where(attributes.c.table_key == key)).scalars())
        new = sorted(set(names) - published)[: MOST_ATTRIBUTES - len(published)]
        rows = [{"table_key": key, "name": name, "since_version": version} for name in new]
        if rows:
            connection.execute(insert(attributes), rows)

    def held(self, connection: Connection, key: int) -> Row[Any]:
        """Return a table's row and keep it: what goes through here happens one after the other for a table."""
        row = self.held_even_dropped(connection, key)
        refuse_dropped(row)
        return row

    def held_even_dropped(self, connection: Connection, key: int) -> Row[Any]:
        """Return a table's row and keep it, though the table was dropped."""
        return connection.execute(_HELD, {"wanted": key}).one()

    def table_key(self, connection: Connection, table_id: str) -> int:
        """Return the short key of a table; keys never change, so they are remembered."""
        return self._keys.get_or_make(table_id, lambda: _table_key(connection, table_id))


def _table_key(connection: Connection, table_id: str) -> int:
    key: int = _row(connection, tables.c.table_id == table_id).table_key
    return key


def refuse_same_name(connection: Connection, lake_key: int, name: str, *, but: int | None = None) -> None:
    """Names that differ by case alone would share a folder on some file systems; `but` may keep its own."""
    same = select(tables.c.name).where(tables.c.lake_key == lake_key, func.lower(tables.c.name) == name.lower())
    taken = connection.execute(same if but is None else same.where(tables.c.table_key != but)).scalars().first()
    if taken == name:
        raise AlreadyExists(f"the table {name!r} exists already; open it or choose another name")
    if taken is not None:
        raise AlreadyExists(
            f"the table {taken!r} exists already and differs from {name!r} by case alone; choose another name"
        )


def _free_folder(connection: Connection, lake_key: int, name: str, table_id: str) -> str:
    """Return the folder of a new table: that of its name, or one of its id where a table has or had that folder."""
    place = func.lower(func.coalesce(tables.c.folder, tables.c.name))
    taken = select(tables.c.table_key).where(tables.c.lake_key == lake_key, place == name.lower()).limit(1)
    return name if connection.execute(taken).first() is None else f"{name}-{table_id}"


def refuse_dropped(table: Row[Any]) -> None:
    """Refuse to work with a table that was dropped."""
    if table.dropped_at is not None:
        raise NotFound(
            f"the table {table.dropped_name!r} was dropped; nothing can be written into it any more",
            outcome=Outcome.NOT_COMMITTED,
        )


def _row(connection: Connection, condition: ColumnElement[bool]) -> Row[Any]:
    row = connection.execute(select(tables).where(condition)).one_or_none()
    if row is None:
        raise NotFound("there is no such table in the metastore; it was dropped, or belongs to another lake")
    return row


def _joined(schema: pa.Schema, before: Mapping[str, TableColumn], free: Collection[str]) -> dict[str, TableColumn]:
    """Return the columns of a batch as the table will have them; all conflicts are named at once.

    The type of a column that is `free` may change.
    """
    name, count = Counter(schema.names).most_common(1)[0] if schema.names else ("", 0)
    if count > 1:
        raise InvalidInput(f"column {name!r} is in the data {count} times; give every column a name of its own")
    check_against_table(schema.names, before)
    following = itertools.count(1 + max((column.field_id for column in before.values()), default=0))
    joined, problems = {}, []
    for field in schema:
        old = before.get(field.name)
        both = plain(field.type) if old is None else widened(old.type, field.type)
        if both is None and field.name in free:
            both = plain(field.type)
        if both is None:
            problems.append(
                f"column {field.name!r} is {before[field.name].type} in the table and {field.type} in the data"
            )
        else:
            joined[field.name] = TableColumn(field.name, both, next(following) if old is None else old.field_id)
    if problems:
        raise InvalidInput(f"{'; '.join(problems)}; {WAYS_OUT}")
    return joined


def epoch_at(connection: Connection, table: Row[Any], version: int | None) -> int:
    """Return the schema epoch of a table at a version, None being the newest."""
    if version is None or not table.schema_epoch:
        return int(table.schema_epoch)
    begun = (type_changes.c.table_key == table.table_key, type_changes.c.since_version <= version)
    return connection.execute(select(func.max(type_changes.c.schema_epoch)).where(*begun)).scalar() or 0


def columns_at(connection: Connection, key: int, epoch: int) -> list[Row[Any]]:
    """Return the rows of columns that splits of an epoch hold, by field id."""
    rows = connection.execute(_COLUMNS, {"key": key, "epoch": epoch}).all()
    return [row for row in rows if row.since_version is not None]


def _forget(connection: Connection, key: int, epoch: int, name: str) -> None:
    place = (columns.c.table_key == key, columns.c.schema_epoch == epoch, columns.c.name == name)
    connection.execute(delete(columns).where(*place, columns.c.since_version.is_(None)))


def _widen(connection: Connection, key: int, epoch: int, column: TableColumn) -> None:
    place = (columns.c.table_key == key, columns.c.schema_epoch == epoch, columns.c.name == column.name)
    connection.execute(update(columns).where(*place).values(stored_type(column.type)))


def column_of(row: Row[Any]) -> TableColumn:
    """Return the column of a row of `schema.columns`."""
    return TableColumn(row.name, stored("windrow_columns", row.name, "arrow", _type_from_text, row.arrow), row.field_id)


def stored_type(data_type: pa.DataType) -> dict[str, str]:
    """Return a type as rows of `schema.columns` hold it."""
    return {"type": str(data_type), "arrow": type_to_text(data_type)}


_type_from_text = memo("stored types", 1024)(type_from_text)

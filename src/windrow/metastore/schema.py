"""The tables of the metastore. `migrations/` makes them; this module is how the rest of the room names them.

Integers named `*_key` are internal and short, since they stand in every split's row; people and files see the ids.
All times are microseconds since the epoch.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    case,
)
from sqlalchemy import UniqueConstraint as Unique

__all__ = [
    "IN_TIME",
    "attributes",
    "checkpoints",
    "columns",
    "commits",
    "identity",
    "lakes",
    "metadata",
    "pins",
    "quarantine",
    "runs",
    "scopes",
    "splits",
    "statistics",
    "tables",
    "type_changes",
]

metadata = MetaData()


def _bytewise(length: int) -> String:
    """Text that is compared and ordered bytewise, whatever the database's language: pages of a listing go by it."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


_Id = _bytewise(64)
# SQLite numbers rows by itself only when the key is declared as INTEGER.
_Key = BigInteger().with_variant(Integer, "sqlite")

identity = Table(
    "windrow_identity",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("value", Text, nullable=False),
)
"""Says that the database is ours."""

lakes = Table(
    "windrow_lakes",
    metadata,
    Column("lake_key", Integer, primary_key=True, autoincrement=False),
    Column("lake_id", _Id, nullable=False, unique=True),
    Column("address", Text, nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
)
"""The lakes that the database serves; the address of the one that the database lies in is a dot."""

tables = Table(
    "windrow_tables",
    metadata,
    Column("table_key", _Key, primary_key=True, autoincrement=True),
    Column("table_id", _Id, nullable=False, unique=True),
    Column("name", _bytewise(128), nullable=False),
    Column("settings", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("oldest_version", BigInteger, nullable=False),
    Column("schema_epoch", BigInteger, nullable=False),
    Column("lake_key", Integer, nullable=False, server_default="0"),
    Column("checksum", Text, nullable=True),
    Column("folder", Text, nullable=True),
    Column("dropped_at", BigInteger, nullable=True),
    Column("dropped_name", Text, nullable=True),
    Unique("lake_key", "name"),
)
"""Tables of all lakes; those of a database that no lake has claimed yet have the key of the first.

The folder is that of the name where none is given. A dropped table has a name that no other can have, beside its own.
"""

columns = Table(
    "windrow_columns",
    metadata,
    Column("table_key", ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
    Column("schema_epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("field_id", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("arrow", Text, nullable=False),
    Column("since_version", BigInteger, nullable=True),
    Unique("table_key", "schema_epoch", "field_id"),
)
"""Columns and their Parquet field ids; `since_version` is empty until a published split holds the column."""

type_changes = Table(
    "windrow_type_changes",
    metadata,
    Column("table_key", ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
    Column("schema_epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("rule", String(16), nullable=False),
    Column("since_version", BigInteger, nullable=False),
)
"""Columns that got another type: the epoch and the version that began with it, and how older values are read."""

attributes = Table(
    "windrow_attributes",
    metadata,
    Column("table_key", ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("since_version", BigInteger, nullable=False),
)
"""Attributes that rows keep in the residual column, and the first version that does."""

commits = Table(
    "windrow_commits",
    metadata,
    Column("commit_id", _Id, primary_key=True),
    Column("table_key", ForeignKey("windrow_tables.table_key"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("opened_at", BigInteger, nullable=False),
    Column("lease_expires_at", BigInteger, nullable=False),
    Column("published_at", BigInteger, nullable=True),
    Column("version", BigInteger, nullable=True),
    Column("added", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
    Column("rows_added", BigInteger, nullable=False),
    Column("rows_removed", BigInteger, nullable=False),
    Column("summary", Text, nullable=False),
    Unique("table_key", "version"),
)

scopes = Table(
    "windrow_scopes",
    metadata,
    Column("scope_key", _Key, primary_key=True, autoincrement=True),
    Column("table_key", ForeignKey("windrow_tables.table_key"), nullable=False),
    Column("source_id", Text, nullable=False),
    Column("partition_id", BigInteger, nullable=False),
    Column("doc_mapping_uid", BigInteger, nullable=False),
    Column("sort_schema", Text, nullable=False),
    Column("window_duration", Integer, nullable=False),
    Unique("table_key", "source_id", "partition_id", "doc_mapping_uid", "sort_schema", "window_duration"),
)

splits = Table(
    "windrow_splits",
    metadata,
    Column("split_id", _bytewise(128), primary_key=True),
    Column("table_key", BigInteger, nullable=False),
    Column("scope_key", BigInteger, nullable=False),
    Column("window_kind", SmallInteger, nullable=False),
    Column("window_start", BigInteger, nullable=False),
    Column("added_version", BigInteger, nullable=False),
    Column("removed_version", BigInteger, nullable=True),
    Column("data_key", Text, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("etag", Text, nullable=True),
    Column("sidecar_key", Text, nullable=True),
    Column("sidecar_offset", BigInteger, nullable=True),
    Column("sidecar_length", BigInteger, nullable=True),
    Column("row_count", BigInteger, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("time_min", BigInteger, nullable=True),
    Column("time_max", BigInteger, nullable=True),
    Column("commit_id", _Id, nullable=False),
    Column("zones", Text, nullable=False),
    Column("replaces", Text, nullable=True),
    Column("deleting_since", BigInteger, nullable=True),
    Column("digest", Text, nullable=True),
)
Index(
    "windrow_splits_by_window",
    splits.c.table_key,
    splits.c.window_kind,
    splits.c.window_start,
    splits.c.split_id,
)
IN_TIME = case((splits.c.window_kind > 1, 2), else_=splits.c.window_kind)
"""Orders by the kind of window, but puts cold windows among the others, so that a further order by start is by time."""
Index("windrow_splits_by_added", splits.c.table_key, splits.c.added_version)
Index(
    "windrow_splits_by_removed",
    splits.c.table_key,
    splits.c.removed_version,
    sqlite_where=splits.c.removed_version.is_not(None),
    postgresql_where=splits.c.removed_version.is_not(None),
)
Index(
    "windrow_splits_by_group",
    splits.c.table_key,
    splits.c.window_kind,
    splits.c.window_start,
    splits.c.scope_key,
    splits.c.split_id,
    sqlite_where=splits.c.removed_version.is_(None),
    postgresql_where=splits.c.removed_version.is_(None),
)

pins = Table(
    "windrow_pins",
    metadata,
    Column("pin_id", _Id, primary_key=True),
    Column("table_key", ForeignKey("windrow_tables.table_key"), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("owner", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

checkpoints = Table(
    "windrow_checkpoints",
    metadata,
    Column("table_key", ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
    Column("source_id", Text, primary_key=True),
    Column("position", Text, nullable=False),
    Column("commit_id", _Id, nullable=False),
)

runs = Table(
    "windrow_runs",
    metadata,
    Column("run_id", _Id, primary_key=True),
    Column("table_key", ForeignKey("windrow_tables.table_key"), nullable=False),
    Column("state", String(16), nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=True),
    Column("planned", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("splits_in", BigInteger, nullable=False),
    Column("splits_out", BigInteger, nullable=False),
    Column("bytes_in", BigInteger, nullable=False),
    Column("bytes_out", BigInteger, nullable=False),
    Column("bytes_new", BigInteger, nullable=False),
    Column("problems", Text, nullable=False),
)
"""Runs of compaction, one row each."""

heat = Table(
    "windrow_heat",
    metadata,
    Column("table_key", ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
    Column("window_start", BigInteger, primary_key=True, autoincrement=False),
    Column("queries", Float(53), nullable=False),
    Column("at", BigInteger, nullable=False),
)
"""How often queries read windows, as of a moment."""

statistics = Table(
    "windrow_statistics",
    metadata,
    Column("table_key", ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
    Column("split_id", _bytewise(128), primary_key=True),
    Column("column_name", Text, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""What is known of columns of splits, as bytes that `windrow.statistics` reads."""

quarantine = Table(
    "windrow_quarantine",
    metadata,
    Column("table_key", ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
    Column("split_id", _bytewise(128), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
)
"""Splits that cannot be merged, and why; readers see them as before."""

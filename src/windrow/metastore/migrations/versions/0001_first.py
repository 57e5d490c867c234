"""The first schema: tables, columns, commits, scopes, splits, pins, checkpoints.

Revision ID: 0001
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_ID = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
_LONG_ID = sa.String(128).with_variant(sa.String(128, collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _identity_and_tables()
    _commits_and_readers()
    _scopes_and_splits()


def _identity_and_tables() -> None:
    identity = op.create_table(
        "windrow_identity",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.bulk_insert(identity, [{"name": "format", "value": "windrow metastore"}])
    op.create_table(
        "windrow_tables",
        sa.Column("table_key", _KEY, primary_key=True, autoincrement=True),
        sa.Column("table_id", _ID, nullable=False, unique=True),
        sa.Column("name", _LONG_ID, nullable=False, unique=True),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("oldest_version", sa.BigInteger, nullable=False),
        sa.Column("schema_epoch", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "windrow_columns",
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
        sa.Column("schema_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("field_id", sa.Integer, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("arrow", sa.Text, nullable=False),
        sa.Column("since_version", sa.BigInteger, nullable=True),
        sa.UniqueConstraint("table_key", "schema_epoch", "field_id"),
    )


def _commits_and_readers() -> None:
    op.create_table(
        "windrow_commits",
        sa.Column("commit_id", _ID, primary_key=True),
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("opened_at", sa.BigInteger, nullable=False),
        sa.Column("lease_expires_at", sa.BigInteger, nullable=False),
        sa.Column("published_at", sa.BigInteger, nullable=True),
        sa.Column("version", sa.BigInteger, nullable=True),
        sa.Column("added", sa.BigInteger, nullable=False),
        sa.Column("removed", sa.BigInteger, nullable=False),
        sa.Column("rows_added", sa.BigInteger, nullable=False),
        sa.Column("rows_removed", sa.BigInteger, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.UniqueConstraint("table_key", "version"),
    )
    op.create_table(
        "windrow_pins",
        sa.Column("pin_id", _ID, primary_key=True),
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "windrow_checkpoints",
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
        sa.Column("source_id", sa.Text, primary_key=True),
        sa.Column("position", sa.Text, nullable=False),
        sa.Column("commit_id", _ID, nullable=False),
    )


def _scopes_and_splits() -> None:
    op.create_table(
        "windrow_scopes",
        sa.Column("scope_key", _KEY, primary_key=True, autoincrement=True),
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), nullable=False),
        sa.Column("source_id", sa.Text, nullable=False),
        sa.Column("partition_id", sa.BigInteger, nullable=False),
        sa.Column("doc_mapping_uid", sa.BigInteger, nullable=False),
        sa.Column("sort_schema", sa.Text, nullable=False),
        sa.Column("window_duration", sa.Integer, nullable=False),
        sa.UniqueConstraint(
            "table_key", "source_id", "partition_id", "doc_mapping_uid", "sort_schema", "window_duration"
        ),
    )
    op.create_table(
        "windrow_splits",
        sa.Column("split_id", _LONG_ID, primary_key=True),
        sa.Column("table_key", sa.BigInteger, nullable=False),
        sa.Column("scope_key", sa.BigInteger, nullable=False),
        sa.Column("window_kind", sa.SmallInteger, nullable=False),
        sa.Column("window_start", sa.BigInteger, nullable=False),
        sa.Column("added_version", sa.BigInteger, nullable=False),
        sa.Column("removed_version", sa.BigInteger, nullable=True),
        sa.Column("data_key", sa.Text, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("etag", sa.Text, nullable=True),
        sa.Column("sidecar_key", sa.Text, nullable=True),
        sa.Column("sidecar_offset", sa.BigInteger, nullable=True),
        sa.Column("sidecar_length", sa.BigInteger, nullable=True),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("time_min", sa.BigInteger, nullable=True),
        sa.Column("time_max", sa.BigInteger, nullable=True),
        sa.Column("commit_id", _ID, nullable=False),
        sa.Column("zones", sa.Text, nullable=False),
        sa.Column("replaces", sa.Text, nullable=True),
    )
    op.create_index(
        "windrow_splits_by_window", "windrow_splits", ["table_key", "window_kind", "window_start", "split_id"]
    )
    op.create_index("windrow_splits_by_added", "windrow_splits", ["table_key", "added_version"])
    op.create_index(
        "windrow_splits_by_removed",
        "windrow_splits",
        ["table_key", "removed_version"],
        sqlite_where=sa.text("removed_version IS NOT NULL"),
        postgresql_where=sa.text("removed_version IS NOT NULL"),
    )

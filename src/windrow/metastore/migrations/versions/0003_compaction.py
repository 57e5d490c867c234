"""What compaction needs: visible splits by window and scope, runs, and splits that cannot be merged.

Revision ID: 0003
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_ID = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
_LONG_ID = sa.String(128).with_variant(sa.String(128, collation="C"), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_COUNTS = (
    "planned", "done", "skipped", "failed", "splits_in", "splits_out", "bytes_in", "bytes_out", "bytes_new",
)  # fmt: skip


def upgrade() -> None:
    op.create_index(
        "windrow_splits_by_group",
        "windrow_splits",
        ["table_key", "window_kind", "window_start", "scope_key", "split_id"],
        sqlite_where=sa.text("removed_version IS NULL"),
        postgresql_where=sa.text("removed_version IS NULL"),
    )
    op.create_table(
        "windrow_runs",
        sa.Column("run_id", _ID, primary_key=True),
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger, nullable=True),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in _COUNTS),
        sa.Column("problems", sa.Text, nullable=False),
    )
    op.create_table(
        "windrow_quarantine",
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
        sa.Column("split_id", _LONG_ID, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
    )

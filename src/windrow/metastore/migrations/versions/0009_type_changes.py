"""Columns that got another type, with the schema epoch that began with it.

Revision ID: 0009
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision: str | None = "0008"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "windrow_type_changes",
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
        sa.Column("schema_epoch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("rule", sa.String(16), nullable=False),
        sa.Column("since_version", sa.BigInteger, nullable=False),
    )

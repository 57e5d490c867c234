"""What is known of columns of splits.

Revision ID: 0011
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision: str | None = "0010"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ID = sa.String(128).with_variant(sa.String(128, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "windrow_statistics",
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
        sa.Column("split_id", _ID, primary_key=True),
        sa.Column("column_name", sa.Text, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )

"""How often windows are asked for.

Revision ID: 0005
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision: str | None = "0004"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "windrow_heat",
        sa.Column("table_key", _KEY, sa.ForeignKey("windrow_tables.table_key"), primary_key=True, autoincrement=False),
        sa.Column("window_start", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("queries", sa.Float(53), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )

"""Splits whose files are being deleted.

Revision ID: 0004
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("windrow_splits", sa.Column("deleting_since", sa.BigInteger, nullable=True))

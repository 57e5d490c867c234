"""A table's folder, which stays when its name changes, and tables that were dropped and are not collected yet.

Revision ID: 0010
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision: str | None = "0009"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    for name, kind in (("folder", sa.Text), ("dropped_at", sa.BigInteger), ("dropped_name", sa.Text)):
        op.add_column("windrow_tables", sa.Column(name, kind, nullable=True))

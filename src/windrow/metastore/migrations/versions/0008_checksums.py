"""A checksum of what stands in a table's row and nowhere else.

Revision ID: 0008
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision: str | None = "0007"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("windrow_tables", sa.Column("checksum", sa.Text, nullable=True))

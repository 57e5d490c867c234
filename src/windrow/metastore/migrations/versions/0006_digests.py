"""What the bytes of files amount to.

Revision ID: 0006
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision: str | None = "0005"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    op.add_column("windrow_splits", sa.Column("digest", sa.Text, nullable=True))

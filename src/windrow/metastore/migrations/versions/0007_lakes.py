"""The lakes that a database serves, and which of them a table belongs to.

Revision ID: 0007
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision: str | None = "0006"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None

_ID = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")

# Roles that may read the tables may read which lake they belong to.
_SAME_READERS = """
DO $$ DECLARE reader text; BEGIN
    FOR reader IN
        SELECT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) AS acl
        WHERE pg_class.oid = 'windrow_tables'::regclass
            AND acl.privilege_type = 'SELECT' AND acl.grantee <> relowner
    LOOP EXECUTE 'GRANT SELECT ON windrow_lakes TO ' || reader; END LOOP;
END $$
"""


def upgrade() -> None:
    op.create_table(
        "windrow_lakes",
        sa.Column("lake_key", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("lake_id", _ID, nullable=False, unique=True),
        sa.Column("address", sa.Text, nullable=False, unique=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        _name_tables_per_lake_on_sqlite()
        return
    op.execute(_SAME_READERS)
    op.add_column("windrow_tables", sa.Column("lake_key", sa.Integer, nullable=False, server_default="0"))
    op.drop_constraint("windrow_tables_name_key", "windrow_tables")
    op.create_unique_constraint("windrow_tables_lake_key_name_key", "windrow_tables", ["lake_key", "name"])


def _name_tables_per_lake_on_sqlite() -> None:
    """SQLite changes no constraint of a table, so the table is made anew; what refers to it is judged at the end."""
    op.execute("PRAGMA defer_foreign_keys=ON")
    op.execute("CREATE TABLE windrow_tables_before AS SELECT * FROM windrow_tables")
    op.execute("DROP TABLE windrow_tables")
    names = "table_key", "table_id", "name", "settings", "created_at", "version", "oldest_version", "schema_epoch"
    op.create_table(
        "windrow_tables",
        sa.Column("table_key", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("table_id", sa.String(64), nullable=False, unique=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in names[4:]),
        sa.Column("lake_key", sa.Integer, nullable=False, server_default="0"),
        sa.UniqueConstraint("lake_key", "name"),
    )
    columns = ", ".join(names)
    op.execute(f"INSERT INTO windrow_tables ({columns}) SELECT {columns} FROM windrow_tables_before")
    op.execute("DROP TABLE windrow_tables_before")

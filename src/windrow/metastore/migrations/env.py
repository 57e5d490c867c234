"""Alembic's entry: runs the migrations on the connection, and inside the transaction, of the caller."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=False,
)
context.run_migrations()

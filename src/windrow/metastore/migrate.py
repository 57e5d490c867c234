"""Brings a database to the schema of this version. Alembic is loaded only when there is something to do."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import Connection

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from alembic.config import Config

__all__ = ["revisions", "upgrade"]


@cache
def revisions() -> tuple[str, ...]:
    """Return the revisions of this version, oldest first: the names of the migration files start with them."""
    names = (path.name for path in _migrations().joinpath("versions").iterdir())
    return tuple(sorted(name.split("_")[0] for name in names if name[:4].isdigit()))


def upgrade(connection: Connection, version_table: str) -> None:
    """Run what is missing, inside the transaction of the connection."""
    from alembic import command

    command.upgrade(_config(connection, version_table), "head")


def _config(connection: Connection, version_table: str) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_migrations()))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version_table
    return config


def _migrations() -> Traversable:
    return files("windrow.metastore").joinpath("migrations")

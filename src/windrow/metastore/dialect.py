"""SQLite as SQLAlchemy speaks it, with one memory of compiled statements for all databases of a process.

SQLAlchemy compiles a statement once for each engine, and a lake that is opened makes an engine. To compile the
statements of an ingest takes longer than to run them, and they come out the same for every SQLite database.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

__all__ = ["COMPILED", "DRIVER", "SharedDialect"]

DRIVER = "sqlite+windrow"
"""The name under which SQLAlchemy finds the dialect."""

COMPILED: LRUCache[Any, Any] = LRUCache(1000)
"""Compiled statements, by dialect and statement."""


class SharedDialect(SQLiteDialect_pysqlite):
    """The dialect of the library's driver; all of them compile alike, and say so."""

    driver = "windrow"
    supports_statement_cache = True

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))


registry.register("sqlite.windrow", __name__, SharedDialect.__name__)

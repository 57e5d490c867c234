"""Databases of DuckDB in memory, as every query of a lake runs in one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import duckdb

from windrow import forking
from windrow.model.limits import NO_LIMITS, READ_OVER, Limits

__all__ = ["new_database", "spilling_database"]


def new_database(limits: Limits = NO_LIMITS) -> duckdb.DuckDBPyConnection:
    """An empty database in memory that tells times in UTC, and is set to what suits virtual files."""
    with forking.working():
        connection = duckdb.connect(":memory:")
    for name, value in (("threads", limits.threads), ("memory_limit", limits.memory_text)):
        if value is not None:
            connection.execute(f"SET GLOBAL {name} = ?", [value])
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    # Each query runs on a cursor, which inherits global settings alone.
    # What is worth caching of our files is in our own cache.
    connection.execute("SET GLOBAL enable_external_file_cache = false")
    # Bytes are fetched ahead by us; what is read long before it is decoded, or by another thread, is far from the core.
    connection.execute("SET GLOBAL async_threads = 0")
    connection.execute("SET GLOBAL read_ahead_depth = 0")
    connection.execute(f"SET GLOBAL parquet_prefetch_column_gap = {READ_OVER}")
    return connection


def spilling_database(limits: Limits = NO_LIMITS) -> duckdb.DuckDBPyConnection:
    """The same for queries of users: it may put rows on disk, and sees no variables of this program."""
    connection = new_database(limits)
    # Variables of this program are nobody's tables.
    connection.execute("SET GLOBAL python_enable_replacements = false")
    spilled = Path(tempfile.gettempdir()) / f"windrow-{os.urandom(16).hex()}"
    connection.execute("SET temp_directory = ?", [str(spilled)])
    return connection

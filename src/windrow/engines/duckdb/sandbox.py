"""A safe mode: SQL reads tables of the lake and nothing else, for queries of people who may do no more.

Two walls stand before everything else. A statement must be one SELECT by DuckDB's own parser, over tables of the lake
and with functions that compute: it is refused before anything of it is bound. Behind that, the database itself
reaches no file but our virtual ones, loads no extension, and takes no setting any more.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

import duckdb

from windrow.bounded import BoundedCache
from windrow.engines.duckdb.filesystem import PROTOCOL
from windrow.engines.duckdb.syntax import Names, names_in, parsed_selects
from windrow.errors import InvalidInput, NotFound

__all__ = ["Guard", "check_functions", "check_tables", "confine", "lock"]

_TABLE_FUNCTIONS = frozenset(
    (
        *("generate_series", "generate_subscripts", "range", "repeat", "repeat_row"),
        *("json_each", "json_tree", "regexp_split_to_table", "unnest"),
    )
)
"""Functions in place of a table that compute their rows from their arguments."""
_LISTINGS = frozenset(["tables", "__show_tables_expanded"])
_DENIED = frozenset(
    (
        # Settings and variables of the process, of the session and of other queries.
        *("current_setting", "getenv", "getvariable", "current_query", "current_query_id", "current_connection_id"),
        *("current_transaction_id", "txid_current", "in_search_path", "version"),
        *("user", "session_user", "current_user"),
        # What is left behind for the next query, or holds a thread.
        *("setseed", "nextval", "currval", "setval", "write_log", "sleep_ms", "set_config"),
        # SQL within SQL.
        *("json_serialize_plan", "json_serialize_sql", "json_deserialize_sql", "json_execute_serialized_sql"),
        *("query", "query_table", "index_key", "stats", "vector_type", "get_block_size", "parse_duckdb_log_message"),
    )
)
_DENIED_PREFIXES = ("__internal", "duckdb_", "pragma_", "pg_", "has_", "inet_", "which_", "read_", "parquet_")
_ALLOWED = frozenset(["pg_typeof", "pg_size_pretty"])
_MOST = 256
_CONFINING = (f"SET allowed_directories = ['{PROTOCOL}://']", "SET enable_external_access = false")
_SETTINGS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    *_CONFINING,
    # Each session has a cursor without the optimizer, and is profiled when it is explained.
    "SET allowed_configs = ['enable_optimizer', 'enable_profiling']",
    "SET lock_configuration = true",
)


def confine(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a database open no files but virtual ones."""
    for setting in _CONFINING:
        connection.execute(setting)


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a database read virtual files alone, for good."""
    for setting in _SETTINGS:
        connection.execute(setting)


class Guard:
    """Decides what may be run; the names of the last queries are cached for all threads."""

    def __init__(self) -> None:
        self._names: BoundedCache[str, Names] = BoundedCache("sandboxed queries", _MOST)

    def names(self, cursor: duckdb.DuckDBPyConnection, query: str) -> Names:
        """Return what a query names; one that is more than a SELECT, or calls what it must not, is InvalidInput."""
        return self._names.get_or_make(query, lambda: _checked(cursor, query))


def _checked(cursor: duckdb.DuckDBPyConnection, query: str) -> Names:
    try:
        statements = parsed_selects(cursor, query)
    except (InvalidInput, duckdb.Error) as error:
        problem = str(error).removeprefix("the query cannot be read as SELECT: ")
        raise InvalidInput(f"sandbox: only SELECT is run here; DuckDB says: {problem}") from error
    if len(statements) != 1:
        raise InvalidInput(f"sandbox: one SELECT is run at a time, and these are {len(statements)} statements")
    names = names_in(statements[0])
    if names.listings and statements[0].get("from_table", {}).get("type") != "SHOW_REF":
        raise InvalidInput("sandbox: SHOW TABLES stands alone, and is no part of another query")
    check_functions(names)
    return names


def check_functions(names: Names) -> None:
    """Refuse functions that do more than compute, and lists of other things than tables of the lake."""
    for name in names.table_functions:
        if name not in _TABLE_FUNCTIONS:
            raise InvalidInput(f"sandbox: {name}() in place of a table is not allowed; name a table of the lake")
    for name in names.functions:
        if name in _DENIED or (name.startswith(_DENIED_PREFIXES) and name not in _ALLOWED):
            raise InvalidInput(f"sandbox: the function {name}() is not allowed; use functions that compute a value")
    for name in names.listings:
        if name not in _LISTINGS:
            raise InvalidInput(f"sandbox: SHOW {name} is not allowed; SHOW TABLES lists the tables of the lake")


def check_tables(names: Names, allowed: Collection[str]) -> None:
    """Refuse names that are neither tables of the lake nor given with the query."""
    small = {name.lower(): name for name in allowed}
    for path in names.tables:
        if len(path) == 1 and path[0].lower() in small:
            continue
        near = get_close_matches(path[-1].lower(), small, 1)
        hint = f"did you mean {small[near[0]]!r}?" if near else "SHOW TABLES lists them"
        raise NotFound(f"sandbox: the query names {'.'.join(path)!r}, which is no table of the lake; {hint}")

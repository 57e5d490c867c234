"""SHOW TABLES, and DESCRIBE of a table, as the lake has them: DuckDB lists the views that queries left behind."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from sqlglot import exp

from windrow.engines.duckdb.named_tables import Tables
from windrow.engines.duckdb.relations import duckdb_types
from windrow.engines.duckdb.syntax import names_in, parsed_selects
from windrow.errors import InvalidInput
from windrow.questions.naming import Naming
from windrow.questions.spelling import sql_name

__all__ = ["described", "listed"]

_ALL_TABLES = "__show_tables_expanded"
"""How DuckDB's parser writes SHOW ALL TABLES, and DESCRIBE of nothing."""
_EXPANDED = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("database", "schema", "name")),
        *(pa.field(name, pa.list_(pa.string())) for name in ("column_names", "column_types")),
        pa.field("temporary", pa.bool_()),
    ]
)


def described(naming: Naming, tables: Tables) -> str | None:
    """Return DESCRIBE or SUMMARIZE of a table of the lake such that its name means nothing else; None for others.

    DuckDB takes some names for something to list: DESCRIBE tables is SHOW TABLES to it.
    """
    statement = naming.statements[0] if len(naming.statements) == 1 else None
    if not isinstance(statement, exp.Describe | exp.Summarize) or not isinstance(statement.this, exp.Table):
        return None
    table = statement.this
    found = tables.named([] if table.db or not isinstance(table.this, exp.Identifier) else [table.name])
    verb = "DESCRIBE" if isinstance(statement, exp.Describe) else "SUMMARIZE"
    return next((f"{verb} SELECT * FROM {sql_name(name)}" for name in found), None)


def listed(cursor: duckdb.DuckDBPyConnection, query: str, tables: Tables) -> pa.Table | None:
    """Return the answer to SHOW TABLES and SHOW ALL TABLES; None for anything else."""
    try:
        found = parsed_selects(cursor, query)
    except (InvalidInput, duckdb.Error):
        return None
    source = found[0].get("from_table", {}) if len(found) == 1 else {}
    if source.get("type") != "SHOW_REF":
        return None
    names = sorted(tables.names)
    match names_in(source).listings:
        case ["tables"]:
            return pa.table({"name": pa.array(names, pa.string())})
        case [every] if every == _ALL_TABLES:
            return pa.Table.from_pylist([_expanded(cursor, tables, name) for name in names], _EXPANDED)
    return None


def _expanded(cursor: duckdb.DuckDBPyConnection, tables: Tables, name: str) -> dict[str, object]:
    [relation] = tables.named([name]).values()
    columns = relation().columns
    types = duckdb_types(cursor, columns)
    return {
        "database": "lake",
        "schema": "main",
        "name": name,
        "column_names": columns.names,
        "column_types": types,
        "temporary": False,
    }

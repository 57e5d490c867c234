"""Statements as DuckDB's own parser sees them: no other parser says for certain what DuckDB would run.

A SELECT is a tree of JSON. Names in it are looked up where they stand, so that a query of WITH hides a table only
within its own SELECT.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import duckdb

from windrow.errors import InvalidInput
from windrow.questions.naming import SCHEMAS_OF_VIEWS

__all__ = ["Names", "names_in", "parsed_condition", "parsed_selects", "table_names"]


@dataclass(slots=True)
class Names:
    """What a SELECT names."""

    tables: list[tuple[str, ...]] = field(default_factory=list)
    """Tables with what stands before them: a schema, a database; queries of WITH are left out."""
    table_functions: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    listings: list[str] = field(default_factory=list)
    """What SHOW lists: tables, databases and so on."""


def parsed_selects(cursor: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    """Return the SELECTs of a text, DESCRIBE, SUMMARIZE and SHOW among them; any other statement is InvalidInput."""
    [(text,)] = cursor.execute("SELECT json_serialize_sql(CAST(? AS VARCHAR))", [query]).fetchall()
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise InvalidInput("the query is nested too deep; write it with fewer levels") from error
    if found["error"]:
        raise InvalidInput(f"the query cannot be read as SELECT: {found['error_message']}")
    return [statement["node"] for statement in found["statements"]]


def names_in(node: dict[str, Any]) -> Names:
    """Return the names in a parsed SELECT."""
    names = Names()
    try:
        _gather(node, frozenset(), names)
    except RecursionError as error:
        raise InvalidInput("the query is nested too deep; write it with fewer levels") from error
    return names


def _gather(node: Any, queries: frozenset[str], names: Names) -> None:
    if isinstance(node, list):
        for each in node:
            _gather(each, queries, names)
    elif isinstance(node, dict):
        queries = _gather_with(node, queries, names)
        _gather_source(node, queries, names)
        if node.get("class") in ("FUNCTION", "WINDOW") and node.get("function_name"):
            names.functions.append(_path(node, "function_name")[-1].lower())
        for key, value in node.items():
            if key != "cte_map":
                _gather(value, queries, names)


def _gather_source(node: dict[str, Any], queries: frozenset[str], names: Names) -> None:
    """A node in place of a table."""
    match node.get("type"):
        case "BASE_TABLE":
            path = _path(node, "table_name")
            if len(path) > 1 or path[-1].lower() not in queries:
                names.tables.append(path)
        case "SHOW_REF" if node.get("show_type") == "SHOW_SPECIAL":
            names.listings.append(str(node["table_name"]).strip('"'))
        case "SHOW_REF" if node.get("table_name"):
            names.tables.append(_path(node, "table_name"))
        case "TABLE_FUNCTION":
            names.table_functions.append(_path(node["function"], "function_name")[-1].lower())


def _gather_with(node: dict[str, Any], queries: frozenset[str], names: Names) -> frozenset[str]:
    """A query of WITH sees those before it, and a recursive one itself."""
    for entry in (node.get("cte_map") or {}).get("map") or ():
        _gather(entry["value"], queries, names)
        queries |= {str(entry["key"]).lower()}
    return queries | {str(node["cte_name"]).lower()} if node.get("type") == "RECURSIVE_CTE_NODE" else queries


def _path(node: dict[str, Any], key: str) -> tuple[str, ...]:
    """A name with all that stands before it."""
    path = (node.get("qualified_name") or {}).get("path") or []
    before = [str(node[each]) for each in ("catalog_name", "catalog", "schema_name", "schema") if node.get(each)]
    return tuple(map(str, path)) or (*before, str(node[key]))


def table_names(cursor: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """Return the tables that statements of any kind name, as far as DuckDB can tell without their tables."""
    found: set[str] = set()
    for statement in cursor.extract_statements(query):
        try:
            if statement.type == duckdb.StatementType.SELECT:
                paths = [path for node in parsed_selects(cursor, statement.query) for path in names_in(node).tables]
                found |= {path[-1] for path in paths if len(path) == 1 or path[:-1] in SCHEMAS_OF_VIEWS}
            else:
                found |= cursor.get_table_names(statement.query)
        except (duckdb.Error, InvalidInput):
            # The statement itself will say what is wrong with it.
            continue
    return found


def parsed_condition(cursor: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any] | None:
    """Return a condition as DuckDB parses it; None where it is more than one, or asks a query inside."""
    # The condition may end with a comment.
    nodes = parsed_selects(cursor, f"SELECT 1 FROM t WHERE ({text}\n)")
    [plain] = parsed_selects(cursor, "SELECT 1 FROM t WHERE (true\n)")
    if len(nodes) != 1:
        return None
    condition = nodes[0].pop("where_clause", None)
    plain.pop("where_clause")
    names = names_in({"where": condition})
    is_plain = nodes[0] == plain and not (names.tables or names.table_functions or names.listings)
    return condition if is_plain and not _asks(condition) else None


def _asks(node: Any) -> bool:
    """Whether a query is inside."""
    if isinstance(node, list):
        return any(map(_asks, node))
    return isinstance(node, dict) and (node.get("class") == "SUBQUERY" or any(map(_asks, node.values())))

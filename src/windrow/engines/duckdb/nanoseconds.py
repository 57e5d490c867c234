"""Queries over times of nanoseconds, as DuckDB can answer them.

DuckDB compares TIMESTAMPTZ_NS with nothing but its like, has few functions for it, and rounds it to the nearest
microsecond where it casts. So a query that names such a column is rewritten, as DuckDB's own parser sees it:

- A value that is compared with the column becomes nanoseconds: exact, and infinite beyond the years that these count.
- An argument of a function, an operator or a cast becomes the microsecond before it, as `date_trunc` cuts.
- What only hands the column on, such as `select`, `order by`, `group by`, `min` and `count`, has all of its digits.

Metadata is asked by the query as it was written, so pruning sees no cast.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from windrow.bounded import BoundedCache
from windrow.engines.duckdb.syntax import parsed_selects

__all__ = ["FineQueries", "fine_columns", "fine_condition"]

Node = dict[str, Any]

_MOST = 256
_HANDING_ON = frozenset(
    [
        *("min", "max", "first", "last", "any_value", "mode", "arg_min", "arg_max", "min_by", "max_by"),
        *("lag", "lead", "first_value", "last_value", "nth_value"),
    ]
)
"""Functions that give back what their first argument is."""
_TAKING = _HANDING_ON | frozenset(
    [
        *("count", "approx_count_distinct", "list", "array_agg", "histogram", "row_number", "rank", "dense_rank"),
        *("epoch_ns", "nanosecond", "strftime", "hash", "typeof", "concat", "||", "format", "printf"),
        *("list_value", "struct_pack", "row"),
    ]
)
"""Functions that take nanoseconds as they are."""
_TAKING_CASTS = frozenset(["varchar", "text", "string", "timestamp_ns", "timestamptz_ns", "json"])
_LISTS = ("COMPARE_IN", "COMPARE_NOT_IN")


class Fine(NamedTuple):
    """How a column of nanoseconds, with a zone or without one, is spelled."""

    type: str
    plain: str
    make: str
    """The function that makes a time of a count of microseconds."""


_INSTANT = Fine("TIMESTAMPTZ_NS", "TIMESTAMPTZ", "make_timestamptz")
_LOCAL = Fine("TIMESTAMP_NS", "TIMESTAMP", "make_timestamp")


def fine_columns(schema: pa.Schema) -> dict[str, Fine]:
    """Return the columns of nanoseconds, by their names in lower case."""
    kinds = [(each.name.lower(), each.type) for each in schema if pa.types.is_timestamp(each.type)]
    return {name: _LOCAL if kind.tz is None else _INSTANT for name, kind in kinds if kind.unit == "ns"}


class FineQueries:
    """Rewrites the queries of an engine; the last ones are cached for all threads."""

    def __init__(self) -> None:
        self._rewritten: BoundedCache[tuple[str, str], str] = BoundedCache("queries of nanoseconds", _MOST)

    def rewritten(self, cursor: duckdb.DuckDBPyConnection, query: str, schemas: Mapping[str, pa.Schema]) -> str:
        """Return a query as DuckDB can answer it; the query itself where that is so already, or cannot be parsed."""
        columns = {name.lower(): fine_columns(schema) for name, schema in schemas.items()}
        if not any(columns.values()):
            return query
        key = query, repr(sorted(columns.items()))
        return self._rewritten.get_or_make(key, lambda: _rewritten(cursor, query, columns))


def fine_condition(cursor: duckdb.DuckDBPyConnection, condition: str, name: str, schema: pa.Schema) -> str:
    """Return a condition on one relation as DuckDB can answer it."""
    fine = fine_columns(schema)
    if not fine:
        return condition
    quoted = name.replace('"', '""')
    # The condition may end with a comment.
    [node] = parsed_selects(cursor, f'SELECT 1 FROM "{quoted}" WHERE ({condition}\n)')
    rewriting = _Rewriting(cursor, {name.lower(): fine}, node)
    rewriting.select(node)
    return rewriting.text(node["where_clause"]) if rewriting.changed else condition


def _rewritten(cursor: duckdb.DuckDBPyConnection, query: str, columns: Mapping[str, Mapping[str, Fine]]) -> str:
    try:
        [(text,)] = cursor.execute("SELECT json_serialize_sql(CAST(? AS VARCHAR))", [query]).fetchall()
        parsed = json.loads(text)
        if parsed["error"] or len(parsed["statements"]) != 1:
            return query
        node = parsed["statements"][0]["node"]
        rewriting = _Rewriting(cursor, columns, node)
        rewriting.walk(node, None)
        return _sql(cursor, parsed) if rewriting.changed else query
    except (duckdb.Error, RecursionError):
        # What is wrong with the query is said when it is run.
        return query


def _sql(cursor: duckdb.DuckDBPyConnection, parsed: Node) -> str:
    [(text,)] = cursor.execute("SELECT json_deserialize_sql(CAST(? AS JSON))", [json.dumps(parsed)]).fetchall()
    return str(text)


class _Rewriting:
    """One walk over a parsed query, which is changed in place."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, columns: Mapping[str, Mapping[str, Fine]], root: Node
    ) -> None:
        self.changed = False
        self._cursor = cursor
        self._columns = columns
        self._passed = {name: fine for table in columns.values() for name, fine in table.items()}
        self._computed = {str(each["alias"]).lower() for each in _projections(root) if _is_computed(each)}
        self._queries = set(_with_names(root))

    def select(self, node: Node) -> None:
        """Rewrite a SELECT, in which columns are those of its own sources."""
        sources = dict(_sources(node.get("from_table")))
        given, before = deepcopy(node["select_list"]), self.changed
        for key, value in node.items():
            self.changed = False
            self.walk(value, sources)
            if key == "select_list" and self.changed:
                # What was not given a name keeps the one that DuckDB makes of its text.
                for each, original in zip(node["select_list"], given, strict=True):
                    if not each.get("alias") and each != original:
                        each["alias"] = self.text(original)
            before |= self.changed
        self.changed = before

    def walk(self, node: Any, sources: Mapping[str, str] | None) -> None:
        """Rewrite whatever is below a node."""
        if isinstance(node, list):
            for each in node:
                self.walk(each, sources)
        elif isinstance(node, dict):
            if node.get("type") == "SELECT_NODE":
                self.select(node)
                return
            for value in list(node.values()):
                self.walk(value, sources)
            self._expression(node, sources or {})

    def _expression(self, node: Node, sources: Mapping[str, str]) -> None:
        match node.get("class"):
            case "COMPARISON":
                self._alike(node, ("left", "right"), sources)
            case "BETWEEN":
                self._alike(node, ("input", "lower", "upper"), sources)
            case "OPERATOR" if node["type"] in _LISTS:
                self._alike(node["children"], range(len(node["children"])), sources)
            case "OPERATOR" if node["type"] == "OPERATOR_COALESCE":
                self._mixed(node["children"], range(len(node["children"])), sources)
            case "CASE":
                branches = [(each, "then_expr") for each in node["case_checks"]] + [(node, "else_expr")]
                if not all(self._fine(place[key], sources) or _is_null(place[key]) for place, key in branches):
                    for place, key in branches:
                        self._cut(place, key, sources)
            case "CAST" if _type_of(node) not in _TAKING_CASTS:
                self._cut(node, "child", sources)
            case "FUNCTION" | "WINDOW":
                self._arguments(node, sources)

    def _arguments(self, node: Node, sources: Mapping[str, str]) -> None:
        if str(node["function_name"]).lower() not in _TAKING:
            for each in node.get("arguments") or ():
                self._cut(each, "expression", sources)
        if node.get("start_expr") or node.get("end_expr"):
            # The ends of a range are computed from the column that rows are ordered by.
            for each in node.get("orders") or ():
                self._cut(each, "expression", sources)

    def _alike(self, place: Any, keys: Any, sources: Mapping[str, str]) -> None:
        """Bring what is compared to nanoseconds, where one side has them and another may not."""
        found = [self._fine(place[key], sources) for key in keys]
        fine = next((each for each in found if each is not None), None)
        if fine is None or all(found):
            return
        for key, each in zip(keys, found, strict=True):
            place[key] = (
                self._bounded(place[key], fine) if each is None else self._filled(f"CAST(x AS {fine.type})", place[key])
            )
        self.changed = True

    def _mixed(self, place: Any, keys: Any, sources: Mapping[str, str]) -> None:
        found = [self._fine(place[key], sources) is not None or _is_null(place[key]) for key in keys]
        if any(found) and not all(found):
            for key in keys:
                self._cut(place, key, sources)

    def _cut(self, place: Any, key: Any, sources: Mapping[str, str]) -> None:
        """Put the microsecond before it in place of an expression of nanoseconds."""
        fine = self._fine(place[key], sources)
        if fine is not None:
            place[key] = self._filled(
                f"{fine.make}((epoch_ns(x) - (epoch_ns(x) % 1000 + 1000) % 1000) // 1000)", place[key]
            )
            self.changed = True

    def _bounded(self, value: Node, fine: Fine) -> Node:
        """A value as nanoseconds: infinite where it lies beyond them."""
        if value.get("class") == "SUBQUERY" or _is_null(value):
            return self._filled(f"CAST(x AS {fine.type})", value)
        text = f"CAST(x AS {fine.plain})"
        return self._filled(
            f"CASE WHEN {text} > {fine.plain} '2262-04-11 23:47:16.854775' THEN CAST('infinity' AS {fine.type}) "
            f"WHEN {text} < {fine.plain} '1677-09-21 00:12:43.145225' THEN CAST('-infinity' AS {fine.type}) "
            f"ELSE TRY_CAST(x AS {fine.type}) END",
            value,
        )

    def _filled(self, template: str, value: Node) -> Node:
        """The expression of a text, in which x stands for another expression."""
        [select] = parsed_selects(self._cursor, f"SELECT {template}")
        filled: Node = _replaced(select["select_list"][0], lambda node: node.get("column_names") == ["x"], value)
        filled["alias"] = value.get("alias") or ""
        return filled

    def text(self, expression: Node) -> str:
        """The text of an expression."""
        [(parsed,)] = self._cursor.execute("SELECT json_serialize_sql('SELECT 1')").fetchall()
        whole = json.loads(parsed)
        whole["statements"][0]["node"]["select_list"] = [expression | {"alias": ""}]
        return _sql(self._cursor, whole).removeprefix("SELECT ")

    def _fine(self, node: Any, sources: Mapping[str, str]) -> Fine | None:
        """How an expression is spelled, if it is one of nanoseconds."""
        if not isinstance(node, dict):
            return None
        match node.get("class"):
            case "COLUMN_REF":
                return self._column([str(each).lower() for each in node["column_names"]], sources)
            case "FUNCTION" | "WINDOW" if str(node["function_name"]).lower() in _HANDING_ON:
                arguments = node.get("arguments") or ()
                return self._fine(arguments[0]["expression"], sources) if arguments else None
            case "OPERATOR" if node["type"] == "OPERATOR_COALESCE":
                return self._fine(node["children"][0], sources)
        return None

    def _column(self, path: list[str], sources: Mapping[str, str]) -> Fine | None:
        name, qualifier = path[-1], path[-2] if len(path) > 1 else None
        for alias, table in sources.items():
            if qualifier in (None, alias) and name in self._columns.get(table, {}):
                return self._columns[table][name]
        if qualifier is not None and sources.get(qualifier, "") not in {"", *self._queries}:
            return None
        return None if name in self._computed else self._passed.get(name)


def _sources(node: Any) -> list[tuple[str, str]]:
    """The tables that stand in a FROM, by what they are called there; not those of queries inside."""
    if not isinstance(node, dict):
        return []
    if node.get("type") == "BASE_TABLE":
        table = str(node["table_name"]).lower()
        return [(str(node.get("alias") or table).lower(), table)]
    return [*_sources(node.get("left")), *_sources(node.get("right"))]


def _projections(node: Any) -> list[Node]:
    """What the SELECTs of a query give, and have given a name."""
    if isinstance(node, list):
        return [found for each in node for found in _projections(each)]
    if not isinstance(node, dict):
        return []
    own = [each for each in node.get("select_list") or () if each.get("alias")]
    return own + [found for value in node.values() for found in _projections(value)]


def _is_computed(node: Node) -> bool:
    return node.get("class") != "COLUMN_REF" and str(node.get("function_name", "")).lower() not in _HANDING_ON


def _with_names(node: Any) -> list[str]:
    """The names of queries of WITH."""
    if isinstance(node, list):
        return [found for each in node for found in _with_names(each)]
    if not isinstance(node, dict):
        return []
    own = [str(entry["key"]).lower() for entry in (node.get("cte_map") or {}).get("map") or ()]
    return own + [found for value in node.values() for found in _with_names(value)]


def _type_of(node: Node) -> str:
    return str((node.get("type_expr") or {}).get("type_name", "")).lower()


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and (node.get("literal") or {}).get("kind") == "NULL_LITERAL"


def _replaced(node: Any, matches: Callable[[Node], bool], value: Node) -> Any:
    if isinstance(node, list):
        return [_replaced(each, matches, value) for each in node]
    if not isinstance(node, dict):
        return node
    return value if matches(node) else {key: _replaced(each, matches, value) for key, each in node.items()}

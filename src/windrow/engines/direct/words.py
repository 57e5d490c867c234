"""What a query names, by the parse tree of DuckDB itself: one table, and the range of time that its rows lie in.

Only a plain SELECT from one table is taken. All else is None, and the engine of the lake answers it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Span", "Words", "parse_words"]

Span = tuple[int | None, int | None]
"""From a microsecond to another, both of which may count; None where there is no end."""
Moment = Callable[[str, str], int | None]
"""The microsecond of a literal and a type; None where it has none."""

_CLASSES = frozenset(
    {
        *("BETWEEN", "CASE", "CAST", "COLUMN_REF", "COMPARISON", "CONJUNCTION"),
        *("CONSTANT", "FUNCTION", "OPERATOR", "STAR", "TYPE", "WINDOW"),
    }
)
_MODIFIERS = frozenset({"ORDER_MODIFIER", "LIMIT_MODIFIER", "DISTINCT_MODIFIER"})
_LOW, _HIGH = ("COMPARE_GREATERTHAN", "COMPARE_GREATERTHANOREQUALTO"), ("COMPARE_LESSTHAN", "COMPARE_LESSTHANOREQUALTO")
_TIMES = frozenset({"date", "datetime", "timestamp", "timestamptz", "timestamp with time zone"})


@dataclass(frozen=True, slots=True)
class Words:
    """A query that can be answered directly, if its table can."""

    table: str
    where: tuple[dict[str, Any], ...]
    """What a row must meet, each by itself."""
    filters: frozenset[str]
    """The names by which rows are left out, in small letters; names given in the query among them."""
    names: frozenset[str]
    """The names of all columns that it refers to, in small letters; a star where these may be any."""
    aliases: frozenset[str]
    has_groups_left_out: bool
    has_first_rows: bool
    """Whether it is the first rows of an order."""
    makes_few: bool
    """Whether there are fewer rows in the answer than in the table: groups, or the first of them."""

    def may_use_bounds_of(self, columns: frozenset[str]) -> bool:
        """Whether DuckDB might leave out rows by the bounds that files have of some columns; names in small letters."""
        concerned = bool(columns & self.names) or (bool(columns) and "*" in self.names)
        return concerned and (self.has_groups_left_out or self.has_first_rows or bool(self.filters & columns))

    def span(self, column: str, moment: Moment) -> Span:
        """The range of time that rows must lie in to match."""
        low: int | None = None
        high: int | None = None
        for part in self.where:
            for kind, value in _comparisons(part, column):
                at = None if value is None else moment(*value)
                if at is None:
                    continue
                if kind in (*_LOW, "COMPARE_EQUAL"):
                    low = at if low is None else max(low, at)
                if kind in (*_HIGH, "COMPARE_EQUAL"):
                    high = at if high is None else min(high, at)
        return low, high


def parse_words(serialized: str) -> Words | None:
    """Read what DuckDB's `json_serialize_sql` gives for a query; None for what is not taken."""
    try:
        tree = json.loads(serialized)
    except RecursionError:
        return None
    statements = tree.get("statements", ())
    if tree["error"] or len(statements) != 1 or statements[0].get("named_param_map"):
        return None
    node = statements[0]["node"]
    if node["type"] != "SELECT_NODE" or node["cte_map"]["map"] or node.get("sample"):
        return None
    table = _table(node["from_table"])
    modifiers = {each["type"] for each in node["modifiers"]}
    classes = {each["class"] for each in _nodes(node) if "class" in each}
    if table is None or not modifiers <= _MODIFIERS or not classes <= _CLASSES:
        return None
    where = node.get("where_clause")
    filters = [each["filter"] for each in _nodes(node) if each.get("filter")] + ([where] if where else [])
    return Words(
        table,
        tuple(_conjuncts(where)) if where else (),
        frozenset(name.lower() for each in filters for name in _column_names(each)),
        frozenset(name.lower() for name in _column_names(node)),
        frozenset(each["alias"].lower() for each in node["select_list"] if each.get("alias")),
        bool(node.get("having") or node.get("qualify")),
        modifiers >= {"ORDER_MODIFIER", "LIMIT_MODIFIER"},
        "LIMIT_MODIFIER" in modifiers or bool(node.get("group_expressions")) or _is_one_row(node),
    )


def _table(source: dict[str, Any]) -> str | None:
    is_plain = source["type"] == "BASE_TABLE" and not any(
        source.get(name) for name in ("schema_name", "catalog_name", "sample", "column_name_alias", "at_clause")
    )
    return str(source["table_name"]) if is_plain else None


def _is_one_row(node: dict[str, Any]) -> bool:
    """Whether it is one row of known aggregates."""
    some = ("count", "count_star", "sum", "avg", "min", "max")
    return all(each.get("function_name") in some and each["class"] == "FUNCTION" for each in node["select_list"])


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a tree."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _column_names(tree: Any) -> Iterator[str]:
    for node in _nodes(tree):
        if node.get("class") == "COLUMN_REF":
            yield str(node["column_names"][-1])
        elif node.get("class") == "STAR":
            yield "*"


def _conjuncts(condition: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if condition["type"] == "CONJUNCTION_AND":
        for child in condition["children"]:
            yield from _conjuncts(child)
    else:
        yield condition


def _comparisons(part: dict[str, Any], column: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yield how a condition compares a column with literals: the comparison, and the literal's text and type."""
    if part["class"] == "BETWEEN" and part["type"] == "COMPARE_BETWEEN" and _is_column(part["input"], column):
        yield _LOW[1], _literal(part["lower"])
        yield _HIGH[1], _literal(part["upper"])
    elif part["class"] == "COMPARISON":
        kind = part["type"]
        if _is_column(part["left"], column):
            yield kind, _literal(part["right"])
        elif _is_column(part["right"], column):
            yield _mirrored(kind), _literal(part["left"])


def _mirrored(kind: str) -> str:
    pairs = dict(zip((*_LOW, *_HIGH), (*_HIGH, *_LOW), strict=True))
    return pairs.get(kind, kind)


def _is_column(node: dict[str, Any], column: str) -> bool:
    return node["class"] == "COLUMN_REF" and [name.lower() for name in node["column_names"]] == [column.lower()]


def _literal(node: dict[str, Any]) -> tuple[str, str] | None:
    """The text of a literal, and the type that it is cast to; none where it takes that of the column."""
    kind = ""
    if node["class"] == "CAST" and not node["try_cast"]:
        kind, node = str(node["type_expr"].get("type_name", "")).lower(), node["child"]
        if kind not in _TIMES or node["class"] != "CONSTANT":
            return None
    literal = node.get("literal") if node["class"] == "CONSTANT" else None
    return (literal["text"], kind) if literal and literal.get("kind") == "STRING" else None

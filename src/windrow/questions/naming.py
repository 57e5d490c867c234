"""What a query names: columns, and files in place of tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from windrow.model.predicate import Predicate

__all__ = [
    "SCHEMAS_OF_VIEWS",
    "Aggregate",
    "AggregateKind",
    "Naming",
    "Newest",
    "NewestBuckets",
    "Question",
    "has_views",
]

SCHEMAS_OF_VIEWS = frozenset([("main",), ("temp",), ("temp", "main")])
"""The schemas of temporary views, which are the lake's tables to a query."""
_BY_NAME = frozenset({"query", "query_table"})
"""Functions that take names of tables as text."""
_MAKES_ROWS = re.compile("unnest|generate_subscripts", re.IGNORECASE)
"""Functions that make many rows of few."""
_COUNTS = (exp.Count, exp.Min, exp.Max)


@dataclass(frozen=True, slots=True)
class Question:
    """The columns, rows and aggregates wanted of one table; None stands for all columns, and for all rows."""

    columns: tuple[str, ...] | None = None
    predicate: Predicate | None = None
    aggregates: tuple[Aggregate, ...] = ()
    """Not empty when only aggregates are wanted, over exactly the rows of the predicate."""
    newest: Newest | NewestBuckets | None = None
    """Which rows are enough, where those of the newest times are; others may be left out, or not."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The rows with the greatest time of each series, all of them where several have it, and rows without a time."""

    by: tuple[str, ...]
    """The columns that tell series apart; nulls are like each other."""
    where: Predicate | None = None
    """Exactly the rows that count."""
    filled: tuple[str, ...] = ()
    """Columns whose nulls count for nothing: with a null among the newest rows, older ones matter."""


@dataclass(frozen=True, slots=True)
class NewestBuckets:
    """The rows of so many of the newest buckets of time; rows without a time are not among them."""

    count: int
    step: int
    """The length of the longest bucket, in microseconds."""
    where: Predicate | None = None
    """Exactly the rows that count."""


class AggregateKind(StrEnum):
    """An aggregate function."""

    ROWS = "rows"
    COUNT = "count"
    DISTINCT = "count distinct"
    MINIMUM = "min"
    MAXIMUM = "max"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One value over many rows; the number of rows is of no column."""

    kind: AggregateKind
    column: str = ""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names in a query."""

    words: frozenset[str] | None
    """Every name, in small letters; None when the query may refer to columns without their names."""
    files: tuple[str, ...] = ()
    """Names in place of tables that are paths or addresses of Parquet files."""
    tree: exp.Expr | None = None
    """The query, parsed, if it can be."""
    scopes: Sequence[Scope] | None = None
    """The SELECTs of the query, from the inside out; None where their sources are ambiguous."""
    tables: tuple[str, ...] = ()
    """Names in place of tables."""
    places: tuple[exp.Table, ...] = ()
    """The nodes of these in the tree, and of names with a schema."""
    statements: tuple[exp.Expr, ...] = ()
    """Parsed statements, where they are more or less than one query."""
    candidates: frozenset[str] | None = None
    """Names that may stand for tables of the lake; None where only the parser of DuckDB can decide."""
    counts_only: bool = False
    """Whether its result is counts, minima and maxima alone, which metadata may have."""
    is_single: bool = False
    """Whether it is one SELECT from one table that makes no rows of its own."""
    prepared: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was compiled from the tree, for the next query of its shape."""

    @classmethod
    def of(cls, query: str | exp.Expr) -> Naming:
        """Return the names in a query, parsed or not; no names for a query with a syntax error."""
        try:
            statements = parse(query, read="duckdb") if isinstance(query, str) else [query]
        except (SqlglotError, RecursionError):
            return cls(None)
        tree: Any = statements[0] if len(statements) == 1 else None
        if not isinstance(tree, exp.Query):
            return cls(None, statements=tuple(each for each in statements if each is not None))
        scopes, places = _scopes_of(tree), tuple(tree.find_all(exp.Table))
        named_queries = _named_queries(scopes or ())
        tables = [table.name for table in places if _is_name(table) and id(table) not in named_queries]
        files = tuple(dict.fromkeys(name for name in tables if name.endswith(".parquet")))
        words = None if any(map(_has_unnamed_columns, tree.walk())) or _refers_to_rows(tree) else _names(tree)
        named = tuple(dict.fromkeys(tables))
        return cls(
            words,
            files,
            tree,
            scopes,
            named,
            places,
            candidates=_candidates(named, places),
            counts_only=isinstance(tree, exp.Select)
            and all(isinstance(e.unalias(), _COUNTS) for e in tree.expressions),
            is_single=_is_single(tree, scopes, named) and not _MAKES_ROWS.search(str(query)),
        )

    def refers_to(self, name: str) -> bool:
        """Whether the query may refer to a column of this name."""
        return self.words is None or name.lower() in self.words


def has_views(table: exp.Table) -> bool:
    """Whether the schema of a name holds the views of tables of the lake."""
    if not table.args.get("db"):
        return False
    before = (table.catalog.lower(), table.db.lower()) if table.catalog else (table.db.lower(),)
    return bool(table.name) and before in SCHEMAS_OF_VIEWS


def _candidates(named: Sequence[str], places: Sequence[exp.Table]) -> frozenset[str] | None:
    functions = {each.this.name.lower() for each in places if isinstance(each.this, exp.Anonymous)}
    if functions & _BY_NAME:
        return None
    return frozenset([*named, *(each.name for each in places if has_views(each))])


def _is_single(tree: exp.Expr, scopes: Sequence[Scope] | None, named: Sequence[str]) -> bool:
    is_one = isinstance(tree, exp.Select) and scopes is not None and len(scopes) == len(named) == 1
    return is_one and not (tree.args.get("joins") or tree.args.get("laterals"))


def _scopes_of(tree: exp.Expr) -> Sequence[Scope] | None:
    """The SELECTs of a query, from the inside out; None where their sources are ambiguous."""
    try:
        scopes = traverse_scope(tree) if isinstance(tree, exp.Query) else []
        # Sources are looked up late, and refused then where two have one name.
        _named_queries(scopes)
    except (SqlglotError, RecursionError):
        return None
    return scopes


def _is_name(table: exp.Table) -> bool:
    """Whether a table is a plain name: no function, and without a schema."""
    return bool(table.name) and not table.db


def _named_queries(scopes: Sequence[Scope]) -> set[int]:
    """The ids of nodes that look like tables and refer to queries of WITH."""
    sources = (each for scope in scopes for each in scope.selected_sources.values())
    return {id(node) for node, source in sources if isinstance(node, exp.Table) and isinstance(source, Scope)}


def _names(tree: Any) -> frozenset[str]:
    return frozenset(identifier.name.lower() for identifier in tree.find_all(exp.Identifier))


def _has_unnamed_columns(node: Any) -> bool:
    """Whether a part of a query refers to columns without their names."""
    match node:
        case exp.Star():
            return not isinstance(node.parent, exp.Count)
        case exp.Pivot() | exp.Describe() | exp.Summarize() | exp.Command() | exp.Columns():
            return True
        case exp.Join():
            return bool(node.args.get("method"))  # a natural join
        case exp.Anonymous():
            return node.name.lower() == "columns"
    return False


def _refers_to_rows(tree: Any) -> bool:
    """Whether a source is named in place of a column, which stands for its rows with all of their columns."""
    sources = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    return any(not column.table and column.name.lower() in sources for column in tree.find_all(exp.Column))

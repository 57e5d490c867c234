"""Queries that metadata may answer: counts and extremes of a table, under a condition with an exact predicate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from windrow.questions.conditions import to_exact_predicate
from windrow.questions.literals import fitted_exactly
from windrow.questions.naming import Aggregate, AggregateKind, Question

__all__ = ["aggregates_of"]

_PARTS = {"expressions", "from_", "where"}
"""The parts that a SELECT may have."""


_KINDS: dict[type[exp.Expr], AggregateKind] = {
    exp.Count: AggregateKind.COUNT,
    exp.Min: AggregateKind.MINIMUM,
    exp.Max: AggregateKind.MAXIMUM,
}


def aggregates_of(
    tree: exp.Expr | None, tables: Mapping[str, pa.Schema], constant: Callable[[exp.Expr], Any]
) -> tuple[str, Question] | None:
    """Return the table of a query and its question, when it is nothing but aggregates of that table.

    `tables` have the columns that hold all of their values. `constant` gives the value of an expression without
    columns, or raises InvalidInput.
    """
    source = _source(tree)
    name = None if source is None else next((name for name in tables if name.lower() == source.name.lower()), None)
    if not isinstance(tree, exp.Select) or source is None or name is None:
        return None
    column = _spelling(source, tables[name].names)
    aggregates = [_aggregate(each.unalias(), column) for each in tree.expressions]
    wanted = tuple(each for each in aggregates if each is not None)
    if not wanted or len(wanted) < len(aggregates):
        return None
    where = tree.args.get("where")
    if where is None:
        return name, Question(aggregates=wanted)
    exact = to_exact_predicate(where.this, column, constant)
    predicate = None if exact is None else fitted_exactly(exact, tables[name])
    return None if predicate is None else (name, Question(None, predicate, wanted))


def _source(tree: exp.Expr | None) -> exp.Table | None:
    """The one table of a query that has no other parts than those that can be answered."""
    if not isinstance(tree, exp.Select) or {part for part, value in tree.args.items() if value} - _PARTS:
        return None
    from_ = tree.args.get("from_")
    source = None if from_ is None else from_.this
    if not isinstance(source, exp.Table) or {part for part, value in source.args.items() if value} - {"this", "alias"}:
        return None
    return None if source.alias_column_names else source


def _spelling(source: exp.Table, names: Collection[str]) -> Callable[[exp.Column], str | None]:
    """Return a function from a column of the query to the table's spelling of it."""
    spelled: dict[str, str | None] = {}
    for name in names:
        spelled[name.lower()] = None if name.lower() in spelled else name

    def column(node: exp.Column) -> str | None:
        is_ours = not node.table or node.table.lower() == source.alias_or_name.lower()
        return spelled.get(node.name.lower()) if is_ours and not node.args.get("db") else None

    return column


def _aggregate(node: exp.Expr, column: Callable[[exp.Column], str | None]) -> Aggregate | None:
    kind, inner = _KINDS.get(type(node)), node.this
    if kind is None or {part for part, value in node.args.items() if value} - {"this", "big_int"}:
        return None
    if kind is AggregateKind.COUNT and type(inner) is exp.Star and not any(inner.args.values()):
        return Aggregate(AggregateKind.ROWS)
    if kind is AggregateKind.COUNT and isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        kind, inner = AggregateKind.DISTINCT, inner.expressions[0]
    name = column(inner) if isinstance(inner, exp.Column) and not isinstance(inner.this, exp.Star) else None
    return None if name is None else Aggregate(kind, name)

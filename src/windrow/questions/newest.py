"""Queries that the newest rows of each series answer: which rows are enough for them.

    select distinct on (host) * from cpu order by host, timestamp desc
    select host, arg_max(value, timestamp) from cpu group by host
    select * from cpu qualify row_number() over (partition by host order by timestamp desc) = 1
    select * from cpu where (host, timestamp) in (select (host, max(timestamp)) from cpu group by host)

The engine runs the query as it is, over those rows and perhaps others. So it is enough that no row is missing which has
the newest time of its series, among rows that pass the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot import exp

from windrow.model.predicate import Predicate, columns_of
from windrow.questions.conditions import to_exact_predicate
from windrow.questions.literals import fitted_exactly
from windrow.questions.naming import Naming, Newest
from windrow.questions.references import is_plain_source

__all__ = ["Columns", "NewestShape", "is_odd", "newest_shape"]

Constant = Callable[[exp.Expr], Any]
_FIRST = (exp.RowNumber, exp.Rank, exp.DenseRank)
_PLAIN = (
    *(exp.Alias, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Cast, exp.DataType, exp.Paren, exp.Ordered),
    *(exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Round),
)
"""What may stand around aggregates."""
_ODD = (exp.SetOperation, exp.Unnest, exp.Lateral, exp.Columns, exp.Explode)


@dataclass(frozen=True, slots=True)
class NewestShape:
    """What a parsed query says, but for the values of its literals."""

    by: tuple[str, ...]
    where: exp.Expr | None
    filled: tuple[str, ...]
    columns: Columns
    is_about_keys: bool = False
    """Whether its condition may be about keys and times alone."""

    def newest(self, constant: Constant) -> Newest | None:
        """The rows that are enough for the query with the literals that it has now; None where that is unsure."""
        if self.where is None:
            return Newest(self.by, filled=self.filled)
        exact = to_exact_predicate(self.where, self.columns, constant)
        predicate: Predicate | None = None if exact is None else fitted_exactly(exact, self.columns.schema)
        if predicate is None:
            return None
        if self.is_about_keys and not columns_of(predicate) <= {*self.by, self.columns.timestamp}:
            return None
        return Newest(self.by, predicate, self.filled)


class Columns:
    """Tells the columns of the only table, under all names that its rows have in the query."""

    def __init__(self, schema: pa.Schema, timestamp: str, aliases: Sequence[str]) -> None:
        self.schema = schema
        self.timestamp = timestamp
        self._aliases = {alias.lower() for alias in aliases}
        self._spelled: dict[str, str | None] = {}
        for name in schema.names:
            self._spelled[name.lower()] = None if name.lower() in self._spelled else name

    def __call__(self, node: exp.Expr) -> str | None:
        """The column that an expression is; None where it is none."""
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or node.args.get("db"):
            return None
        is_ours = not node.table or node.table.lower() in self._aliases
        return self._spelled.get(node.name.lower()) if is_ours else None

    def all_of(self, nodes: Sequence[exp.Expr]) -> tuple[str, ...] | None:
        """The columns that some expressions are, if all of them are."""
        names = [name for node in nodes if (name := self(node)) is not None]
        return tuple(dict.fromkeys(names)) if len(names) == len(nodes) else None

    def is_time(self, node: exp.Expr) -> bool:
        """Whether an expression is the time of a row."""
        return self(node) == self.timestamp


def newest_shape(naming: Naming, name: str, schema: pa.Schema, timestamp: str) -> NewestShape | None:
    """Return which newest rows are enough for a query of a table; None where it needs others."""
    tree = naming.tree
    if not isinstance(tree, exp.Select) or naming.scopes is None or timestamp not in schema.names:
        return None
    places = [place for place in naming.places if place.name.lower() == name.lower()]
    if not all(is_plain_source(place) and not place.args.get("db") for place in places):
        return None
    selects = list(tree.find_all(exp.Select))
    if tree.find(*_ODD) or any(is_odd(select) for select in selects):
        return None
    columns = Columns(schema, timestamp, [place.alias_or_name for place in places])
    if len(selects) == len(places) == len(naming.places) == 1:
        return _distinct_on(tree, columns) or _grouped(tree, columns) or _qualified(tree, columns)
    if len(selects) == 2 and len(places) == 1:
        return _numbered(tree, columns, naming)
    if len(selects) == len(places) == len(naming.places) == 2:
        return _semi_joined(tree, schema, timestamp)
    return None


def is_odd(select: exp.Select) -> bool:
    """Whether a SELECT has sources or parts that make other rows of those of its table."""
    stars = [each for each in select.expressions if isinstance(each, exp.Star) and any(each.args.values())]
    return bool(stars) or any(
        select.args.get(part) for part in ("joins", "laterals", "sample", "pivots", "connect", "match", "windows")
    )


def _shape(by: tuple[str, ...] | None, select: exp.Select, columns: Columns, **more: Any) -> NewestShape | None:
    where = select.args.get("where")
    named = {columns.timestamp, *(by or ())} | {each.name for each in (where.find_all(exp.Column) if where else ())}
    if by is None or columns.timestamp in by or _are_hidden(named, select, columns):
        return None
    return NewestShape(by, None if where is None else where.this, more.pop("filled", ()), columns, **more)


def _are_hidden(names: Collection[str], select: exp.Select, columns: Columns) -> bool:
    """Whether something else in the query has the name of a column."""
    lower = {name.lower() for name in names}
    others = [
        each
        for each in select.expressions
        if each.alias and (columns(each.unalias()) or "").lower() != each.alias.lower()
    ]
    return any(each.alias.lower() in lower and not _is_latest(each, columns) for each in others)


def _is_latest(projection: exp.Expr, columns: Columns) -> bool:
    """Whether a projection is the latest time, under the name of the time."""
    inner = projection.unalias()
    is_time = isinstance(inner, exp.Max) and columns.is_time(inner.this)
    return is_time and projection.alias.lower() == columns.timestamp.lower()


def _distinct_on(select: exp.Select, columns: Columns) -> NewestShape | None:
    distinct, order = select.args.get("distinct"), select.args.get("order")
    on = distinct.args.get("on") if isinstance(distinct, exp.Distinct) else None
    if on is None or order is None or any(select.args.get(part) for part in ("group", "having", "qualify")):
        return None
    if any(each.find(exp.AggFunc, exp.Window, exp.Anonymous) for each in select.expressions):
        return None
    by = columns.all_of(on.expressions if isinstance(on, exp.Tuple) else [on])
    return _shape(by, select, columns) if by is not None and _newest_first(order, columns, by) else None


def _newest_first(order: exp.Expr, columns: Columns, by: Sequence[str]) -> bool:
    """Whether rows of a series are ordered by their time, the latest first."""
    for each in order.expressions:
        if columns(each.this) in by:
            continue
        return bool(each.args.get("desc")) and columns.is_time(each.this) and not each.args.get("with_fill")
    return False


def _grouped(select: exp.Select, columns: Columns) -> NewestShape | None:
    """Aggregates of the newest rows of groups alone."""
    group = select.args.get("group")
    if any(select.args.get(part) for part in ("distinct", "qualify")):
        return None
    if group is not None and any(value for part, value in group.args.items() if part != "expressions"):
        return None
    by = columns.all_of([] if group is None else group.expressions)
    order, having = select.args.get("order"), select.args.get("having")
    parts = [*select.expressions, *([] if order is None else order.expressions)]
    if by is None or having is not None:
        return None
    aliases = frozenset(each.alias.lower() for each in select.expressions if each.alias)
    filled: list[str] = []
    names = [frozenset[str]()] * len(select.expressions) + [aliases] * (len(parts) - len(select.expressions))
    found = [_is_of_newest(part, columns, by, own, filled) for part, own in zip(parts, names, strict=True)]
    if not all(found) or not any(part.find(exp.ArgMax, exp.Max) for part in parts):
        return None
    return _shape(by, select, columns, filled=tuple(dict.fromkeys(filled)))


def _is_of_newest(
    node: exp.Expr, columns: Columns, by: Sequence[str], aliases: frozenset[str], filled: list[str]
) -> bool:
    """Whether an expression is made of keys and of aggregates that the newest rows alone decide."""
    if isinstance(node, exp.ArgMax):
        value = columns(node.this)
        if value is None or not columns.is_time(node.expression) or node.args.get("count"):
            return False
        if value not in (*by, columns.timestamp):
            filled.append(value)
        return True
    if isinstance(node, exp.Max):
        return columns.is_time(node.this) and not node.args.get("expressions")
    if isinstance(node, exp.Column):
        is_alias = not node.table and node.name.lower() in aliases
        return is_alias or columns(node) in by
    if not isinstance(node, _PLAIN):
        return False
    return all(_is_of_newest(each, columns, by, aliases, filled) for each in node.iter_expressions())


def _qualified(select: exp.Select, columns: Columns) -> NewestShape | None:
    qualify = select.args.get("qualify")
    if qualify is None or any(select.args.get(part) for part in ("distinct", "group", "having")):
        return None
    return _shape(_first_of_series(select, qualify.this, columns), select, columns)


def _numbered(outer: exp.Select, columns: Columns, naming: Naming) -> NewestShape | None:
    """Rows that were numbered by a query inside, of which the first ones are chosen."""
    source = outer.args["from_"].this if outer.args.get("from_") else None
    with_ = outer.args.get("with_")
    if isinstance(source, exp.Table) and with_ is not None and len(with_.expressions) == 1 and len(naming.places) == 2:
        [cte] = with_.expressions
        is_it = cte.alias.lower() == source.name.lower() and not cte.args["alias"].columns and not with_.recursive
        inner = cte.this if is_it and is_plain_source(source) else None
    elif isinstance(source, exp.Subquery) and with_ is None and len(naming.places) == 1:
        inner = source.this if is_plain_source(source.this) else None
    else:
        return None
    where = outer.args.get("where")
    parts = ("distinct", "group", "having", "qualify", "order", "limit", "offset", "with_")
    if not isinstance(inner, exp.Select) or where is None or any(inner.args.get(part) for part in parts):
        return None
    return _shape(_first_of_series(inner, where.this, columns), inner, columns)


def _first_of_series(select: exp.Select, condition: exp.Expr, columns: Columns) -> tuple[str, ...] | None:
    """The keys of series of which a condition chooses the first rows, by their place from the newest on."""
    windows = [*select.find_all(exp.Window)]
    if not windows or any(each != windows[0] for each in windows) or not isinstance(windows[0].this, _FIRST):
        return None
    if any(each.find(exp.AggFunc, exp.Anonymous) for each in _without_windows(select.expressions)):
        return None
    names = {each.alias.lower() for each in select.expressions if isinstance(each.unalias(), exp.Window)}
    names -= {name.lower() for name in columns.schema.names}
    parts = condition.flatten() if isinstance(condition, exp.And) else [condition]
    if not any(_is_first(part, windows[0], names) for part in parts):
        return None
    window, order = windows[0], windows[0].args.get("order")
    by = columns.all_of(window.args.get("partition_by") or [])
    if by is None or order is None or any(window.args.get(part) for part in ("spec", "alias", "first")):
        return None
    return by if _newest_first(order, columns, by) else None


def _without_windows(expressions: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    return (each for each in expressions if not isinstance(each.unalias(), exp.Window))


def _is_first(part: exp.Expr, window: exp.Window, names: set[str]) -> bool:
    if not isinstance(part, exp.EQ) or part.expression != exp.Literal.number(1):
        return False
    place = part.this
    return bool(place == window) or (isinstance(place, exp.Column) and not place.table and place.name.lower() in names)


def _semi_joined(outer: exp.Select, schema: pa.Schema, timestamp: str) -> NewestShape | None:
    """Rows whose keys and time are those of the newest row of a series."""
    columns = _columns_of(outer, schema, timestamp)
    where = outer.args.get("where")
    condition = None if where is None else where.this
    for part in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        query = part.args.get("query") if isinstance(part, exp.In) else None
        inner = query.this if isinstance(query, exp.Subquery) else query
        if isinstance(part, exp.In) and isinstance(inner, exp.Select) and columns is not None:
            return _with_newest(part.this, inner, columns, _columns_of(inner, schema, timestamp))
    return None


def _columns_of(select: exp.Select, schema: pa.Schema, timestamp: str) -> Columns | None:
    """The columns of the table that a SELECT is from."""
    source = select.args["from_"].this if select.args.get("from_") else None
    return Columns(schema, timestamp, [source.alias_or_name]) if isinstance(source, exp.Table) else None


def _with_newest(place: exp.Expr, inner: exp.Select, outside: Columns, columns: Columns | None) -> NewestShape | None:
    parts = ("distinct", "having", "qualify", "order", "limit", "offset", "with_")
    group = inner.args.get("group")
    if columns is None or any(inner.args.get(part) for part in parts):
        return None
    if group is not None and any(value for part, value in group.args.items() if part != "expressions"):
        return None
    by = columns.all_of([] if group is None else group.expressions)
    here = place.expressions if isinstance(place, exp.Tuple) else [place]
    there = inner.expressions
    if len(there) == 1 and isinstance(there[0], exp.Tuple):
        there = there[0].expressions
    if by is None or len(here) != len(there):
        return None
    pairs = [(outside(one), _or_newest(other.unalias(), columns)) for one, other in zip(here, there, strict=True)]
    if any(one is None or one != other for one, other in pairs) or {one for one, _ in pairs} != {
        *by,
        columns.timestamp,
    }:
        return None
    return _shape(by, inner, columns, is_about_keys=True)


def _or_newest(node: exp.Expr, columns: Columns) -> str | None:
    """The column that an expression is, or the time that it is the latest of."""
    if isinstance(node, exp.Max):
        is_time = columns.is_time(node.this) and not node.args.get("expressions")
        return columns.timestamp if is_time else None
    name = columns(node)
    return None if name == columns.timestamp else name

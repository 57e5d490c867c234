"""Which rows of each table a query can need: a predicate for every table that it names.

It joins the conditions between a table and the answer: WHERE and ON of the SELECT that names it, and those of the
queries around it, as far as its columns pass through them unchanged. A table in several places needs the rows of any
of them. In doubt all rows are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from windrow.model.predicate import And, Predicate, matches, negation_normal_form
from windrow.questions.conditions import all_of, any_of, each_test, to_predicate
from windrow.questions.literals import fitted
from windrow.questions.naming import Naming

__all__ = ["Constant", "Owner", "is_plain_source", "needed_rows", "owner_of", "spelled_as"]

Constant = Callable[[exp.Expr], Any]
"""Gives the value of an expression without columns."""

Owner = Callable[[exp.Column], str | None]
"""Gives the name of a column in one source, in lower case; None when it is none of its columns."""

_CUTTING = ("limit", "offset", "fetch", "qualify", "sample", "pivots", "laterals", "connect", "match")
"""Parts of a SELECT that see its rows together: fewer rows below it would change the others."""
_ON_COUNTS_FOR_BOTH = {("", ""), ("", "INNER"), ("", "CROSS")}
_ON_COUNTS_FOR_RIGHT = {("LEFT", ""), ("LEFT", "OUTER"), ("", "SEMI"), ("", "ANTI"), ("LEFT", "SEMI"), ("LEFT", "ANTI")}


def needed_rows(
    query: str | exp.Expr | Naming, tables: Mapping[str, pa.Schema], constant: Constant
) -> dict[str, Predicate | None]:
    """Return for each of the tables that a query names the predicate of the rows that matter; None for all rows.

    The query may be parsed already. Names are compared without case, as DuckDB does. A query that cannot be understood
    needs all rows.
    """
    by_lower_name = {name.lower(): name for name in tables}
    naming = query if isinstance(query, Naming) else Naming.of(query)
    if naming.scopes is None:
        return dict.fromkeys(tables)
    walk = _Walk(by_lower_name, tables, constant)
    walk.visit(naming.scopes)
    by_table: dict[str, list[Predicate | None]] = {}
    for node in naming.places:
        if node.name.lower() in by_lower_name and id(node) not in walk.queries:
            by_table.setdefault(by_lower_name[node.name.lower()], []).append(walk.needs.get(id(node)))
    # DuckDB may see a table in a name where sqlglot sees none.
    return dict.fromkeys(tables) | {name: any_of(places) for name, places in by_table.items()}


class _Walk:
    """One walk over the SELECTs of a query, from the outermost one inwards."""

    def __init__(
        self,
        by_lower_name: Mapping[str, str],
        tables: Mapping[str, pa.Schema],
        constant: Constant,
    ) -> None:
        self._by_lower_name = by_lower_name
        self._tables = tables
        self._constant = constant
        self.needs: dict[int, Predicate | None] = {}
        self._demands: dict[int, list[Predicate | None]] = {}
        self.queries: set[int] = set()
        """Names that stand for queries of WITH, not for tables."""

    def visit(self, scopes: Sequence[Scope]) -> None:
        """Visit all scopes, which are ordered from the inside out."""
        for scope in reversed(scopes):
            demand = any_of(self._demands.get(id(scope), [None]))
            if isinstance(scope.expression, exp.Select):
                self._select(scope, scope.expression, demand)
            elif isinstance(scope.expression, exp.SetOperation):
                self._set_operation(scope, demand)

    def _set_operation(self, scope: Scope, demand: Predicate | None) -> None:
        names = _output_names(scope.expression)
        for part in scope.set_operation_scopes:
            inner = _output_names(part.expression)
            if demand is None or names is None or inner is None or len(inner) != len(names) or _cuts(scope.expression):
                self._demand(part, None)
            else:
                place = {name: inner[at] for at, name in enumerate(names)}
                self._demand(part, _renamed(demand, place.get))

    def _select(self, scope: Scope, select: exp.Select, demand: Predicate | None) -> None:
        joined = _outer_joined(select)
        demand = None if demand is None or _cuts(select) else demand
        for alias, (node, source) in scope.selected_sources.items():
            if isinstance(node, exp.Table) and isinstance(source, Scope):
                self.queries.add(id(node))
            need = None
            if alias.lower() not in joined.unsure and is_plain_source(node) and not select.args.get("sample"):
                owns = owner_of(alias, self._columns(source), select, alone=len(scope.selected_sources) == 1)
                around = None if demand is None else _renamed(demand, _outputs(select, owns))
                need = self._need(select, alias, owns, around, is_nullable=alias.lower() in joined.nullable)
            self._give(source, need)

    def _need(
        self, select: exp.Select, alias: str, owns: Owner, around: Predicate | None, *, is_nullable: bool
    ) -> Predicate | None:
        """The predicate of a SELECT, and of the queries around it, on the columns of one of its sources."""

        def predicate(condition: exp.Expr | None) -> Predicate | None:
            implied = None if condition is None else to_predicate(condition, owns, self._constant)
            return None if implied is None else negation_normal_form(implied)

        where = select.args.get("where")
        before, own = _on(select, alias)
        later = [all_of([predicate(None if where is None else where.this), around]), *map(predicate, before)]
        # An outer join may put a row of nulls in place of a missing row: no condition may let it pass.
        sure = [None if part is None or (is_nullable and matches(part, {})) else part for part in later]
        return all_of([*sure, *map(predicate, own)])

    def _give(self, source: exp.Table | Scope, need: Predicate | None) -> None:
        if isinstance(source, Scope):
            self._demand(source, None if _is_recursive(source) or _renames(source) else need)
        elif source.name.lower() in self._by_lower_name and need is not None and not source.db:
            schema = self._tables[self._by_lower_name[source.name.lower()]]
            self.needs[id(source)] = fitted(spelled_as(need, schema), schema)

    def _demand(self, scope: Scope, need: Predicate | None) -> None:
        self._demands.setdefault(id(scope), []).append(need)

    def _columns(self, source: exp.Table | Scope) -> frozenset[str] | None:
        """The names of a source's columns in lower case; None for a source that does not list them."""
        if isinstance(source, Scope):
            names = _output_names(source.expression)
            return None if names is None else frozenset(names)
        schema = self._tables.get(self._by_lower_name.get(source.name.lower(), ""))
        return None if schema is None else frozenset(name.lower() for name in schema.names)


def _renamed(predicate: Predicate, name: Callable[[str], str | None]) -> Predicate | None:
    def change(test: Any) -> Predicate | None:
        new = name(test.column)
        if new is None:
            return None
        changed: Predicate = test if new == test.column else replace(test, column=new)
        return changed

    return each_test(predicate, change)


def spelled_as(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """Return the predicate with column names as the table spells them; names that differ by case alone are left out."""
    spelled: dict[str, str | None] = {}
    for name in schema.names:
        spelled[name.lower()] = None if name.lower() in spelled else name
    return _renamed(predicate, spelled.get) or And(())


def owner_of(alias: str, columns: frozenset[str] | None, select: exp.Select, *, alone: bool) -> Owner:
    """Tell which columns of a SELECT belong to one of its sources, by their name in lower case."""
    shared = _shared_names(select)

    def owns(column: exp.Column) -> str | None:
        name = column.name.lower()
        if column.args.get("db") or isinstance(column.this, exp.Star):
            return None
        if column.table:
            return name if column.table.lower() == alias.lower() and (columns is None or name in columns) else None
        is_ours = columns is not None and name in columns and shared is not None and name not in shared
        return name if is_ours or (alone and columns is None) else None

    return owns


def _shared_names(select: exp.Select) -> frozenset[str] | None:
    """Names that stand for columns of two sources at once; None where any name may."""
    joins = select.args.get("joins") or []
    if any(join.method == "NATURAL" for join in joins):
        return None
    return frozenset(each.name.lower() for join in joins for each in join.args.get("using") or [])


def _on(select: exp.Select, alias: str) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return the conditions that rows of a source have to meet: in joins after its own, and in its own."""
    later, own = [], []
    for join in select.args.get("joins") or []:
        on, kind = join.args.get("on"), (join.side.upper(), join.kind.upper())
        if on is None or join.method:
            continue
        if join.this.alias_or_name.lower() == alias.lower():
            own += [on] if kind in _ON_COUNTS_FOR_BOTH | _ON_COUNTS_FOR_RIGHT else []
        else:
            later += [on] if kind in _ON_COUNTS_FOR_BOTH else []
    return later, own


class _Joined(NamedTuple):
    """Sources of a SELECT, in lower case."""

    nullable: set[str]
    """Sources whose rows may be filled up with nulls."""
    unsure: set[str]
    """Sources that need all of their rows."""


def _outer_joined(select: exp.Select) -> _Joined:
    from_ = select.args.get("from_")
    before = {from_.this.alias_or_name.lower()} if from_ is not None else set()
    nullable: set[str] = set()
    unsure: set[str] = set()
    for join in select.args.get("joins") or []:
        right = join.this.alias_or_name.lower()
        side, method = join.side.upper(), (join.method or "").upper()
        if side in ("RIGHT", "FULL"):
            nullable |= before
        if side in ("LEFT", "FULL"):
            nullable.add(right)
        if method == "ASOF":
            # The nearest row is chosen before conditions are looked at.
            unsure.add(right)
        elif method not in ("", "NATURAL") or join.kind.upper() in ("POSITIONAL", "APPLY"):
            unsure |= before | {right}
        before.add(right)
    return _Joined(nullable, unsure)


def is_plain_source(node: exp.Expr) -> bool:
    """Whether a source is a table or a query and nothing more: no sample, no pivot, no names for its columns."""
    place = node if isinstance(node, exp.Table) else node.parent
    if not isinstance(place, exp.Table | exp.Subquery):
        return False
    more = {name for name, value in place.args.items() if value} - {"this", "alias", "db", "catalog"}
    return not more and not place.alias_column_names


def _cuts(query: exp.Expr) -> bool:
    """Whether rows of a query's result depend on other rows of it."""
    distinct, group = query.args.get("distinct"), query.args.get("group")
    return (
        any(query.args.get(part) for part in _CUTTING)
        or (isinstance(distinct, exp.Distinct) and bool(distinct.args.get("on")))
        or (group is not None and any(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets)))
        or (isinstance(query, exp.Select) and any(_looks_around(each) for each in query.expressions))
    )


def _looks_around(projection: exp.Expr) -> bool:
    return any(projection.find_all(exp.Window, exp.Unnest, exp.Explode, exp.Anonymous))


def _is_recursive(scope: Scope) -> bool:
    with_ = scope.expression.find_ancestor(exp.With)
    return with_ is not None and bool(with_.args.get("recursive"))


def _renames(scope: Scope) -> bool:
    """Whether the query of a WITH gives its columns other names."""
    parent = scope.expression.parent
    return isinstance(parent, exp.CTE) and bool(parent.alias_column_names)


def _output_names(query: exp.Expr) -> list[str] | None:
    """Return the names of a query's columns, in lower case; None where they are not explicit, or not unique."""
    select = query
    while isinstance(select, exp.SetOperation | exp.Subquery):
        if isinstance(select, exp.SetOperation) and select.args.get("by_name"):
            return None
        select = select.this
    if not isinstance(select, exp.Select) or any(_is_star(each) for each in select.expressions):
        return None
    names = [each.alias_or_name.lower() for each in select.expressions]
    return names if all(names) and len(set(names)) == len(names) else None


def _outputs(select: exp.Select, owns: Owner) -> Callable[[str], str | None]:
    """Tell which column of a source an output of a SELECT is, where it is one, unchanged."""
    named = {
        each.alias_or_name.lower(): owns(each.unalias())
        for each in select.expressions
        if isinstance(each.unalias(), exp.Column) and not _is_star(each)
    }
    computed = {each.alias_or_name.lower() for each in select.expressions if not _is_star(each)} - named.keys()
    stars = [each for each in select.expressions if _is_star(each)]
    # Only a lone star of a lone source gives every name as it is.
    passes = len(select.expressions) == 1 and len(stars) == 1 and not select.args.get("joins")
    passes = passes and type(stars[0]) is exp.Star and not any(stars[0].args.values())
    is_grouped = select.args.get("group") is not None or any(select.find_all(exp.AggFunc))

    def output(name: str) -> str | None:
        if name in computed:
            return None
        if name in named:
            return named[name]
        return owns(exp.column(name)) if passes and not is_grouped else None

    return output


def _is_star(projection: exp.Expr) -> bool:
    return isinstance(projection.unalias(), exp.Star | exp.Columns) or (
        isinstance(projection, exp.Column) and isinstance(projection.this, exp.Star)
    )

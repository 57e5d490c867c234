"""Which relations a query joins by inner joins: the graph of each SELECT whose joins are wholly understood.

A group is what stands in FROM up to the first join that is no inner one; later joins keep their place. Tables of a
group are named tables with columns. A SELECT with anything else that could change by another order, or whose
names cannot be bound, is left out: it runs as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlglot import exp

from windrow.errors import InvalidInput
from windrow.questions.conditions import to_exact_predicate
from windrow.questions.literals import fitted_exactly
from windrow.statistics.join_graph import Equality, Filter, JoinGraph, Relation, Residual

__all__ = ["JoinBlock", "NotUnderstood", "Source", "join_blocks"]

_PARTS = {
    *("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_"),
    *("qualify", "windows"),
}
"""The parts that a SELECT may have."""
_ORDERED = (exp.First, exp.Last, exp.AnyValue, exp.ArrayAgg, exp.GroupConcat, exp.FirstValue, exp.LastValue)
"""Calls whose result depends on the order of rows."""
_VOLATILE = (exp.Rand, exp.Randn, exp.Uuid, exp.NextValueFor, exp.CurrentTimestamp)
_KEEPING_LEFT = {("LEFT", ""), ("LEFT", "OUTER"), ("", "SEMI"), ("", "ANTI"), ("LEFT", "SEMI"), ("LEFT", "ANTI")}
"""Joins that return each row of their left side, or leave it out, by that row alone."""
_INNER = {("", ""), ("", "INNER"), ("", "CROSS")}


class NotUnderstood(Exception):
    """A SELECT is left as it is; the text says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A relation of a group: its place in the query and the columns of its table."""

    node: exp.Table
    alias: str
    schema: pa.Schema

    def spelled(self, name: str) -> str | None:
        """The table's spelling of a column; None for a column that it does not have."""
        return next((each for each in self.schema.names if each.lower() == name.lower()), None)


@dataclass(slots=True)
class JoinBlock:
    """One group of inner joins, and everything in its SELECT that refers to it."""

    select: exp.Select
    sources: tuple[Source, ...]
    graph: JoinGraph
    filters: tuple[tuple[exp.Expr, ...], ...]
    """The conditions on each relation alone."""
    residuals: Mapping[Residual, exp.Expr]
    rest: tuple[exp.Expr, ...]
    """Conditions that stay in WHERE."""
    later: tuple[exp.Join, ...]
    """Joins after the group, which keep their place."""
    columns: dict[int, tuple[int, str]]
    """By the identity of a node: the relation and the column that it refers to."""
    using: frozenset[tuple[int, str]]
    """Columns that USING has merged into those of an earlier relation."""
    taken: frozenset[str] = field(default_factory=frozenset)
    """Every name in the query, in lower case."""


def join_blocks(
    tree: exp.Expr, schemas: Mapping[str, pa.Schema], constant: Callable[[exp.Expr], Any] | None = None
) -> list[JoinBlock]:
    """Return the groups of a query that may be joined in another order; nodes of the tree are not copied.

    `schemas` has the tables that the query may name, in lower case; `constant` gives values of expressions without
    columns, or raises InvalidInput.
    """
    named_queries = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    visible = {name: schema for name, schema in schemas.items() if name not in named_queries}
    taken = frozenset(each.name.lower() for each in tree.find_all(exp.Identifier))
    blocks = []
    for select in tree.find_all(exp.Select):
        try:
            blocks.append(_Reading(select, visible, constant or _no_constant, taken).block())
        except NotUnderstood:
            continue
    return blocks


def _no_constant(expression: exp.Expr) -> Any:
    raise InvalidInput(f"{expression.sql('duckdb')} is no literal")


class _Reading:
    """One SELECT on its way to a group."""

    def __init__(
        self,
        select: exp.Select,
        schemas: Mapping[str, pa.Schema],
        constant: Callable[[exp.Expr], Any],
        taken: frozenset[str],
    ) -> None:
        self._select = select
        self._schemas = schemas
        self._constant = constant
        self._taken = taken
        self._columns: dict[int, tuple[int, str]] = {}
        self._using: dict[tuple[int, str], tuple[int, str]] = {}

    def block(self) -> JoinBlock:
        """The group of the SELECT, or NotUnderstood."""
        self._check_select()
        joins = self._select.args.get("joins") or []
        inner = next((at for at, join in enumerate(joins) if _kind(join) not in _INNER), len(joins))
        self._later = joins[inner:]
        self._check_later()
        nodes = [self._select.args["from_"].this, *(join.this for join in joins[:inner])]
        self._sources = tuple(self._source(node) for node in nodes)
        if len(self._sources) < 2:
            raise NotUnderstood("one relation")
        self._others = _later_sources(self._later, self._schemas)
        self._check_aliases()
        equalities = self._used(joins[:inner])
        self._bind()
        conditions = [each for join in joins[:inner] for each in _conjuncts(join.args.get("on"))]
        where = self._select.args.get("where")
        return self._classified([*conditions, *_conjuncts(None if where is None else where.this)], equalities)

    # ---- relations

    def _check_select(self) -> None:
        select = self._select
        if {part for part, value in select.args.items() if value} - _PARTS or select.args.get("from_") is None:
            raise NotUnderstood("a part of SELECT that sees rows in their order, or none to join")
        if select.args.get("limit") is not None and select.args.get("order") is None:
            raise NotUnderstood("LIMIT without ORDER BY depends on the order of rows")
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise NotUnderstood("DISTINCT ON depends on the order of rows")
        for node in _own_nodes(select):
            if isinstance(node, _ORDERED) or (isinstance(node, exp.Anonymous) and node.find(exp.Column)):
                raise NotUnderstood(f"{node.key} may depend on the order of rows")
            if isinstance(node, (*_VOLATILE, exp.Pivot, exp.Lateral, exp.Unnest, exp.Columns)):
                raise NotUnderstood(f"{node.key} is not the same for every order")

    def _check_later(self) -> None:
        for join in self._later:
            if _kind(join) not in _KEEPING_LEFT | _INNER or join.args.get("using"):
                raise NotUnderstood(f"{join.key} needs the order as it is written")

    def _source(self, node: exp.Expr) -> Source:
        plain = isinstance(node, exp.Table) and not (
            {part for part, value in node.args.items() if value} - {"this", "alias"}
        )
        schema = self._schemas.get(node.name.lower()) if plain else None
        if schema is None or not isinstance(node, exp.Table) or node.alias_column_names:
            raise NotUnderstood(f"{node.key} is no table whose columns are given")
        lower = [name.lower() for name in schema.names]
        if len(set(lower)) < len(lower):
            raise NotUnderstood("columns that differ by case alone")
        return Source(node, node.alias_or_name.lower(), schema)

    def _check_aliases(self) -> None:
        aliases = [each.alias for each in self._sources] + list(self._others)
        if len(set(aliases)) < len(aliases):
            raise NotUnderstood("two relations have one name")

    def _used(self, joins: Sequence[exp.Join]) -> list[Equality]:
        """The equalities of USING; a merged column is that of the earliest relation."""
        equalities = []
        for number, join in enumerate(joins, 1):
            for name in (each.name for each in join.args.get("using") or []):
                owners = [
                    at
                    for at in range(number)
                    if self._sources[at].spelled(name) and (at, name.lower()) not in self._using
                ]
                mine = self._sources[number].spelled(name)
                if len(owners) != 1 or mine is None:
                    raise NotUnderstood(f"USING ({name}) has no one column on each side")
                theirs = str(self._sources[owners[0]].spelled(name))
                self._using[(number, name.lower())] = (owners[0], theirs)
                equalities.append(Equality(owners[0], theirs, number, mine))
        return equalities

    # ---- names

    def _bind(self) -> None:
        """Resolve every column under the SELECT that refers to a relation of the group."""
        aliases = {each.alias for each in self._sources} | set(self._others)
        for node in self._select.find_all(exp.Column):
            bound = self._bound(node)
            if bound is not None:
                self._columns[id(node)] = bound
            elif not node.table and node.name.lower() in aliases and not isinstance(node.this, exp.Star):
                raise NotUnderstood(f"{node.name} is a relation in the place of a column")

    def _bound(self, node: exp.Column) -> tuple[int, str] | None:
        if node.args.get("db"):
            raise NotUnderstood("a column with a schema before it")
        if isinstance(node.this, exp.Star) or self._is_bound_inside(node):
            return None
        name, table = node.name, node.table.lower()
        if table:
            number = next((at for at, each in enumerate(self._sources) if each.alias == table), None)
            if number is None:
                if table not in self._others and _select_of(node) is self._select:
                    raise NotUnderstood(f"{node.key} refers to a query around this one")
                return None
            spelled = self._sources[number].spelled(name)
            if spelled is None:
                raise NotUnderstood(f"{node.key} is no column")
            return number, spelled
        return self._bound_by_name(node, name.lower())

    def _bound_by_name(self, node: exp.Column, name: str) -> tuple[int, str] | None:
        owners = [at for at, each in enumerate(self._sources) if each.spelled(name) and (at, name) not in self._using]
        others = [alias for alias, columns in self._others.items() if columns is None or name in columns]
        if len(owners) == 1 and not others:
            return owners[0], str(self._sources[owners[0]].spelled(name))
        if owners or any(self._others[alias] is None for alias in others):
            raise NotUnderstood(f"{name} may be a column of several relations")
        aliases = {each.alias.lower() for each in self._select.expressions if isinstance(each, exp.Alias)}
        if not others and name not in aliases and _select_of(node) is self._select:
            raise NotUnderstood(f"{name} refers to a query around this one")
        return None

    def _is_bound_inside(self, node: exp.Column) -> bool:
        """Whether a query inside of this one has the column itself."""
        inner: Any = node.find_ancestor(exp.Select)
        while inner is not None and inner is not self._select:
            sources = _select_sources(inner, self._schemas)
            if node.table:
                if node.table.lower() in sources:
                    return True
            elif any(columns is not None and node.name.lower() in columns for columns in sources.values()):
                return True
            elif None in sources.values() and any(each.spelled(node.name) for each in self._sources):
                raise NotUnderstood(f"{node.name} may be a column of a query inside")
            inner = inner.find_ancestor(exp.Select)
        return False

    # ---- conditions

    def _classified(self, conditions: Sequence[exp.Expr], equalities: list[Equality]) -> JoinBlock:
        filters: list[list[exp.Expr]] = [[] for _ in self._sources]
        implied: list[list[exp.Expr]] = [[] for _ in self._sources]
        mixed: list[tuple[int, exp.Expr]] = []
        rest: list[exp.Expr] = []
        for each in conditions:
            relations = self._relations(each)
            if relations is None or not relations:
                rest.append(each)
            elif relations & (relations - 1) == 0:
                filters[relations.bit_length() - 1].append(each)
            elif (equality := self._equality(each)) is not None:
                equalities.append(equality)
            else:
                mixed.append((relations, each))
                equalities += [shared for part in _shared_parts(each) if (shared := self._equality(part)) is not None]
                self._imply(each, implied)
        graph, residuals = self._graph(filters, implied, equalities, mixed)
        if not graph.is_connected(graph.everything):
            raise NotUnderstood("no equality connects all relations")
        placed = tuple((*own, *more) for own, more in zip(filters, implied, strict=True))
        columns, using = self._columns, frozenset(self._using)
        return JoinBlock(
            self._select,
            self._sources,
            graph,
            placed,
            residuals,
            tuple(rest),
            tuple(self._later),
            columns,
            using,
            self._taken,
        )

    def _graph(
        self,
        filters: Sequence[Sequence[exp.Expr]],
        implied: Sequence[Sequence[exp.Expr]],
        equalities: Sequence[Equality],
        mixed: Sequence[tuple[int, exp.Expr]],
    ) -> tuple[JoinGraph, dict[Residual, exp.Expr]]:
        relations = [
            Relation(each.alias, each.node.name.lower(), tuple(self._filter(number, part) for part in [*own, *more]))
            for number, (each, own, more) in enumerate(zip(self._sources, filters, implied, strict=True))
        ]
        residuals = {self._residual(which, condition): condition for which, condition in mixed}
        plain = JoinGraph(tuple(relations), tuple(dict.fromkeys(equalities)), tuple(residuals))
        return JoinGraph(plain.relations, (*plain.equalities, *self._closure(plain)), plain.residuals), residuals

    def _relations(self, condition: exp.Expr) -> int | None:
        """The set of relations of a condition; None where it needs more than their rows."""
        if any(isinstance(node, exp.Query | exp.AggFunc | exp.Window) for node in condition.walk()):
            return None
        relations = 0
        for node in condition.find_all(exp.Column):
            bound = self._columns.get(id(node))
            if bound is None:
                return None
            relations |= 1 << bound[0]
        return relations

    def _equality(self, condition: exp.Expr) -> Equality | None:
        condition = condition.unnest()
        if not isinstance(condition, exp.EQ):
            return None
        left, right = (self._columns.get(id(side)) for side in (condition.this.unnest(), condition.expression.unnest()))
        if left is None or right is None or left[0] == right[0] or not self._is_plain(left, right):
            return None
        return Equality(*left, *right)

    def _is_plain(self, left: tuple[int, str], right: tuple[int, str]) -> bool:
        """Whether both columns have one type, so that no side is converted before it is compared."""
        one, other = (self._sources[number].schema.field(name).type for number, name in (left, right))
        return bool(one.equals(other)) and not pa.types.is_nested(one)

    def _closure(self, graph: JoinGraph) -> Iterator[Equality]:
        """Equalities of relations that no written one connects, and that follow from others."""
        written = {(each.left, each.right) for each in graph.equalities} | {
            (each.right, each.left) for each in graph.equalities
        }
        columns = [each for each in graph.classes if not pa.types.is_floating(self._type(each))]
        for at, left in enumerate(columns):
            for right in columns[at + 1 :]:
                is_one_class = graph.classes[left] == graph.classes[right]
                if is_one_class and left[0] != right[0] and (left[0], right[0]) not in written:
                    yield Equality(*left, *right, is_implied=True)

    def _type(self, column: tuple[int, str]) -> pa.DataType:
        return self._sources[column[0]].schema.field(column[1]).type

    def _imply(self, condition: exp.Expr, implied: list[list[exp.Expr]]) -> None:
        """Add what an OR over several relations demands of each of them alone."""
        branches = [_conjuncts(branch) for branch in _joined_by(exp.Or, condition)]
        for number in range(len(self._sources)):
            own = [[part for part in parts if self._relations(part) == 1 << number] for parts in branches]
            if len(branches) > 1 and all(own):
                copies = [exp.and_(*(self._copied(part) for part in parts), copy=False) for parts in own]
                implied[number].append(exp.paren(exp.or_(*copies, copy=False), copy=False))

    def _copied(self, part: exp.Expr) -> exp.Expr:
        """A copy whose columns are bound as those of the original."""
        copy = part.copy()
        for old, new in zip(part.find_all(exp.Column), copy.find_all(exp.Column), strict=True):
            self._columns[id(new)] = self._columns[id(old)]
        return copy

    def _filter(self, number: int, condition: exp.Expr) -> Filter:
        names = [bound[1] for node in condition.find_all(exp.Column) if (bound := self._columns.get(id(node)))]
        schema = self._sources[number].schema

        def column(node: exp.Column) -> str | None:
            bound = self._columns.get(id(node))
            return None if bound is None else bound[1]

        exact = to_exact_predicate(condition, column, self._constant)
        predicate = None if exact is None else fitted_exactly(exact, schema)
        return Filter(self._text(condition, lambda bound: bound[1]), tuple(dict.fromkeys(names)), predicate)

    def _residual(self, relations: int, condition: exp.Expr) -> Residual:
        shared = _shared_parts(condition)
        branches = [[part for part in _conjuncts(each) if part not in shared] for each in _joined_by(exp.Or, condition)]
        numbers = [[self._relations(part) or 0 for part in parts] for parts in branches]
        is_split = len(branches) > 1 and all(number.bit_count() == 1 for parts in numbers for number in parts)
        demands = (
            tuple(
                (at.bit_length() - 1, self._filter(at.bit_length() - 1, part)) for at, part in zip(*each, strict=True)
            )
            for each in zip(numbers, branches, strict=True)
        )
        return Residual(relations, self._mixed_filter(condition), tuple(demands) if is_split else ())

    def _mixed_filter(self, condition: exp.Expr) -> Filter:
        names = [
            f"{bound[0]}.{bound[1]}"
            for node in condition.find_all(exp.Column)
            if (bound := self._columns.get(id(node)))
        ]
        return Filter(self._text(condition, lambda bound: f"{bound[0]}.{bound[1]}"), tuple(dict.fromkeys(names)))

    def _text(self, condition: exp.Expr, name: Callable[[tuple[int, str]], str]) -> str:
        copy = condition.copy()
        for old, new in zip(list(condition.find_all(exp.Column)), list(copy.find_all(exp.Column)), strict=True):
            renamed = exp.column(name(self._columns[id(old)]), quoted=True)
            copy = renamed if new is copy else copy
            new.replace(renamed)
        return copy.sql("duckdb")


# ---- parts of a query


def _kind(join: exp.Join) -> tuple[str, str]:
    """Side and kind of a join; a join with a method has no kind here."""
    return ("METHOD", join.method) if join.method else (join.side.upper(), join.kind.upper())


def _conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    return [] if condition is None else _joined_by(exp.And, condition)


def _joined_by(connector: type[exp.Connector], condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    if not isinstance(condition, connector):
        return [condition]
    return [part for each in condition.flatten() for part in _joined_by(connector, each)]


def _shared_parts(condition: exp.Expr) -> list[exp.Expr]:
    """Conditions that stand in every branch of an OR."""
    first, *others = [_conjuncts(branch) for branch in _joined_by(exp.Or, condition)]
    return [part for part in first if others and all(part in parts for parts in others)]


def _own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT without those of its tables and of queries inside."""
    return select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query | exp.With))


def _select_of(node: exp.Expr) -> exp.Expr | None:
    return node.find_ancestor(exp.Select)


def _select_sources(select: exp.Select, schemas: Mapping[str, pa.Schema]) -> dict[str, frozenset[str] | None]:
    """The relations of a SELECT with their columns in lower case; None for columns that are not listed."""
    from_ = select.args.get("from_")
    nodes = [] if from_ is None else [from_.this]
    return {each.alias_or_name.lower(): _columns_of(each, schemas) for each in nodes} | _later_sources(
        select.args.get("joins") or [], schemas
    )


def _later_sources(joins: Sequence[exp.Join], schemas: Mapping[str, pa.Schema]) -> dict[str, frozenset[str] | None]:
    return {join.this.alias_or_name.lower(): _columns_of(join.this, schemas) for join in joins}


def _columns_of(node: exp.Expr, schemas: Mapping[str, pa.Schema]) -> frozenset[str] | None:
    is_plain = isinstance(node, exp.Table) and not node.alias_column_names and not node.args.get("joins")
    schema = schemas.get(node.name.lower()) if is_plain else None
    if schema is not None:
        return frozenset(name.lower() for name in schema.names)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select) and not node.alias_column_names:
        names = [each.alias_or_name.lower() for each in node.this.expressions]
        return frozenset(names) if all(names) and "*" not in names else None
    return None

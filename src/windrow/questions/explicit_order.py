"""A query written anew so that an engine joins its relations in a chosen order.

The tree of joins becomes nested queries of two relations each. For DuckDB each has a column of random numbers that is
read nowhere: its optimizer joins nothing across such a query, though it removes the column and still sends runtime
filters through. For Spark the nesting alone is obeyed, and hints say which side is broadcast. Conditions are placed
where their relations meet; results have the same rows, columns and names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from sqlglot import exp

from windrow.questions.join_blocks import JoinBlock, NotUnderstood, Source
from windrow.statistics.join_graph import Equality, Join, JoinTree, members, set_of

__all__ = ["Target", "rewrite"]


@dataclass(frozen=True, slots=True)
class Target:
    """What an engine needs to obey an order."""

    needs_barriers: bool
    """Whether its optimizer joins across queries that only name columns."""
    is_broadcast: Callable[[int], bool] = lambda _: False
    """Whether a set of relations is broadcast where it is the right side of a join."""


def rewrite(block: JoinBlock, tree: JoinTree, target: Target, names: Sequence[str] | None = None) -> None:
    """Write an order into the SELECT of a block, in place.

    `names` are what the engine calls the columns of the result, in case that the SELECT is the outermost one. Where a
    name would change that cannot be written down, NotUnderstood is raised, and the tree may be half changed.
    """
    if set_of(tree) != block.graph.everything or not isinstance(tree, Join):
        raise NotUnderstood("the order has other relations")
    _Writing(block, target, names).write(tree)


class _Writing:
    """One SELECT while its order is written."""

    def __init__(self, block: JoinBlock, target: Target, names: Sequence[str] | None) -> None:
        self._block = block
        self._target = target
        self._names = names
        self._taken = set(block.taken)
        self._places: dict[int, str | None] = dict.fromkeys(range(len(block.sources)))
        """The query that a relation is in by now, None for a table that stands by itself."""
        every = [name.lower() for each in block.sources for name in each.schema.names]
        self._shared = {name for name in every if every.count(name) > 1}
        self._outer = _bound_nodes(block)
        self._needed = {block.columns[id(node)] for node in self._outer}
        self._exports: dict[tuple[int, str], str] = {}

    def write(self, tree: Join) -> None:
        """Change the SELECT."""
        select, block = self._block.select, self._block
        self._expand_stars()
        from_, join, where = self._level(tree)
        self._refer()
        select.set("from_", exp.From(this=from_))
        select.set("joins", [join, *block.later])
        where += [exp.paren(each, copy=False) for each in block.rest]
        select.set("where", exp.Where(this=exp.and_(*where, copy=False)) if where else None)
        self._hint(select, tree, join)

    # ---- the joins

    def _level(self, tree: Join) -> tuple[exp.Expr, exp.Join, list[exp.Expr]]:
        """One join of two sides: what stands in FROM, the join, and the conditions on relations by themselves."""
        left, right = self._side(tree.left), self._side(tree.right)
        graph, sides = self._block.graph, (set_of(tree.left), set_of(tree.right))
        on = [self._equal(each) for each in graph.between(*sides)]
        on += [self._placed(self._block.residuals[each]) for each in graph.residuals_between(*sides)]
        where = [
            self._placed(condition)
            for side in (tree.left, tree.right)
            if not isinstance(side, Join)
            for condition in self._block.filters[side]
        ]
        return left, exp.Join(this=right, on=exp.and_(*on, copy=False)), where

    def _side(self, tree: JoinTree) -> exp.Expr:
        if not isinstance(tree, Join):
            source = self._block.sources[tree]
            return exp.alias_(source.node.copy(), _identifier(_alias(source)), table=True, copy=False)
        from_, join, where = self._level(tree)
        columns = [self._column(each).as_(_identifier(self._export(each)), copy=False) for each in self._leaving(tree)]
        if self._target.needs_barriers:
            columns.append(exp.Rand().as_(_identifier(self._fresh("barrier")), copy=False))
        query = exp.Select(expressions=columns or [exp.Literal.number(1)])
        query.set("from_", exp.From(this=from_))
        query.set("joins", [join])
        query.set("where", exp.Where(this=exp.and_(*where, copy=False)) if where else None)
        self._hint(query, tree, join)
        name = self._fresh("joined")
        self._places.update(dict.fromkeys(members(tree.relations), name))
        return exp.Subquery(this=query, alias=exp.TableAlias(this=_identifier(name)))

    def _leaving(self, tree: Join) -> list[tuple[int, str]]:
        """The columns that are needed outside of a join, in a steady order."""
        inside, graph = tree.relations, self._block.graph
        needed = {each for each in self._needed if 1 << each[0] & inside}
        for equality in graph.equalities:
            if {1 << number & inside for number, _ in equality.sides} & {0}:
                needed |= {each for each in equality.sides if 1 << each[0] & inside}
        for residual, condition in self._block.residuals.items():
            if residual.relations & ~inside:
                bound = {self._block.columns[id(node)] for node in condition.find_all(exp.Column)}
                needed |= {each for each in bound if 1 << each[0] & inside}
        return sorted(needed)

    def _equal(self, equality: Equality) -> exp.Expr:
        left, right = (self._column(side) for side in equality.sides)
        return exp.EQ(this=left, expression=right)

    def _placed(self, condition: exp.Expr) -> exp.Expr:
        """A condition with the names of its columns at this place."""
        copy = condition.copy()
        for old, new in zip(list(condition.find_all(exp.Column)), list(copy.find_all(exp.Column)), strict=True):
            column = self._column(self._block.columns[id(old)])
            copy = column if new is copy else copy
            new.replace(column)
        return exp.paren(copy, copy=False)

    def _column(self, column: tuple[int, str]) -> exp.Column:
        """A column by its name after the joins so far."""
        place = self._places[column[0]]
        if place is None:
            return exp.column(column[1], _alias(self._block.sources[column[0]]), quoted=True)
        return exp.column(self._export(column), place, quoted=True)

    def _export(self, column: tuple[int, str]) -> str:
        """The name of a column outside of its query: its own, where no other relation has it."""
        if column not in self._exports:
            number, name = column
            is_own = name.lower() not in self._shared
            self._exports[column] = name if is_own else self._fresh(f"{_alias(self._block.sources[number])}_{name}")
        return self._exports[column]

    def _fresh(self, name: str) -> str:
        """A name that neither the query nor its tables have."""
        every = self._taken | {each.lower() for source in self._block.sources for each in source.schema.names}
        fresh = next(each for number in count(1) if (each := f"{name}_{number}").lower() not in every)
        self._taken.add(fresh.lower())
        return fresh

    def _hint(self, query: exp.Select, tree: Join, join: exp.Join) -> None:
        if self._target.is_broadcast(set_of(tree.right)):
            table = exp.Table(this=_identifier(join.this.alias_or_name))
            query.set("hint", exp.Hint(expressions=[exp.JoinHint(this="BROADCAST", expressions=[table])]))

    # ---- what refers to the joins

    def _refer(self) -> None:
        """Give columns outside of the joins the names that they have now, and outputs the names that they had."""
        outputs = self._block.select.expressions
        self._check_names(outputs)
        for node in self._outer:
            column = self._block.columns[id(node)]
            is_moved = self._places[column[0]] is not None
            if not (is_moved if node.table else column[1].lower() in self._shared):
                continue
            self._keep_name(node, outputs, column[1])
            node.replace(self._column(column))

    def _check_names(self, outputs: Sequence[exp.Expr]) -> None:
        if self._names is not None and len(self._names) != len(outputs):
            raise NotUnderstood("the result has more or fewer columns than the query")

    def _keep_name(self, node: exp.Expr, outputs: Sequence[exp.Expr], own: str) -> None:
        at = next((at for at, each in enumerate(outputs) if _is_inside(node, each)), None)
        if at is None or isinstance(outputs[at], exp.Alias):
            return
        output = outputs[at]
        if output is not node and self._names is None:
            raise NotUnderstood(f"{output.sql('duckdb')} has no name of its own")
        name = own if output is node or self._names is None else self._names[at]
        alias = exp.Alias(alias=_identifier(name))
        output.replace(alias)
        alias.set("this", output)

    def _expand_stars(self) -> None:
        """Write the columns of a star down, as the order of relations will be another one."""
        expanded: list[exp.Expr] = []
        for each in self._block.select.expressions:
            is_star = isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star))
            expanded += self._all_columns(each) if is_star else [each]
        self._block.select.set("expressions", expanded)

    def _all_columns(self, star: exp.Expr) -> Iterator[exp.Expr]:
        inner = star.this if isinstance(star, exp.Column) else star
        is_whole = isinstance(star, exp.Star)
        if any(inner.args.values()) or (
            is_whole and any(join.kind.upper() not in ("SEMI", "ANTI") for join in self._block.later)
        ):
            raise NotUnderstood(f"{star.sql('duckdb')} is more than the columns of the group")
        wanted = None if is_whole else star.args["table"].name.lower()
        if wanted is not None and wanted not in {each.alias for each in self._block.sources}:
            raise NotUnderstood(f"{star.sql('duckdb')} is not of the group")
        for number, source in enumerate(self._block.sources):
            for name in source.schema.names if wanted in (None, source.alias) else ():
                if not (is_whole and (number, name.lower()) in self._block.using):
                    yield self._output(number, source, name)

    def _output(self, number: int, source: Source, name: str) -> exp.Expr:
        node = exp.column(name, _alias(source), quoted=True)
        self._block.columns[id(node)] = (number, name)
        self._outer.append(node)
        self._needed.add((number, name))
        return node.as_(_identifier(name), copy=False)


def _alias(source: Source) -> str:
    return source.node.alias_or_name


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _bound_nodes(block: JoinBlock) -> list[exp.Column]:
    """The columns of the group that the SELECT refers to outside of the conditions of the group."""
    select = block.select
    parts: list[exp.Expr] = [*block.rest, *block.later]
    for part, value in select.args.items():
        if part not in ("from_", "joins", "where"):
            parts += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, exp.Expr)]
    return [node for part in parts for node in part.find_all(exp.Column) if id(node) in block.columns]


def _is_inside(node: exp.Expr, other: exp.Expr) -> bool:
    """Whether a node is another one, or below it."""
    at: exp.Expr | None = node
    while at is not None and at is not other:
        at = at.parent
    return at is not None

"""The order in which DuckDB joins: what it would do by itself, and the text of a query that has it do better.

DuckDB knows no distinct counts of Parquet files, and takes the range of a column for them. With statistics of our own,
its plan of the joins is read from EXPLAIN and compared with the best order. Where it is much worse, the query is
written anew; else, and wherever something is not wholly understood, it runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from windrow.engines.duckdb.join_plans import JoinPlan, join_plan
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.sample_conditions import evaluate_with
from windrow.questions.explicit_order import Target, rewrite
from windrow.questions.join_blocks import JoinBlock, NotUnderstood, join_blocks
from windrow.questions.join_skeletons import skeleton
from windrow.questions.naming import Naming
from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_choice import Choice, candidate, is_large, is_worth_a_look
from windrow.statistics.join_graph import JoinTree
from windrow.statistics.keys import NO_KEYS, Column, Containment, DeclaredKeys, contained
from windrow.statistics.table_statistics import TableStatistics

__all__ = [
    "Known",
    "Ordering",
    "Reordered",
    "better_ordering",
    "cardinalities_of",
    "in_better_order",
    "known_of",
    "referred_columns",
    "reordered",
    "statistics_of",
]

_TARGET = Target(needs_barriers=True)
_LOOK = "join order"
_SKIPPED = 31
"""So many queries of a shape are not looked at again, after one that runs as it is: their values may be others."""


@dataclass(slots=True)
class _Look:
    """What came of a look at a query; its shape may be met again."""

    query: str
    text: str | None
    """The query in a better order; None where it runs as it is."""
    columns: Mapping[str, tuple[str, ...]]
    """By relation, the columns that the query may refer to."""
    tables: Mapping[str, TableStatistics]
    skips: int

    def answers(self, query: str, relations: Mapping[str, Relation]) -> bool:
        """Whether a query of the same shape needs no look: it is the same, or ones like it run as they are."""
        if not self._is_of(relations):
            return False
        if query == self.query:
            return True
        self.skips -= 1
        return self.text is None and self.skips >= 0

    def _is_of(self, relations: Mapping[str, Relation]) -> bool:
        """Whether nothing else was learnt of the relations since."""
        return all(
            (each := relations.get(name)) is not None
            and each.statistics is not None
            and each.statistics.of(self.columns[name]) is table
            for name, table in self.tables.items()
        )


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the tables that a query names; their names are in lower case."""

    schemas: Mapping[str, pa.Schema]
    tables: Mapping[str, TableStatistics]
    keys: DeclaredKeys = NO_KEYS
    containment: Containment = lambda _, __: None
    sees_bounds: Callable[[Column], bool] = lambda _: True
    """Whether DuckDB sees the bounds of a column, by the statistics of files or of their virtual footer."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """How a group of joins is carried out."""

    plan: JoinPlan
    """What DuckDB makes of it."""
    wanted: JoinTree | None = None
    """The order that it is forced to take; None where it takes its own."""
    factor: float | None = None
    """The cost of DuckDB's own order, in costs of the forced one."""


@dataclass(frozen=True, slots=True)
class Reordered:
    """A query in another order, and by how much it is cheaper."""

    text: str
    factors: tuple[float, ...]
    """For each group of joins that was written anew: the cost of DuckDB's order, in costs of ours."""


def in_better_order(
    naming: Naming, query: str, relations: Mapping[str, Relation], cursor: duckdb.DuckDBPyConnection
) -> str:
    """Return the text of a query with its joins in a better order, where statistics of its tables tell one."""
    if naming.tree is None:
        return query
    look = naming.prepared.get(_LOOK)
    if look is None or not look.answers(query, relations):
        if not is_large(_row_count(naming, relations)):
            return query
        look = naming.prepared[_LOOK] = _looked(naming, naming.tree, query, relations, cursor)
    return look.text or query


def _row_count(naming: Naming, relations: Mapping[str, Relation]) -> int:
    """The rows of all relations that a query names and that have statistics."""
    known = {name.lower(): each.statistics for name, each in relations.items()}
    found = [known.get(place.name.lower()) for place in naming.places]
    return sum(each.rows or 0 for each in found if each is not None)


def _looked(
    naming: Naming,
    tree: exp.Expr,
    query: str,
    relations: Mapping[str, Relation],
    cursor: duckdb.DuckDBPyConnection,
) -> _Look:
    columns = referred_columns(naming, relations)
    tables = statistics_of(relations, columns)
    better = reordered(tree, query, known_of(relations, tables), cursor) if tables else None
    return _Look(query, None if better is None else better.text, columns, tables, _SKIPPED)


def referred_columns(naming: Naming, relations: Mapping[str, Relation]) -> dict[str, tuple[str, ...]]:
    """The columns that a query may refer to, of relations that can have statistics."""
    return {
        name: tuple(filter(naming.refers_to, each.columns.names))
        for name, each in relations.items()
        if each.statistics is not None and not each.attributes
    }


def statistics_of(
    relations: Mapping[str, Relation], columns: Mapping[str, tuple[str, ...]]
) -> dict[str, TableStatistics]:
    """The statistics of some columns of relations, by name; relations without any are missing."""
    found = {
        name: each.statistics.of(columns[name])
        for name, each in relations.items()
        if name in columns and each.statistics is not None
    }
    return {name: table for name, table in found.items() if table is not None}


def known_of(relations: Mapping[str, Relation], tables: Mapping[str, TableStatistics]) -> Known:
    """What is known of relations, of which some have statistics."""
    named = {name.lower(): each for name, each in relations.items()}
    # Names that rows keep in a map are columns of a view that no schema lists.
    schemas = {name: each.columns for name, each in named.items() if not each.attributes}
    sources = {name: each.statistics for name, each in named.items() if each.statistics is not None}

    @cache
    def containment(column: Column, other: Column) -> float | None:
        one, two = (sources[table].sketch(name) for table, name in (column, other))
        return None if one is None or two is None else contained(one, two)

    return Known(
        schemas,
        {name.lower(): table for name, table in tables.items()},
        DeclaredKeys({name: each.primary_key for name, each in named.items() if each.primary_key}),
        containment=containment,
        sees_bounds=lambda column: sources[column[0]].shows_bounds(column[1]),
    )


def reordered(tree: exp.Expr, query: str, known: Known, cursor: duckdb.DuckDBPyConnection) -> Reordered | None:
    """Return a query with the same result in a better order; None where it runs as it is.

    `tree` is the query, parsed. The cursor finds its tables by the names that it has for them.
    """
    try:
        orders: dict[int, Ordering] = {}
        for number, block in enumerate(join_blocks(tree, known.schemas)):
            ordering = better_ordering(block, known, cursor)
            if ordering is not None:
                orders[number] = ordering
        return _written(tree, query, known, cursor, orders) if orders else None
    except (NotUnderstood, SqlglotError, RecursionError, duckdb.Error):
        return None


def _written(
    tree: exp.Expr, query: str, known: Known, cursor: duckdb.DuckDBPyConnection, orders: Mapping[int, Ordering]
) -> Reordered | None:
    """The query in these orders, if DuckDB takes it for one with the same columns."""
    copy, result = tree.copy(), cursor.sql(query)
    for number, block in enumerate(join_blocks(copy, known.schemas)):
        wanted = orders[number].wanted if number in orders else None
        if wanted is not None:
            rewrite(block, wanted, _TARGET, result.columns if block.select is copy else None)
    text = copy.sql("duckdb")
    other = cursor.sql(text)
    is_same = (other.columns, other.types) == (result.columns, result.types)
    factors = tuple(each.factor for each in orders.values() if each.factor is not None)
    return Reordered(text, factors) if is_same else None


def better_ordering(block: JoinBlock, known: Known, cursor: duckdb.DuckDBPyConnection) -> Ordering | None:
    """Return how a group is joined better; None where DuckDB's own order is good enough, or nobody knows."""
    has_queries = any(part.find(exp.Query) is not None for part in (*block.rest, *block.later))
    if has_queries or not is_worth_a_look(block.graph, known.tables, known.sees_bounds):
        return None
    choice = candidate(block.graph, cardinalities_of(block, known, cursor))
    return None if choice is None else _forced(block, choice, cursor)


def cardinalities_of(block: JoinBlock, known: Known, cursor: duckdb.DuckDBPyConnection) -> Cardinalities:
    """The estimates for a group; all of its tables have statistics."""
    evaluate = evaluate_with(cursor)
    return Cardinalities(block.graph, known.tables, evaluate, keys=known.keys, containment=known.containment)


def _forced(block: JoinBlock, choice: Choice, cursor: duckdb.DuckDBPyConnection) -> Ordering | None:
    """The best order, if DuckDB's own is much worse than what it makes of that one."""
    query = skeleton(block)
    own = join_plan(query, block, choice.cost, cursor)
    if own is None or not choice.is_promising(own.tree):
        return None
    schemas = {each.node.name.lower(): each.schema for each in block.sources}
    forced_blocks = join_blocks(query, schemas)
    if len(forced_blocks) != 1:
        return None
    rewrite(forced_blocks[0], choice.best.tree, _TARGET)
    forced = join_plan(query, block, choice.cost, cursor)
    if forced is None or not choice.is_better(own.tree, forced.tree):
        return None
    factor = choice.cost(own.tree) / max(1.0, choice.cost(forced.tree))
    return Ordering(forced, choice.best.tree, factor)

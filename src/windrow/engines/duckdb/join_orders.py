"""The order in which DuckDB joins: what it would do by itself, and the text of a query that has it do better.

DuckDB knows no distinct counts of Parquet files, and takes the range of a column for them. With statistics of our own,
its plan of the joins is read from EXPLAIN and compared with the best order. Where it is much worse, the query is
written anew; else, and wherever something is not wholly understood, it runs as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp
from sqlglot.errors import SqlglotError

from windrow.engines.duckdb.relations import Relation
from windrow.questions.explicit_order import Target, rewrite
from windrow.questions.join_blocks import JoinBlock, NotUnderstood, join_blocks
from windrow.questions.join_skeletons import skeleton
from windrow.questions.naming import Naming
from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_choice import Choice, candidate, is_large, is_worth_a_look
from windrow.statistics.join_graph import Filter, Join, JoinTree, joins_of, set_of
from windrow.statistics.keys import NO_KEYS, Column, Containment, DeclaredKeys, contained
from windrow.statistics.selectivity import Evaluate
from windrow.statistics.table_statistics import TableStatistics

__all__ = ["Known", "Reordered", "evaluate_with", "in_better_order", "reordered"]

_TARGET = Target(needs_barriers=True)
_SAMPLE = "windrow_sample_rows"
_MOST_ASSIGNMENTS = 5000
_LOOK = "join order"
_SKIPPED = 31
"""So many queries of a shape are not looked at again, after one that runs as it is: their values may be others."""


@dataclass(slots=True)
class _Look:
    """What came of a look at a query; its shape may be met again."""

    query: str
    text: str | None
    """The query in a better order; None where it runs as it is."""
    columns: Mapping[str, frozenset[str]]
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
    columns = {
        name: frozenset(filter(naming.refers_to, each.columns.names))
        for name, each in relations.items()
        if each.statistics is not None and not each.attributes
    }
    tables = statistics_of(relations, columns)
    better = reordered(tree, query, known_of(relations, tables), cursor) if tables else None
    return _Look(query, None if better is None else better.text, columns, tables, _SKIPPED)


def statistics_of(
    relations: Mapping[str, Relation], columns: Mapping[str, frozenset[str]]
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

    def containment(column: Column, other: Column) -> float | None:
        one, two = (sources[table].sketch(name) for table, name in (column, other))
        return None if one is None or two is None else contained(one, two)

    return Known(
        schemas,
        {name.lower(): table for name, table in tables.items()},
        containment=containment,
        sees_bounds=lambda column: sources[column[0]].shows_bounds(column[1]),
    )


def reordered(tree: exp.Expr, query: str, known: Known, cursor: duckdb.DuckDBPyConnection) -> Reordered | None:
    """Return a query with the same result in a better order; None where it runs as it is.

    `tree` is the query, parsed. The cursor finds its tables by the names that it has for them.
    """
    try:
        orders: dict[int, tuple[JoinTree, float]] = {}
        for number, block in enumerate(join_blocks(tree, known.schemas)):
            choice = _choice(block, known, cursor)
            factor = None if choice is None else _factor(block, choice, cursor)
            if choice is not None and factor is not None:
                orders[number] = choice.best.tree, factor
        return _written(tree, query, known, cursor, orders) if orders else None
    except (NotUnderstood, SqlglotError, RecursionError, duckdb.Error):
        return None


def _written(
    tree: exp.Expr,
    query: str,
    known: Known,
    cursor: duckdb.DuckDBPyConnection,
    orders: Mapping[int, tuple[JoinTree, float]],
) -> Reordered | None:
    """The query in these orders, if DuckDB takes it for one with the same columns."""
    copy, result = tree.copy(), cursor.sql(query)
    for number, block in enumerate(join_blocks(copy, known.schemas)):
        if number in orders:
            rewrite(block, orders[number][0], _TARGET, result.columns if block.select is copy else None)
    text = copy.sql("duckdb")
    other = cursor.sql(text)
    is_same = (other.columns, other.types) == (result.columns, result.types)
    return Reordered(text, tuple(factor for _, factor in orders.values())) if is_same else None


def _choice(block: JoinBlock, known: Known, cursor: duckdb.DuckDBPyConnection) -> Choice | None:
    has_queries = any(part.find(exp.Query) is not None for part in (*block.rest, *block.later))
    if has_queries or not is_worth_a_look(block.graph, known.tables, known.sees_bounds):
        return None
    evaluate = evaluate_with(cursor)
    cardinalities = Cardinalities(block.graph, known.tables, evaluate, keys=known.keys, containment=known.containment)
    return candidate(block.graph, cardinalities)


def _factor(block: JoinBlock, choice: Choice, cursor: duckdb.DuckDBPyConnection) -> float | None:
    """By how much DuckDB's order is worse than what it makes of ours; None where that is not enough."""
    own_query = skeleton(block)
    own = _explained(own_query, block, choice, cursor)
    if own is None or not choice.is_promising(own):
        return None
    schemas = {each.node.name.lower(): each.schema for each in block.sources}
    forced_blocks = join_blocks(own_query, schemas)
    if len(forced_blocks) != 1:
        return None
    rewrite(forced_blocks[0], choice.best.tree, _TARGET)
    forced = _explained(own_query, block, choice, cursor)
    if forced is None or not choice.is_better(own, forced):
        return None
    return choice.cost(own) / max(1.0, choice.cost(forced))


def _tables(block: JoinBlock) -> Iterator[tuple[int, Any]]:
    return iter(enumerate(block.graph.relations))


# ---- what DuckDB does by itself


@dataclass(frozen=True, slots=True)
class _Scan:
    """A leaf of a plan."""

    columns: frozenset[str]


def _explained(query: exp.Expr, block: JoinBlock, choice: Choice, cursor: duckdb.DuckDBPyConnection) -> JoinTree | None:
    """The tree of joins that DuckDB plans for a query of a group; None where it is none."""
    try:
        rows = cursor.execute(f"EXPLAIN (FORMAT json) {query.sql('duckdb')}").fetchall()
    except duckdb.Error:
        return None
    scans: list[_Scan] = []
    shape = _shape(json.loads(rows[0][1])[0], scans)
    return None if shape is None else _cheapest(shape, _assignments(scans, block), block, choice.cost)


def _shape(node: Mapping[str, Any], scans: list[_Scan]) -> JoinTree | None:
    """The joins of a plan over its leaves, by their number."""
    children = node["children"]
    if not children:
        columns = node["extra_info"].get("Projections", [])
        scans.append(_Scan(frozenset([columns] if isinstance(columns, str) else columns)))
        return len(scans) - 1
    sides = [_shape(child, scans) for child in children]
    if len(sides) == 1:
        return sides[0]
    left, right = sides if len(sides) == 2 and "JOIN" in node["name"] else (None, None)
    return None if left is None or right is None else Join(left, right)


def _assignments(scans: Sequence[_Scan], block: JoinBlock) -> Iterator[tuple[int, ...]]:
    """Which relation each leaf may be, by its columns: one table may stand in a query more than once."""
    if len(scans) != len(block.sources):
        return
    fitting = [
        [number for number, source in enumerate(block.sources) if scan.columns <= set(source.schema.names)]
        for scan in scans
    ]
    if np.prod([float(len(each)) for each in fitting]) <= _MOST_ASSIGNMENTS:
        yield from (each for each in product(*fitting) if len(set(each)) == len(each))


def _cheapest(
    shape: JoinTree, assignments: Iterator[tuple[int, ...]], block: JoinBlock, cost: Callable[[JoinTree], float]
) -> JoinTree | None:
    """The tree that the plan may be; of several the cheapest, so that DuckDB's order is not taken for a worse one."""
    trees = [_relabelled(shape, each) for each in assignments]
    return min((tree for tree in trees if _is_connected(tree, block)), key=cost, default=None)


def _is_connected(tree: JoinTree, block: JoinBlock) -> bool:
    return all(block.graph.between(set_of(join.left), set_of(join.right)) for join in joins_of(tree))


def _relabelled(tree: JoinTree, numbers: Sequence[int]) -> JoinTree:
    if isinstance(tree, Join):
        return Join(_relabelled(tree.left, numbers), _relabelled(tree.right, numbers))
    return numbers[tree]


# ---- conditions on samples


def evaluate_with(cursor: duckdb.DuckDBPyConnection) -> Evaluate:
    """Return an evaluator of conditions on samples, which are Arrow tables."""

    def evaluate(rows: pa.Table, filters: Sequence[Filter]) -> list[NDArray[np.bool_] | None]:
        if not filters:
            return []
        cursor.register(_SAMPLE, rows)
        try:
            return list(_masks(cursor, filters))
        except duckdb.Error:
            return [_mask(cursor, each) for each in filters]
        finally:
            cursor.unregister(_SAMPLE)

    return evaluate


def _mask(cursor: duckdb.DuckDBPyConnection, condition: Filter) -> NDArray[np.bool_] | None:
    try:
        return next(_masks(cursor, [condition]))
    except duckdb.Error:
        return None  # a value of the sample that the condition fails on says nothing of others


def _masks(cursor: duckdb.DuckDBPyConnection, filters: Sequence[Filter]) -> Iterator[NDArray[np.bool_]]:
    columns = ", ".join(f"coalesce(({each.sql}), false) AS m{number}" for number, each in enumerate(filters))
    found: pa.Table = cursor.sql(f"SELECT {columns} FROM {_SAMPLE}").to_arrow_table()
    for column in found.columns:
        yield column.to_numpy().astype(np.bool_)

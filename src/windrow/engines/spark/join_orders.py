"""The text of a query that has Spark join in a better order, with hints for what is broadcast.

Without statistics of a catalog Spark joins in the order as written, and broadcasts what has a small file. Text alone
changes that, so it works through Spark Connect too; adaptive execution goes on to change what it sees fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import duckdb
import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from windrow.engines.duckdb.join_orders import known_of, referred_columns, statistics_of
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.sample_conditions import evaluate_with
from windrow.questions.explicit_order import Target, rewrite
from windrow.questions.join_blocks import JoinBlock, NotUnderstood, join_blocks
from windrow.questions.naming import Naming
from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_choice import Choice, candidate, is_worth_a_look
from windrow.statistics.join_graph import JoinGraph, JoinTree
from windrow.statistics.join_order import with_small_builds, written_order
from windrow.statistics.selectivity import Evaluate
from windrow.statistics.table_statistics import TableStatistics

__all__ = ["MOST_BROADCAST_ROWS", "in_better_order_for_spark", "reordered_for_spark"]

MOST_BROADCAST_ROWS = 100_000
"""Fewer rows are sent to every executor."""


def in_better_order_for_spark(query: str, relations: Mapping[str, Relation], cursor: duckdb.DuckDBPyConnection) -> str:
    """Return a query in the SQL of Spark in the order of joins that statistics tell; as it is where none is better.

    Relations have the names that the query has for them. The cursor tries conditions on samples.
    """
    try:
        naming = Naming.of(parse_one(query, read="spark"))
    except (SqlglotError, RecursionError):
        return query
    columns = referred_columns(naming, relations)
    known = known_of(relations, statistics_of(relations, columns))
    return reordered_for_spark(query, known.schemas, known.tables, evaluate_with(cursor)) or query


def reordered_for_spark(
    query: str, schemas: Mapping[str, pa.Schema], tables: Mapping[str, TableStatistics], evaluate: Evaluate
) -> str | None:
    """Return a query in the SQL of Spark with the same result in a better order; None where it runs as it is.

    Names of tables are in lower case. `evaluate` tries conditions on samples; these are in the dialect of DuckDB.
    """
    try:
        tree = parse_one(query, read="spark")
        changed = [
            _reorder(block, choice)
            for block in join_blocks(tree, schemas)
            if (choice := _choice(block, tables, evaluate)) is not None
        ]
        return tree.sql("spark") if changed else None
    except (NotUnderstood, SqlglotError, RecursionError):
        return None


def _choice(block: JoinBlock, tables: Mapping[str, TableStatistics], evaluate: Evaluate) -> Choice | None:
    has_queries = any(part.find(exp.Query) is not None for part in (*block.rest, *block.later))
    if has_queries or not is_worth_a_look(block.graph, tables, lambda _: False):
        return None
    choice = candidate(block.graph, Cardinalities(block.graph, tables, evaluate))
    return choice if choice is not None and choice.is_promising(_own(block.graph, choice)) else None


def _own(graph: JoinGraph, choice: Choice) -> JoinTree:
    """The order of Spark: as written, and it knows which side of a join is smaller by then."""
    return with_small_builds(written_order(graph), choice.rows)


def _reorder(block: JoinBlock, choice: Choice) -> JoinTree:
    rewrite(block, choice.best.tree, Target(needs_barriers=False, is_broadcast=_is_small(choice)))
    return choice.best.tree


def _is_small(choice: Choice) -> Callable[[int], bool]:
    return lambda relations: choice.rows(relations) <= MOST_BROADCAST_ROWS

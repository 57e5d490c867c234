"""What an explanation tells of joins: estimated rows, and those that there were, where the query is run.

Rows are counted by queries of their own: what operators of a run return is less, as filters of later joins reach them.
Tables that nothing was learnt of are estimated from footers and dictionaries, for the explanation alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
from sqlglot.errors import SqlglotError

from windrow.engines.duckdb.join_orders import (
    Known,
    Ordering,
    better_ordering,
    cardinalities_of,
    known_of,
    referred_columns,
    statistics_of,
)
from windrow.engines.duckdb.join_plans import JoinPlan, join_plan
from windrow.engines.duckdb.relations import Relation
from windrow.engines.estimates import JoinEstimates, RowEstimate
from windrow.questions.join_blocks import JoinBlock, NotUnderstood, join_blocks
from windrow.questions.join_skeletons import counting_query, skeleton
from windrow.questions.naming import Naming
from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_graph import joins_of, members
from windrow.statistics.join_order import best_plan, cost_of
from windrow.statistics.q_errors import q_error
from windrow.statistics.table_statistics import TableStatistics

__all__ = ["EstimatedJoins", "estimated_joins"]

_Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class EstimatedJoins:
    """A group of joins of a query, before it runs."""

    block: JoinBlock
    cardinalities: Cardinalities
    ordering: Ordering

    def explained(self, count: _Count | None) -> JoinEstimates:
        """What an explanation tells; `count` gives the number that a query returns, if rows are to be counted."""
        plan = self.ordering.plan
        return JoinEstimates(
            is_reordered=self.ordering.wanted is not None,
            factor=self.ordering.factor,
            scans=tuple(self._rows(1 << number, count) for number in range(len(self.block.sources))),
            joins=tuple(self._rows(join.relations, count) for join in joins_of(plan.tree)),
        )

    def _rows(self, relations: int, count: _Count | None) -> RowEstimate:
        estimate = self.cardinalities.of(relations)
        actual = None if count is None else count(counting_query(self.block, relations).sql("duckdb"))
        return RowEstimate(
            tuple(self.block.sources[number].alias for number in members(relations)),
            estimate.rows,
            estimate.is_vague,
            self.ordering.plan.rows.get(relations),
            actual,
            None if actual is None else q_error(estimate.rows, actual),
        )


def estimated_joins(
    naming: Naming, relations: Mapping[str, Relation], cursor: duckdb.DuckDBPyConnection
) -> Sequence[EstimatedJoins]:
    """Return the groups of joins of a query whose rows can be estimated."""
    if naming.tree is None:
        return ()
    columns = referred_columns(naming, relations)
    known = known_of(relations, statistics_of(relations, columns))
    guessed = known_of(relations, _guessed(relations, columns))
    try:
        blocks = join_blocks(naming.tree, known.schemas)
        return [each for block in blocks for each in _estimated(block, known, guessed, cursor)]
    except (NotUnderstood, SqlglotError, RecursionError, duckdb.Error):
        return ()


def _estimated(
    block: JoinBlock, known: Known, guessed: Known, cursor: duckdb.DuckDBPyConnection
) -> Iterator[EstimatedJoins]:
    if not all(each.table in guessed.tables for each in block.graph.relations):
        return
    ordering = better_ordering(block, known, cursor)
    cardinalities = cardinalities_of(block, guessed, cursor)

    def rows(relations: int) -> float:
        return cardinalities.of(relations).rows

    if ordering is None:
        own = join_plan(skeleton(block), block, lambda tree: cost_of(tree, rows), cursor)
        ordering = Ordering(JoinPlan(best_plan(block.graph, rows).tree, {}) if own is None else own)
    yield EstimatedJoins(block, cardinalities, ordering)


def _guessed(relations: Mapping[str, Relation], columns: Mapping[str, tuple[str, ...]]) -> dict[str, TableStatistics]:
    """What was learnt of relations, with guesses for columns that nothing was learnt of."""
    found = {
        name: each.statistics.guessed(columns[name])
        for name, each in relations.items()
        if name in columns and each.statistics is not None
    }
    return {name: table for name, table in found.items() if table is not None}

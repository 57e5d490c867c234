"""Whether a query is worth another order of joins than the engine's own.

An order is forced only where our estimates say that the engine's own is much worse: by estimates that are not vague,
for joins that are large enough to pay for the look at them. Both orders are measured by the same costs, each with the
build sides that the engine really takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_graph import JoinGraph, JoinTree
from windrow.statistics.join_order import Plan, best_plan, cost_of
from windrow.statistics.keys import Column
from windrow.statistics.table_statistics import ColumnStatistics, TableStatistics

__all__ = ["Choice", "candidate", "is_dense", "is_large", "is_worth_a_look"]

LEAST_RELATIONS = 3
"""Two relations have one order, and engines know the smaller one."""
LEAST_ROWS = 2_000_000
"""Tables with fewer rows together are joined before an order could be chosen."""
DENSE = 8
"""Up to so many times their distinct values the range of a dense column is."""
LEAST_COST = 1_000_000.0
"""An order that costs less than so many rows is good enough."""
MUCH_WORSE = 1.42
"""The factor between the costs of the engine's order and of ours from which on ours is forced."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The best order of a graph, and what it is compared with."""

    best: Plan
    cardinalities: Cardinalities

    def cost(self, tree: JoinTree) -> float:
        """What a tree costs by our estimates, as it stands."""
        return cost_of(tree, self.rows)

    def rows(self, relations: int) -> float:
        """The estimated rows of a set of relations."""
        return self.cardinalities.of(relations).rows

    def is_promising(self, own: JoinTree) -> bool:
        """Whether the engine's order is much worse than the best one could be."""
        return self.cost(own) >= max(LEAST_COST, MUCH_WORSE * self.best.cost)

    def is_better(self, own: JoinTree, forced: JoinTree) -> bool:
        """Whether the engine's order is much worse than what the engine makes of ours."""
        return self.cost(own) >= max(LEAST_COST, MUCH_WORSE * self.cost(forced))


def is_worth_a_look(
    graph: JoinGraph, tables: Mapping[str, TableStatistics], sees_bounds: Callable[[Column], bool]
) -> bool:
    """Whether another order could save more than it costs to look for one.

    An engine that `sees_bounds` of a column takes its range for its distinct values, and orders dense keys well.
    """
    is_known = all(each.table in tables and not each.unknown_filters for each in graph.relations)
    if not is_known or len(graph.relations) < LEAST_RELATIONS:
        return False
    if not is_large(sum(tables[each.table].row_count for each in graph.relations)):
        return False
    joined = {(graph.relations[number].table, name) for each in graph.equalities for number, name in each.sides}
    return not all(sees_bounds((table, name)) and is_dense(tables[table].column(name)) for table, name in joined)


def is_large(rows: int) -> bool:
    """Whether joins of relations with so many rows take long enough for a look at them."""
    return rows >= LEAST_ROWS


def is_dense(column: ColumnStatistics) -> bool:
    """Whether the range of a column says about how many distinct values it has."""
    low, high, distinct = column.minimum, column.maximum, column.distinct
    if distinct is None or isinstance(low, bool) or not isinstance(low, int) or not isinstance(high, int):
        return False
    return high - low + 1 <= DENSE * distinct.highest


def candidate(graph: JoinGraph, cardinalities: Cardinalities) -> Choice | None:
    """Return the best order of a graph that may be worth forcing; None where the estimates are vague."""
    if cardinalities.of(graph.everything).is_vague:
        return None
    return Choice(best_plan(graph, lambda relations: cardinalities.of(relations).rows), cardinalities)

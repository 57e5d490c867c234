"""Whether a query is worth another order of joins than the engine's own.

An order is forced only where our estimates say that the engine's own is much worse: by estimates that are not vague,
for joins that are large enough to pay for the look at them. Both orders are measured by the same costs, each with the
build sides that the engine really takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_graph import JoinGraph, JoinTree
from windrow.statistics.join_order import Plan, best_plan, cost_of

__all__ = ["Choice", "candidate"]

LEAST_RELATIONS = 3
"""Two relations have one order, and engines know the smaller one."""
LEAST_COST = 1_000_000.0
"""Joins that cost less than so many rows are done before an order could be chosen."""
MUCH_WORSE = 1.35
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


def candidate(graph: JoinGraph, cardinalities: Cardinalities) -> Choice | None:
    """Return the best order of a graph that may be worth forcing; None where it is small, or the estimates vague."""
    if len(graph.relations) < LEAST_RELATIONS or any(each.unknown_filters for each in graph.relations):
        return None
    largest = max(cardinalities.filtered(number).rows for number in range(len(graph.relations)))
    if largest * 2 < LEAST_COST / 4 or cardinalities.of(graph.everything).is_vague:
        return None
    return Choice(best_plan(graph, lambda relations: cardinalities.of(relations).rows), cardinalities)

"""How far estimates of joins were off: the factor between estimated and true rows, for every join of a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_graph import JoinGraph, JoinTree, joins_of, members

__all__ = ["JoinError", "join_errors", "q_error"]


@dataclass(frozen=True, slots=True)
class JoinError:
    """One join: estimated and true rows."""

    relations: tuple[str, ...]
    estimated: float
    actual: int

    @property
    def q_error(self) -> float:
        """The factor between both."""
        return q_error(self.estimated, self.actual)


def q_error(estimated: float, actual: float) -> float:
    """Return the factor between estimated and true rows, 1 at the least; less than one row counts as one."""
    low, high = sorted((max(1.0, estimated), max(1.0, float(actual))))
    return high / low


def join_errors(
    graph: JoinGraph, tree: JoinTree, cardinalities: Cardinalities, count: Callable[[int], int]
) -> list[JoinError]:
    """Return the error of each join of a tree; `count` gives the true rows of a set of relations."""
    return [
        JoinError(
            tuple(graph.relations[number].alias for number in members(join.relations)),
            cardinalities.of(join.relations).rows,
            count(join.relations),
        )
        for join in joins_of(tree)
    ]

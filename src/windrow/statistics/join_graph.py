"""What a query joins, as values: relations with their filters, equalities between their columns, and trees of joins.

Relations are numbered in the order of the query, and a set of them is an integer with their bits. No SQL tree is in
here: a front end fills a graph, and estimates and orders are worked out from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from windrow.model.predicate import Predicate

__all__ = [
    "Equality",
    "Filter",
    "Join",
    "JoinGraph",
    "JoinTree",
    "Relation",
    "Residual",
    "joins_of",
    "members",
    "set_of",
]


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on the rows of one relation."""

    sql: str
    """The condition in the dialect of DuckDB, over names of columns without a table before them."""
    columns: tuple[str, ...]
    predicate: Predicate | None = None
    """What selects the same rows, where a predicate can say it."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table at one place of a query."""

    alias: str
    table: str
    filters: tuple[Filter, ...] = ()
    unknown_filters: int = 0
    """How many more conditions there are that nothing is known of, such as subqueries."""


@dataclass(frozen=True, slots=True)
class Equality:
    """Two columns of different relations that a join compares."""

    left: int
    left_column: str
    right: int
    right_column: str
    is_implied: bool = False
    """Whether it follows from other equalities, and is not written in the query."""

    @property
    def sides(self) -> tuple[tuple[int, str], tuple[int, str]]:
        """Relation and column of both sides."""
        return (self.left, self.left_column), (self.right, self.right_column)


@dataclass(frozen=True, slots=True)
class Residual:
    """A condition on columns of several relations that is no equality of two columns."""

    relations: int
    condition: Filter
    """Its columns are `number.name`, with the number of the relation."""
    branches: tuple[tuple[tuple[int, Filter], ...], ...] = ()
    """What each branch of an OR demands of single relations, where it demands nothing else; else empty."""


@dataclass(frozen=True)
class JoinGraph:
    """Relations that inner joins connect; their order is free."""

    relations: tuple[Relation, ...]
    equalities: tuple[Equality, ...]
    residuals: tuple[Residual, ...] = ()

    @property
    def everything(self) -> int:
        """The set of all relations."""
        return (1 << len(self.relations)) - 1

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """For each relation the set of those that an equality connects with it."""
        found = [0] * len(self.relations)
        for each in self.equalities:
            found[each.left] |= 1 << each.right
            found[each.right] |= 1 << each.left
        return tuple(found)

    @cached_property
    def classes(self) -> dict[tuple[int, str], int]:
        """The number of the class of each joined column: columns that equalities make equal share one."""
        parent: dict[tuple[int, str], tuple[int, str]] = {}

        def root(column: tuple[int, str]) -> tuple[int, str]:
            while parent.setdefault(column, column) != column:
                column = parent[column]
            return column

        for each in self.equalities:
            left, right = map(root, each.sides)
            parent[left] = right
        numbers: dict[tuple[int, str], int] = {}
        return {column: numbers.setdefault(root(column), len(numbers)) for column in list(parent)}

    def neighbours_of(self, relations: int) -> int:
        """The set of relations outside that an equality connects with some inside."""
        found = 0
        for number in members(relations):
            found |= self.neighbours[number]
        return found & ~relations

    def is_connected(self, relations: int) -> bool:
        """Whether equalities connect all of the relations with each other."""
        reached = relations & -relations
        while more := self.neighbours_of(reached) & relations:
            reached |= more
        return reached == relations

    def between(self, left: int, right: int) -> tuple[Equality, ...]:
        """The equalities that a join of two sets compares: those written, or implied ones where none is."""
        crossing = [each for each in self.equalities if _crosses(each, left, right)]
        written = [each for each in crossing if not each.is_implied]
        covered = {self.classes[each.sides[0]] for each in written}
        for each in crossing:
            if each.is_implied and self.classes[each.sides[0]] not in covered:
                covered.add(self.classes[each.sides[0]])
                written.append(each)
        return tuple(written)

    def residuals_between(self, left: int, right: int) -> tuple[Residual, ...]:
        """The other conditions that can be looked at once both sets are joined, and not before."""
        both = left | right
        return tuple(
            each for each in self.residuals if _fits(each.relations, both) and not _is_earlier(each, left, right)
        )


@dataclass(frozen=True, slots=True)
class Join:
    """A join of two trees; the right one is built, the left one probes it."""

    left: JoinTree
    right: JoinTree

    @property
    def relations(self) -> int:
        """The set of relations in it."""
        return set_of(self.left) | set_of(self.right)


JoinTree: TypeAlias = Join | int
"""A relation by its number, or a join."""


def set_of(tree: JoinTree) -> int:
    """Return the set of relations of a tree."""
    return tree.relations if isinstance(tree, Join) else 1 << tree


def joins_of(tree: JoinTree) -> Iterator[Join]:
    """Yield the joins of a tree, inner ones first."""
    if isinstance(tree, Join):
        yield from joins_of(tree.left)
        yield from joins_of(tree.right)
        yield tree


def members(relations: int) -> Iterator[int]:
    """Yield the numbers of the relations in a set, in their order."""
    while relations:
        least = relations & -relations
        yield least.bit_length() - 1
        relations ^= least


def _crosses(equality: Equality, left: int, right: int) -> bool:
    one, other = 1 << equality.left, 1 << equality.right
    return bool((one & left and other & right) or (one & right and other & left))


def _fits(relations: int, inside: int) -> bool:
    return relations & ~inside == 0


def _is_earlier(residual: Residual, left: int, right: int) -> bool:
    return _fits(residual.relations, left) or _fits(residual.relations, right)

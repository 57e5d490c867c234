"""How many rows a join of some relations has, whatever the order in which they are joined.

Filtered relations are joined one after the other in an order of their own, so that a set of relations has one estimate.
A relation whose joined columns have a key leaves for each row that joins it at most one; else the side with more
distinct values decides, corrected by the values that the samples show to be frequent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.statistics.join_graph import Filter, JoinGraph, Residual, members
from windrow.statistics.keys import NO_KEYS, Containment, DeclaredKeys, primary_key
from windrow.statistics.selectivity import Evaluate, Share, evaluate_predicates, selected_share
from windrow.statistics.table_statistics import TableStatistics

__all__ = ["Cardinalities", "Estimate"]

_PAIRED_ROWS = 256
"""So many rows of each of two samples are paired, where a condition compares them."""
_FREQUENT = 0.02
"""A value that this share of a sample has is frequent."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated rows."""

    rows: float
    is_vague: bool = False


class Cardinalities:
    """Estimates for the sets of relations of one graph."""

    def __init__(
        self,
        graph: JoinGraph,
        tables: Mapping[str, TableStatistics],
        evaluate: Evaluate = evaluate_predicates,
        *,
        keys: DeclaredKeys = NO_KEYS,
        containment: Containment = lambda _, __: None,
    ) -> None:
        self._graph = graph
        self._tables = [tables[each.table] for each in graph.relations]
        self._evaluate = evaluate
        self._containment = containment
        self._shares = [
            _relation_share(each.unknown_filters, selected_share(table, each.filters, evaluate))
            for each, table in zip(graph.relations, self._tables, strict=True)
        ]
        self._keys = [self._key(number, keys) for number in range(len(graph.relations))]
        self._compared = [self._comparisons(number) for number in range(len(graph.relations))]
        self._residual_shares = {each: self._residual_share(each) for each in graph.residuals}
        self._known: dict[int, Estimate] = {}

    def of(self, relations: int) -> Estimate:
        """Return the estimated rows of the join of a set of relations, with all conditions that fit into it."""
        if relations not in self._known:
            self._known[relations] = self._joined(relations)
        return self._known[relations]

    def filtered(self, number: int) -> Estimate:
        """Return the estimated rows of one relation that its filters leave."""
        share = self._shares[number]
        return Estimate(self._tables[number].row_count * share.value, share.is_vague)

    # ---- one relation

    def _key(self, number: int, declared: DeclaredKeys) -> tuple[str, ...] | None:
        table = self._tables[number]
        joined = {column for each in self._graph.equalities for at, column in each.sides if at == number}
        ordered = [name for name in table.columns if name in joined]
        return primary_key(self._graph.relations[number].table, table, ordered, declared)

    def _distinct(self, number: int, column: str) -> Estimate:
        """Distinct values of a column of the whole table; where they are unknown, as many as rows."""
        table = self._tables[number]
        count = table.column(column).distinct
        rows = max(1.0, float(table.row_count))
        return (
            Estimate(rows, is_vague=True)
            if count is None
            else Estimate(min(rows, max(1.0, count.estimate)), count.is_vague)
        )

    def _values(self, number: int, column: str) -> float:
        """The share of rows that have a value in a column."""
        table = self._tables[number]
        return 1 - min(1.0, (table.column(column).null_count or 0) / max(1, table.row_count))

    # ---- sets of relations

    def _joined(self, relations: int) -> Estimate:
        order = sorted(members(relations), key=lambda each: (-self._tables[each].row_count, each))
        done, rows, is_vague = 0, 1.0, False
        while order:
            number = next((each for each in order if self._graph.neighbours[each] & done), order[0])
            order.remove(number)
            filtered, share = self.filtered(number), self._join_share(done, number)
            rows *= filtered.rows * share.value
            is_vague = is_vague or filtered.is_vague or share.is_vague
            done |= 1 << number
        for each in self._graph.residuals:
            if each.relations & ~relations == 0:
                rows *= self._residual_shares[each].value
                is_vague = is_vague or self._residual_shares[each].is_vague
        return Estimate(rows, is_vague)

    def _join_share(self, done: int, number: int) -> Share:
        """The share of pairs of rows that a relation leaves when it is joined to others."""
        pairs = self._pairs(done, number)
        if not pairs:
            return Share(1.0)
        values = prod(self._values(number, mine) * self._values(*theirs[0]) for mine, theirs in pairs.items())
        base = self._key_share(number, pairs) or self._distinct_share(number, pairs)
        return Share(base.value * values, base.is_vague)

    def _pairs(self, done: int, number: int) -> dict[str, list[tuple[int, str]]]:
        """Each class that a relation shares with others: its own column, and their columns."""
        found: dict[str, list[tuple[int, str]]] = {}
        for column, others in self._compared[number].items():
            theirs = [each for each in others if 1 << each[0] & done]
            if theirs:
                found[column] = theirs
        return found

    def _comparisons(self, number: int) -> dict[str, list[tuple[int, str]]]:
        """One column for each class that a relation takes part in, with those of others, fewest values first."""
        classes = self._graph.classes
        own = {which: column for (relation, column), which in reversed(classes.items()) if relation == number}
        return {
            column: sorted(
                (each for each, other in classes.items() if other == which and each[0] != number),
                key=lambda each: self._distinct(*each).rows,
            )
            for which, column in own.items()
        }

    def _key_share(self, number: int, pairs: Mapping[str, Sequence[tuple[int, str]]]) -> Share | None:
        """The share where the key of one side is compared; the other side has no more different values than it."""
        sides = [(number, tuple(pairs))]
        for owner in {relation for theirs in pairs.values() for relation, _ in theirs}:
            owned = [next((name for at, name in theirs if at == owner), None) for theirs in pairs.values()]
            sides.append((owner, tuple(name for name in owned if name is not None)))
        keyed = [side for side in sides if self._keys[side[0]] and set(self._keys[side[0]] or ()) <= set(side[1])]
        if not keyed:
            return None
        key_side, _ = min(keyed, key=lambda side: self._tables[side[0]].row_count)
        covered, left = self._covered(key_side, number, pairs)
        share = self._covered_share(key_side, number, covered)
        return share.times(self._distinct_share(number, left)) if left else share

    def _covered(
        self, key_side: int, number: int, pairs: Mapping[str, Sequence[tuple[int, str]]]
    ) -> tuple[dict[str, Sequence[tuple[int, str]]], dict[str, Sequence[tuple[int, str]]]]:
        """The pairs that compare columns of the key, and those beside it."""
        key = self._keys[key_side] or ()
        covered: dict[str, Sequence[tuple[int, str]]] = {}
        left: dict[str, Sequence[tuple[int, str]]] = {}
        for mine, theirs in pairs.items():
            is_of_key = mine in key if key_side == number else any((key_side, name) in theirs for name in key)
            (covered if is_of_key else left)[mine] = theirs
        return covered, left

    def _covered_share(self, key_side: int, number: int, pairs: Mapping[str, Sequence[tuple[int, str]]]) -> Share:
        """The share where a whole key is compared: one row of it, for each row of the other side."""
        rows = float(max(1, self._tables[key_side].row_count))
        if len(pairs) > 1:
            return Share(1 / rows)
        (mine, theirs), *_ = pairs.items()
        counts = [self._distinct(number, mine), self._distinct(*theirs[0])]
        most = max(rows, *(each.rows for each in counts if not each.is_vague), 1.0)
        return Share((self._containment_of(key_side, number, mine, theirs[0]) if most == rows else 1.0) / most)

    def _containment_of(self, key_side: int, number: int, mine: str, theirs: tuple[int, str]) -> float:
        """Which share of the values on the other side the key has; all of them, where that is unknown."""
        own = (self._graph.relations[number].table, mine)
        other = (self._graph.relations[theirs[0]].table, theirs[1])
        side, key = (other, own) if key_side == number else (own, other)
        share = None if side == key else self._containment(side, key)
        return 1.0 if share is None or share > _SURELY_CONTAINED else max(share, 0.01)

    def _distinct_share(self, number: int, pairs: Mapping[str, Sequence[tuple[int, str]]]) -> Share:
        """The share where no key takes part: by the greater number of distinct values, and by frequent ones."""
        if len(pairs) == 1:
            (mine, theirs), *_ = pairs.items()
            left, right = self._distinct(number, mine), self._distinct(*theirs[0])
            even = Share(1 / max(left.rows, right.rows), left.is_vague or right.is_vague)
            skewed = self._frequent_share((number, mine), theirs[0], max(left.rows, right.rows))
            return even if skewed is None else replace(even, value=max(even.value, skewed))
        mine_all = [self._distinct(number, mine) for mine in pairs]
        theirs_all = [self._distinct(*theirs[0]) for theirs in pairs.values()]
        owners = {theirs[0][0] for theirs in pairs.values()}
        together = min(prod(each.rows for each in mine_all), float(self._tables[number].row_count))
        others = prod(each.rows for each in theirs_all)
        if len(owners) == 1:
            others = min(others, float(self._tables[owners.pop()].row_count))
        return Share(1 / max(together, others, 1.0), any(each.is_vague for each in (*mine_all, *theirs_all)))

    def _frequent_share(self, one: tuple[int, str], other: tuple[int, str], distinct: float) -> float | None:
        """The share of pairs that are equal, by the values that are frequent in the samples of both sides."""
        left, right = (_frequencies(self._tables[number].sampled([column]), column) for number, column in (one, other))
        both = [value for value in left if value in right]
        if not both:
            return None
        rest_left, rest_right = (1 - sum(side[value] for value in both) for side in (left, right))
        return sum(left[value] * right[value] for value in both) + rest_left * rest_right / max(
            1.0, distinct - len(both)
        )

    # ---- conditions on several relations

    def _residual_share(self, residual: Residual) -> Share:
        """What a condition selects among pairs of rows of two samples."""
        if residual.branches:
            return self._branched_share(residual)
        numbers = list(members(residual.relations))
        rows = self._paired(numbers, residual.condition)
        if rows is None:
            return Share(1.0, is_vague=True)
        (mask,) = self._evaluate(rows, [residual.condition])
        # Filters of the relations have been applied already, and may say a part of the condition.
        return Share(1.0, is_vague=True) if mask is None else Share(max(float(mask.sum()), 0.5) / len(mask))

    def _branched_share(self, residual: Residual) -> Share:
        """The branches of an OR, by what each demands of single relations, whose filters have been applied already."""
        sum_, is_vague = 0.0, False
        for branch in residual.branches:
            product_ = 1.0
            for number in {number for number, _ in branch}:
                filters = [each for at, each in branch if at == number]
                share = selected_share(self._tables[number], filters, self._evaluate)
                product_ *= min(1.0, share.value / max(self._shares[number].value, 1e-12))
                is_vague = is_vague or share.is_vague
            sum_ += product_
        return Share(min(1.0, sum_), is_vague)

    def _paired(self, numbers: Sequence[int], condition: Filter) -> pa.Table | None:
        """Rows of two samples that pass the filters of their relations, each with each."""
        if len(numbers) != 2:
            return None
        sides = [side for number in numbers if (side := self._passing(number, condition)) is not None and side.num_rows]
        if len(sides) < 2:
            return None
        places = np.array(list(product(*(range(side.num_rows) for side in sides))), dtype=np.int64)
        columns: dict[str, Any] = {}
        for at, (number, side) in enumerate(zip(numbers, sides, strict=True)):
            for name in side.column_names:
                columns[f"{number}.{name}"] = side.column(name).take(pa.array(places[:, at]))
        return pa.table(columns)

    def _passing(self, number: int, condition: Filter) -> pa.Table | None:
        names = [name.partition(".")[2] for name in condition.columns if name.startswith(f"{number}.")]
        filters = self._graph.relations[number].filters
        sample = self._tables[number].sampled([*names, *(name for each in filters for name in each.columns)])
        if sample is None:
            return None
        masks = [mask for mask in self._evaluate(sample, filters) if mask is not None] if filters else []
        if masks:
            sample = sample.filter(pa.array(np.logical_and.reduce(masks)))
        return sample.select(list(dict.fromkeys(names))).slice(0, _PAIRED_ROWS)


_SURELY_CONTAINED = 0.9


def _relation_share(unknown_filters: int, share: Share) -> Share:
    return Share(share.value, is_vague=True) if unknown_filters else share


def _frequencies(sample: pa.Table | None, column: str) -> dict[Any, float]:
    """The values that a good share of the sample has, with their share."""
    if sample is None:
        return {}
    counts = pc.value_counts(sample.column(column).combine_chunks())
    least = max(8, int(_FREQUENT * sample.num_rows))
    frequent = counts.filter(pc.greater_equal(counts.field("counts"), least)).to_pylist()
    return {each["values"]: each["counts"] / sample.num_rows for each in frequent if each["values"] is not None}

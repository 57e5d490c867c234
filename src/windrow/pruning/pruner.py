"""One evaluator for predicates over bounds, whatever the units are: splits, row groups, granules or samples.

A unit is skipped only on proof: a column without bounds, a type or a literal that is not understood prove nothing.
Nulls follow SQL: a unit may match when one of its rows can make the whole predicate true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from windrow.model.operators import operator_of
from windrow.model.predicate import And, Not, Or, Predicate, columns_of, negation_normal_form
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.selection import Selection, select
from windrow.pruning.types import ColumnType

__all__ = ["BoundsOf", "Holds", "Pruner", "Verdict", "compile_predicate"]

BoundsOf: TypeAlias = Callable[[str], Bounds | None]
"""The bounds of a column over all units; None without any. Called for the columns of a predicate alone."""

Holds: TypeAlias = Callable[[str, tuple[Any, ...]], Mask]
"""By column and stored values: units that may hold one of the values, as a bloom filter tells."""


class Verdict(NamedTuple):
    """What is proven of each unit."""

    may_match: Mask
    """False where no row matches."""
    all_match: Mask
    """True where every row matches."""


class _Units(NamedTuple):
    """What there is to judge."""

    size: int
    bounds_of: BoundsOf
    holds: Holds | None

    def unproven(self) -> Verdict:
        return Verdict(np.ones(self.size, bool), np.zeros(self.size, bool))


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A question about values that bounds cannot answer; but a null is never the answer to it."""

    column: str

    def judge(self, units: _Units) -> Verdict:
        bounds, verdict = units.bounds_of(self.column), units.unproven()
        return verdict if bounds is None else verdict._replace(may_match=~bounds.all_null)


@dataclass(frozen=True, slots=True)
class _Nulls:
    """Whether a column is null, or whether it is not."""

    column: str
    wanted: bool

    def judge(self, units: _Units) -> Verdict:
        bounds = units.bounds_of(self.column)
        if bounds is None:
            return units.unproven()
        if self.wanted:
            return Verdict(~bounds.null_free, bounds.all_null)
        return Verdict(~bounds.all_null, bounds.null_free)


@dataclass(frozen=True, slots=True)
class _Values:
    """Whether the value of a column is selected."""

    selection: Selection

    def judge(self, units: _Units) -> Verdict:
        selection = self.selection
        bounds = units.bounds_of(selection.column)
        if bounds is None:
            return units.unproven()
        may, whole = selection.judge(bounds)
        if units.holds is not None and selection.points is not None:
            may &= units.holds(selection.column, selection.points)
        return Verdict(may, whole)


@dataclass(frozen=True, slots=True)
class _Parts:
    """All of the parts, or at least one of them."""

    parts: tuple[_Node, ...]
    needs_all: bool

    def judge(self, units: _Units) -> Verdict:
        join = np.logical_and if self.needs_all else np.logical_or
        may, whole = np.full(units.size, self.needs_all), np.full(units.size, self.needs_all)
        for part in self.parts:
            verdict = part.judge(units)
            join(may, verdict.may_match, out=may)
            join(whole, verdict.all_match, out=whole)
            if self.needs_all and not may.any():
                return Verdict(may, may)
        return Verdict(may, whole)


_Node: TypeAlias = _Unknown | _Nulls | _Values | _Parts


class Pruner:
    """A compiled predicate; use it for any number of files whose columns have these types."""

    def __init__(self, root: _Node) -> None:
        self._root = root
        self.required = tuple(_required(root))
        """Selections that every matching row meets."""
        self.point_columns = frozenset(each.column for each in _selections(root) if each.points is not None)
        """Columns with tests for single values, where a bloom filter can help."""

    def judge(self, count: int, bounds_of: BoundsOf, holds: Holds | None = None) -> Verdict:
        """Judge so many units by their bounds, and by filters where there are some."""
        return self._root.judge(_Units(count, bounds_of, holds))


def compile_predicate(predicate: Predicate, types: Mapping[str, ColumnType]) -> Pruner:
    """Work out once what a predicate asks of columns of these types; a column without a type proves nothing."""
    return Pruner(_compiled(negation_normal_form(predicate), types))


def _compiled(predicate: Predicate, types: Mapping[str, ColumnType]) -> _Node:
    match predicate:
        case And(parts):
            return _Parts(_ordered(parts, types), needs_all=True)
        case Or(parts):
            return _Parts(_ordered(parts, types), needs_all=False)
        case Not():
            wants_null = None
        case _:
            wants_null = operator_of(predicate).wants_null
    (column,) = columns_of(predicate)
    if wants_null is not None:
        return _Nulls(column, wants_null)
    selection = select(predicate, types)
    return _Unknown(column) if selection is None else _Values(selection)


def _ordered(parts: tuple[Predicate, ...], types: Mapping[str, ColumnType]) -> tuple[_Node, ...]:
    """The parts, those last that compare Python objects: others may leave nothing for them to do."""
    nodes = [_compiled(part, types) for part in parts]
    return tuple(sorted(nodes, key=lambda node: any(each.cuts.dtype.kind == "O" for each in _selections(node))))


def _selections(node: _Node) -> list[Selection]:
    if isinstance(node, _Parts):
        return [each for part in node.parts for each in _selections(part)]
    return [node.selection] if isinstance(node, _Values) else []


def _required(node: _Node) -> list[Selection]:
    if isinstance(node, _Parts) and node.needs_all:
        return [each for part in node.parts for each in _required(part)]
    return [node.selection] if isinstance(node, _Values) else []

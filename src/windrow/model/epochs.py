"""Schema epochs: a column that got a type which its older values do not have, and how these are read since."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from windrow.model.predicate import And, Or, Predicate, columns_of, negation_normal_form

__all__ = ["OldColumn", "OldColumns", "OldValues", "SchemaHistory", "TypeChange", "stored_predicate"]


class OldValues(StrEnum):
    """How values that were written before a change of type are read after it."""

    CAST = "cast"
    """Every value is converted exactly; the change is refused while there is one that cannot be."""
    CAST_OR_NULL = "cast_or_null"
    """A value is converted exactly, or reads as null."""
    NULL = "null"
    """All read as null."""


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A column that got another type, and the epoch that began with it."""

    epoch: int
    since_version: int
    column: str
    rule: OldValues


@dataclass(frozen=True, slots=True)
class OldColumn:
    """How a column of files of an earlier epoch is read."""

    type: pa.DataType
    """What the column was in that epoch."""
    steps: tuple[tuple[OldValues, pa.DataType], ...]
    """What happened to it since, oldest first: the rule, and the type that it got."""
    residual: str | None = None
    """The column of maps that rows of that epoch may keep the value in instead; the value is text there."""
    readings: tuple[str, ...] = ()
    """SQL by which DuckDB makes the value, one after the other, where no rule does; the last has the newest type."""
    stored_test: Callable[[Predicate], Predicate | None] | None = None
    """Makes of a test of the value one of what files have, that every selected row meets; None where there is none.

    The test has no others inside, but for Not before StartsWith."""


OldColumns = Mapping[int, Mapping[str, OldColumn]]
"""By epoch: the columns that have another type since."""


@dataclass(frozen=True, slots=True)
class SchemaHistory:
    """The epochs of a table up to one version."""

    epoch: int = 0
    types: Mapping[int, Mapping[str, pa.DataType]] = field(default_factory=dict)
    """By epoch, columns and their types; of a table that never changed a type, nothing."""
    changes: tuple[TypeChange, ...] = ()

    def old_columns(self) -> dict[int, dict[str, OldColumn]]:
        """Return the columns of each earlier epoch that have another type since."""
        return {epoch: dict(self._changed_since(epoch)) for epoch in range(self.epoch)}

    def _changed_since(self, epoch: int) -> dict[str, OldColumn]:
        before = self.types.get(epoch, {})
        steps: dict[str, list[tuple[OldValues, pa.DataType]]] = {}
        for change in sorted(self.changes, key=lambda each: each.epoch):
            if epoch < change.epoch <= self.epoch and change.column in before:
                steps.setdefault(change.column, []).append((change.rule, self.types[change.epoch][change.column]))
        return {name: OldColumn(before[name], tuple(taken)) for name, taken in steps.items()}


def stored_predicate(predicate: Predicate | None, old: Mapping[str, OldColumn]) -> Predicate | None:
    """Return what a predicate demands of the values that files have: no less than is true of every row it selects."""
    if predicate is None or columns_of(predicate).isdisjoint(old):
        return predicate
    return _stored(negation_normal_form(predicate), old)


def _stored(predicate: Predicate, old: Mapping[str, OldColumn]) -> Predicate | None:
    match predicate:
        case And(parts):
            left = [each for part in parts if (each := _stored(part, old)) is not None]
            return And(tuple(left)) if len(left) > 1 else left[0] if left else None
        case Or(parts):
            any_of = [_stored(part, old) for part in parts]
            left = [each for each in any_of if each is not None]
            return Or(tuple(left)) if len(left) == len(any_of) else None
    changed = [old[name] for name in columns_of(predicate) if name in old]
    if not changed:
        return predicate
    return None if changed[0].stored_test is None else changed[0].stored_test(predicate)

"""Keys that tables seem to have: primary keys by distinct counts and the sample, foreign keys by containment.

Only columns that joins compare matter, in the order of the table, as keys stand first. One column whose values are as
many as the rows is a key, else a pair of which the sample has no row twice. Keys that the user declares win.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

import pyarrow as pa

from windrow.statistics.sketch import Sketch, united
from windrow.statistics.table_statistics import TableStatistics

__all__ = [
    "Column",
    "Containment",
    "DeclaredKeys",
    "ForeignKey",
    "contained",
    "contained_share",
    "foreign_key",
    "primary_key",
]

Column: TypeAlias = tuple[str, str]
"""A table and one of its columns."""
Containment: TypeAlias = Callable[[Column, Column], float | None]
"""Gives the share of the distinct values of one column that are among those of another; None when it is unknown."""

_SLACK = 0.02
"""So far below the row count a distinct count may lie, besides its error."""
_CONTAINED = 0.8
"""From this share on values are contained: the error of three sketches takes part."""
_FEWEST = 32
"""A sample of fewer rows says nothing of pairs."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """Columns of one table whose values are among the key of another."""

    table: str
    columns: tuple[str, ...]
    key_table: str
    key_columns: tuple[str, ...]
    share: float = 1.0
    """Which share of the distinct values the key has."""


@dataclass(frozen=True, slots=True)
class DeclaredKeys:
    """Keys that the user names; they are believed, even where statistics say otherwise."""

    primary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the key, by table."""
    foreign: tuple[ForeignKey, ...] = ()


NO_KEYS = DeclaredKeys()


def primary_key(
    name: str, table: TableStatistics, joined: Sequence[str], declared: DeclaredKeys = NO_KEYS
) -> tuple[str, ...] | None:
    """Return the key that a table seems to have among the columns that joins compare, in the order of the table."""
    if name in declared.primary:
        return declared.primary[name]
    for column in joined:
        if _is_unique(table, column):
            return (column,)
    return next((pair for pair in combinations(joined, 2) if _is_unique_pair(table, pair)), None)


def _is_unique(table: TableStatistics, name: str) -> bool:
    """Whether the values of a column are as many as the rows."""
    column = table.column(name)
    if column.distinct is None or column.distinct.is_vague or column.null_count:
        return False
    if column.distinct.is_exact:
        return column.distinct.estimate >= table.row_count
    return column.distinct.highest >= table.row_count * (1 - _SLACK) and not _repeats(table, (name,))


def _is_unique_pair(table: TableStatistics, pair: tuple[str, str]) -> bool:
    """Whether a value of the one column together with one of the other selects almost only one row."""
    counts = [table.column(name).distinct for name in pair]
    if any(count is None or count.is_vague for count in counts):
        return False
    product = counts[0].highest * counts[1].highest  # type: ignore[union-attr]
    sample = table.sampled(pair)
    has_rows = sample is not None and (sample.num_rows >= _FEWEST or table.is_whole_sample)
    return product >= table.row_count and has_rows and not _repeats(table, pair)


def _repeats(table: TableStatistics, names: Sequence[str]) -> bool:
    """Whether the sample has two rows with the same values in these columns."""
    sample = table.sampled(names)
    return sample is not None and _distinct_rows(sample.select(list(names))) < sample.num_rows


def _distinct_rows(rows: pa.Table) -> int:
    count: int = rows.group_by(rows.column_names, use_threads=False).aggregate([]).num_rows
    return count


def foreign_key(
    side: tuple[str, tuple[str, ...]],
    key: tuple[str, tuple[str, ...]],
    containment: Containment,
    declared: DeclaredKeys = NO_KEYS,
) -> ForeignKey | None:
    """Return the foreign key from columns of one table to the key of another, if their values are contained."""
    (table, columns), (key_table, key_columns) = side, key
    for each in declared.foreign:
        if (each.table, each.columns, each.key_table, each.key_columns) == (table, columns, key_table, key_columns):
            return each
    shares = [
        contained_share((table, a), (key_table, b), containment) for a, b in zip(columns, key_columns, strict=True)
    ]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares) or not known or min(known) < _CONTAINED:
        return None
    return ForeignKey(table, columns, key_table, key_columns, min(known))


def contained(sketch: Sketch, other: Sketch) -> float:
    """Return the share of the values of one sketch that another one has too."""
    shared = sketch.estimate + other.estimate - united([sketch, other]).estimate
    return max(0.0, min(1.0, shared / max(1.0, sketch.estimate)))


def contained_share(column: Column, other: Column, containment: Containment) -> float | None:
    """Return the share of a column's distinct values that are among another's, between 0 and 1."""
    share = containment(column, other)
    return None if share is None else max(0.0, min(1.0, share))

"""What is known of a table: rows, distinct values, nulls and bounds of its columns, and one sample of whole rows.

These are values without files. The collector makes them from sketches, samples and synopses; estimates, keys and join
orders are worked out from them. Whatever is unknown is None or missing, and an estimate that has only a weak reason is
vague. Wrong statistics may cost time and never rows: nothing here decides which rows a query returns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ColumnStatistics", "DistinctCount", "TableStatistics", "exact_statistics"]


@dataclass(frozen=True, slots=True)
class DistinctCount:
    """How many different values a column has; nulls are not counted, all NaNs are one value."""

    estimate: float
    error: float = 0.0
    """The relative standard error; 0 for an exact count."""
    is_exact: bool = False
    is_vague: bool = False
    """Whether it is a guess from dictionary sizes, bounds or row counts, made before any sketch exists."""

    @property
    def highest(self) -> float:
        """The greatest count that is within two standard errors."""
        return self.estimate * (1 + 2 * self.error)

    @property
    def lowest(self) -> float:
        """The least count that is within two standard errors."""
        return self.estimate * max(0.0, 1 - 2 * self.error)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """What is known of one column."""

    distinct: DistinctCount | None = None
    null_count: int | None = None
    minimum: Any = None
    """A value of Python that no value of the column is less than; nulls and NaN do not count; None when unknown."""
    maximum: Any = None


UNKNOWN = ColumnStatistics()
"""A column that no query has touched."""


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """What is known of one table, at one version."""

    row_count: int
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    """By name, as the table spells it; columns without statistics are missing."""
    sample: pa.Table | None = None
    """Rows that were drawn evenly, whole: a row of the sample is a row of the table. Columns may be missing."""

    def column(self, name: str) -> ColumnStatistics:
        """The statistics of a column; those of an unknown column know nothing."""
        return self.columns.get(name, UNKNOWN)

    def sampled(self, names: Sequence[str]) -> pa.Table | None:
        """The sample, if it has rows and all of these columns."""
        sample = self.sample
        has_all = sample is not None and sample.num_rows > 0 and set(names) <= set(sample.column_names)
        return sample if has_all else None

    @property
    def is_whole_sample(self) -> bool:
        """Whether the sample is the table."""
        return self.sample is not None and self.sample.num_rows == self.row_count


def exact_statistics(table: pa.Table, positions: Sequence[int] = ()) -> TableStatistics:
    """Return the statistics of a table in memory by looking at every value; the sample has the rows at `positions`."""
    columns = {name: _exact_column(table.column(name)) for name in table.column_names}
    return TableStatistics(table.num_rows, columns, table.take(pa.array(sorted(positions), pa.int64())))


def _exact_column(column: pa.ChunkedArray) -> ColumnStatistics:
    if pa.types.is_nested(column.type):
        return ColumnStatistics(null_count=column.null_count)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_floating = pa.types.is_floating(column.type)
    if is_floating:
        column = pc.add(column.cast(pa.float64()), 0.0)  # one zero of the two
    values = pc.unique(column.drop_null())
    bounded, has_nan = values, False
    if is_floating:
        bounded = values.filter(pc.invert(pc.is_nan(values)))
        has_nan = len(bounded) < len(values)
    distinct = DistinctCount(float(len(bounded) + has_nan), is_exact=True)
    if not len(bounded) or pa.types.is_null(column.type):
        return ColumnStatistics(distinct, column.null_count)
    low, high = (_plain(bound) for bound in (pc.min(bounded), pc.max(bounded)))
    return ColumnStatistics(distinct, column.null_count, low, high)


def _plain(scalar: pa.Scalar) -> Any:
    value = scalar.as_py()
    return None if isinstance(value, float) and math.isnan(value) else value

"""Which share of the rows of a table its conditions select.

Conditions are tried on the rows of the sample, all together, so that correlated columns and functions count as they
are. Where too few rows of the sample match, distinct counts and bounds take part; without a sample they answer alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.model.operators import Interval, Test, operator_of
from windrow.model.predicate import And, Not, Or, Predicate, matches
from windrow.statistics.join_graph import Filter
from windrow.statistics.table_statistics import ColumnStatistics, TableStatistics

__all__ = ["Evaluate", "Share", "evaluate_predicates", "selected_share", "share_by_statistics"]

Evaluate: TypeAlias = Callable[[pa.Table, Sequence[Filter]], Sequence[NDArray[np.bool_] | None]]
"""Says for each filter which rows of a table it selects; None for a filter that cannot be evaluated."""

ENOUGH = 16
"""So many matching rows of a sample stand for themselves: their count errs by a quarter, as one standard error."""
GUESS = 0.2
"""The share of rows where nothing is known; it is what DuckDB assumes."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of rows, from 0 to 1."""

    value: float
    is_vague: bool = False
    """Whether a guess took part."""

    def times(self, other: Share) -> Share:
        """The share of both, if they are independent."""
        return Share(self.value * other.value, self.is_vague or other.is_vague)


def evaluate_predicates(rows: pa.Table, filters: Sequence[Filter]) -> list[NDArray[np.bool_] | None]:
    """Evaluate those filters that are predicates, row by row: the plain evaluator, which needs no engine."""
    values = rows.to_pylist()
    return [
        None if each.predicate is None else np.array([matches(each.predicate, row) for row in values], dtype=np.bool_)
        for each in filters
    ]


def selected_share(
    table: TableStatistics, filters: Sequence[Filter], evaluate: Evaluate = evaluate_predicates
) -> Share:
    """Return the share of the table's rows that all of the filters select."""
    tried, masks = _tried(table, filters, evaluate)
    rest = [each for each in filters if each not in tried]
    share = _from_sample(table, tried, masks) if tried else Share(1.0)
    for each in rest:
        known = _known_share(table, each)
        share = share.times(Share(GUESS, is_vague=True) if known is None else known)
    return share


def _tried(
    table: TableStatistics, filters: Sequence[Filter], evaluate: Evaluate
) -> tuple[list[Filter], list[NDArray[np.bool_]]]:
    """The filters that the sample can answer, and which of its rows each selects."""
    fitting = [each for each in filters if table.sampled(each.columns) is not None]
    if not fitting or table.sample is None:
        return [], []
    names = sorted({name for each in fitting for name in each.columns})
    found = zip(fitting, evaluate(table.sample.select(names), fitting), strict=True)
    answered = [(each, mask) for each, mask in found if mask is not None]
    return [each for each, _ in answered], [mask for _, mask in answered]


def _from_sample(table: TableStatistics, filters: Sequence[Filter], masks: Sequence[NDArray[np.bool_]]) -> Share:
    count = len(masks[0])
    together = int(np.logical_and.reduce(masks).sum())
    if table.is_whole_sample:
        return Share(together / count)
    expected = Share(1.0)
    for each, mask in zip(filters, masks, strict=True):
        expected = expected.times(_one_share(table, each, int(mask.sum()), count))
    if together >= ENOUGH:
        return Share(together / count)
    # Few rows match: the expected share is weighed as evidence of one row more, and fades with each row that matches.
    trust = together / ENOUGH
    prior = max(expected.value, 1e-12)
    blended = trust * together / count + (1 - trust) * (together + 1) / (count + 1 / prior)
    return Share(min(blended, 1.0), expected.is_vague)


def _one_share(table: TableStatistics, condition: Filter, matching: int, count: int) -> Share:
    """What one filter selects by itself."""
    if matching >= ENOUGH:
        return Share(matching / count)
    known = _known_share(table, condition)
    at_most = (matching + 3) / count
    return Share(max(matching, 0.5) / count) if known is None else Share(min(known.value, at_most), known.is_vague)


# ---- distinct counts and bounds


def _known_share(table: TableStatistics, condition: Filter) -> Share | None:
    return None if condition.predicate is None else share_by_statistics(table, condition.predicate)


def share_by_statistics(table: TableStatistics, predicate: Predicate) -> Share | None:
    """Return the share that distinct counts, nulls and bounds tell; None where they tell nothing."""
    match predicate:
        case And(parts):
            shares = [share_by_statistics(table, part) for part in parts]
            return _product([each for each in shares if each is not None]) if None not in shares else None
        case Or(parts):
            opposites = [_opposite(share_by_statistics(table, part)) for part in parts]
            return (
                _opposite(_product([each for each in opposites if each is not None])) if None not in opposites else None
            )
        case Not(part):
            return _opposite(share_by_statistics(table, part))
    return _test_share(table, predicate)


def _product(shares: Sequence[Share]) -> Share:
    product = Share(1.0)
    for each in shares:
        product = product.times(each)
    return product


def _opposite(share: Share | None) -> Share | None:
    return None if share is None else Share(1 - share.value, share.is_vague)


def _test_share(table: TableStatistics, test: Test) -> Share | None:
    column, operator = table.column(test.column), operator_of(test)
    nulls = min(1.0, (column.null_count or 0) / table.row_count) if table.row_count else 0.0
    if operator.wants_null is not None:
        return None if column.null_count is None else Share(nulls if operator.wants_null else 1 - nulls)
    if column.null_count is not None and column.null_count >= table.row_count:
        return Share(0.0)
    if operator.unfolded is not None:
        tests, needs_all = operator.unfolded(test)
        if operator.intervals is None:
            return share_by_statistics(table, (And if needs_all else Or)(tests))
    if operator.intervals is None or not operator.is_exact:
        return None
    shares = [_interval_share(column, each) for each in operator.intervals(test)]
    known = [each for each in shares if each is not None]
    if len(known) < len(shares):
        return None
    return Share(min(1.0, sum(each.value for each in known)) * (1 - nulls), any(each.is_vague for each in known))


def _interval_share(column: ColumnStatistics, interval: Interval) -> Share | None:
    """The share of the values that are not null which lie in an interval."""
    if interval.is_point:
        return _point_share(column, interval.low)
    low, high = _place(column.minimum), _place(column.maximum)
    if low is None or high is None:
        return None
    start = low if interval.low is None else _place(interval.low, column.minimum)
    end = high if interval.high is None else _place(interval.high, column.minimum)
    if start is None or end is None:
        return None
    least = 1 / max(column.distinct.estimate, 1.0) if column.distinct is not None else 0.0
    if end < low or start > high:
        return Share(0.0)
    if high <= low:
        return Share(1.0)
    within = (min(end, high) - max(start, low)) / (high - low)
    return Share(max(0.0, min(1.0, max(within, least))))


def _point_share(column: ColumnStatistics, value: Any) -> Share | None:
    low, at, high = _place(column.minimum), _place(value, column.minimum), _place(column.maximum)
    if low is not None and high is not None and at is not None and not low <= at <= high:
        return Share(0.0)
    if column.distinct is None:
        return None
    return Share(1 / max(column.distinct.estimate, 1.0), column.distinct.is_vague)


def _place(value: Any, like: Any = None) -> float | None:
    """Where a value lies on a line of numbers; None where it cannot be compared with the bounds of the column."""
    if value is None or (like is not None and not _are_alike(value, like)):
        return None
    if isinstance(value, bool | int | float | Decimal):
        place = float(value)
        return None if math.isnan(place) else place
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    return _text_place(value) if isinstance(value, bytes) else None


_TEXT_BYTES = 12


def _text_place(value: bytes) -> float:
    """Text as a fraction of base 256; what follows the first bytes is below the precision of a float."""
    return float(int.from_bytes(value[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), "big"))


def _are_alike(value: Any, like: Any) -> bool:
    return any(isinstance(value, kinds) and isinstance(like, kinds) for kinds in _COMPARABLE)


_COMPARABLE: tuple[tuple[type, ...], ...] = ((bool, int, float, Decimal), (datetime, date), (str, bytes))

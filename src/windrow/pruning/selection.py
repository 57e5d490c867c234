"""Which stored values of a column a question selects: a set, written down as the cuts between its members and the rest.

The intervals of an operator are a few half-open ranges of stored values. The ends of these are cuts: how many of them
lie at or below a value says whether the value is selected. So two binary searches judge all units at once: when no cut
lies between the minimum of a unit and its maximum, its values are selected all or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windrow.model.operators import Interval, Test, operator_of
from windrow.model.predicate import Not, Predicate
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.types import OPAQUE, ColumnType

__all__ = ["Selection", "select"]

_Range: TypeAlias = tuple[Any, Any]


class Selection(NamedTuple):
    """A set of stored values."""

    column: str
    cuts: NDArray[Any]
    selected: Mask
    """Whether values are selected that have no cut at or below them, that have one, two, and so on."""
    points: tuple[Any, ...] | None = None
    """The values one by one, where the question names them."""
    is_exact: bool = True
    """Whether all of these values pass, or some of them may fail."""

    def judge(self, bounds: Bounds) -> tuple[Mask, Mask]:
        """Units in which a value may be selected, and units in which every row has a value that is."""
        has_minimum, has_maximum = bounds.usable
        low = self.cuts.searchsorted(bounds.minimum, "right") * has_minimum
        high = np.where(has_maximum, self.cuts.searchsorted(bounds.maximum, "right"), len(self.cuts))
        inside, uncut = self.selected[low], low == high
        may, whole = inside | ~uncut, inside & uncut
        if bounds.minimum.dtype.kind == "f":
            # NaN is greater than any number and in no maximum: where it may be, it is as if behind the last cut.
            hidden = np.logical_not(bounds.nan_free)
            may, whole = (may | hidden, whole) if self.selected[-1] else (may, whole & ~hidden)
        return may & ~bounds.all_null, whole & bounds.null_free & self.is_exact


def select(predicate: Predicate, types: Mapping[str, ColumnType]) -> Selection | None:
    """What a question about one column selects; None when its column and its literals have no order in common."""
    is_negated = isinstance(predicate, Not)
    test = predicate.part if isinstance(predicate, Not) else predicate
    if not isinstance(test, Test):
        return None
    operator = operator_of(test)
    column_type = types.get(test.column, OPAQUE)
    if operator.intervals is None or not all(map(column_type.compares, operator.literals(test))):
        return None
    if is_negated and not operator.is_exact:
        return None
    intervals = operator.intervals(test)
    ranges = [_range(interval, column_type) for interval in intervals]
    points = None
    if operator.is_exact and not is_negated and all(interval.is_point for interval in intervals):
        points = _points(ranges, column_type)
    selection = _selection(test.column, column_type, _edges(ranges), is_negated=is_negated)
    return selection._replace(points=points, is_exact=operator.is_exact)


def _range(interval: Interval, column_type: ColumnType) -> _Range:
    """From which position up to which other one an interval goes; the end is None where there is none."""
    low, high, low_open, high_open, is_point = interval
    if is_point and low is not None:
        return column_type.around(low)
    start = column_type.limits[0] if low is None else column_type.around(low)[low_open]
    return start, None if high is None else column_type.around(high)[not high_open]


def _edges(ranges: Sequence[_Range]) -> list[Any]:
    """The ends of ranges, in order, but not those at which one range goes on where another one ends."""
    merged: list[_Range] = []
    for start, stop in sorted((each for each in ranges if each[1] is None or each[0] < each[1]), key=itemgetter(0)):
        if merged and (merged[-1][1] is None or start <= merged[-1][1]):
            before, last = merged.pop()
            merged.append((before, None if stop is None or last is None else max(stop, last)))
        else:
            merged.append((start, stop))
    return [edge for edge in chain.from_iterable(merged) if edge is not None]


def _selection(column: str, column_type: ColumnType, edges: list[Any], *, is_negated: bool) -> Selection:
    first, _ = column_type.limits
    cuts = [edge for edge in edges if edge > first and column_type.stores(edge)]
    from_start = is_negated != (sum(edge <= first for edge in edges) % 2 == 1)
    selected = (np.arange(len(cuts) + 1) % 2 == 0) == from_start
    return Selection(column, _values(cuts, column_type), selected)


def _points(ranges: Sequence[_Range], column_type: ColumnType) -> tuple[Any, ...]:
    places = {at for at, after in ranges if at < after and column_type.stores(at)}
    return tuple(_values(sorted(places), column_type).tolist())


def _values(positions: list[Any], column_type: ColumnType) -> NDArray[Any]:
    values = np.empty(len(positions), column_type.dtype)
    values[:] = [column_type.value(position) for position in positions]
    return values

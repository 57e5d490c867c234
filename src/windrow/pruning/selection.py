"""Which stored values of a column a question selects: a set, written down as the cuts between its members and the rest.

Every comparison, IN, BETWEEN and prefix selects a few half-open ranges of stored values. The ends of these are cuts:
how many of them lie at or below a value says whether the value is selected. So two binary searches judge all units at
once: when no cut lies between the minimum of a unit and its maximum, its values are selected all or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windrow.model.predicate import And, Between, Comparison, In, Literal, Not, Op, Or, Predicate, StartsWith
from windrow.pruning.bounds import Bounds, Mask
from windrow.pruning.types import OPAQUE, ColumnType, utf8

__all__ = ["Selection", "ValueTest", "literals_of", "select", "value_tests"]

ValueTest: TypeAlias = Comparison | In | Between | StartsWith
"""A question about the values of one column."""

_Range: TypeAlias = tuple[Any, Any]


class Selection(NamedTuple):
    """A set of stored values."""

    column: str
    cuts: NDArray[Any]
    selected: Mask
    """Whether values are selected that have no cut at or below them, that have one, two, and so on."""
    points: tuple[Any, ...] | None
    """The values one by one, where the question names them."""

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
        return may & ~bounds.all_null, whole & bounds.null_free


def select(predicate: Predicate, types: Mapping[str, ColumnType]) -> Selection | None:
    """What a question about one column selects; None when its column and its literals have no order in common."""
    complement = isinstance(predicate, Not)
    test = predicate.part if isinstance(predicate, Not) else predicate
    if not isinstance(test, ValueTest):
        return None
    column_type = types.get(test.column, OPAQUE)
    if not all(map(column_type.compares, literals_of(test))):
        return None
    ranges = _ranges(test, column_type)
    if _is_complement(test):
        complement = not complement
    return _selection(test, column_type, _edges(ranges), complement=complement)


def _is_complement(test: ValueTest) -> bool:
    """What lies above a literal has no end, so it is written as the complement of what is below; so is all text."""
    if isinstance(test, StartsWith):
        return not test.prefix
    return isinstance(test, Comparison) and test.op in (Op.NOT_EQUAL, Op.GREATER, Op.GREATER_OR_EQUAL)


def value_tests(predicate: Predicate) -> Iterator[ValueTest]:
    """All questions about values in a predicate."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from value_tests(part)
        case Not(part):
            yield from value_tests(part)
        case _ if isinstance(predicate, ValueTest):
            yield predicate


def literals_of(test: ValueTest) -> tuple[Literal, ...]:
    """What the column is compared with."""
    match test:
        case Comparison(_, _, value):
            return (value,)
        case In(_, values):
            return values
        case Between(_, low, high):
            return low, high
        case StartsWith(_, prefix):
            return (prefix,)


def _ranges(test: ValueTest, column_type: ColumnType) -> list[_Range]:
    """From which position up to which other one values are selected, or are not where the operator is of that kind."""
    first, _ = column_type.limits
    match test:
        case In(_, values):
            return [column_type.around(value) for value in values]
        case Between(_, low, high):
            return [(column_type.around(low)[0], column_type.around(high)[1])]
        case StartsWith(_, prefix):
            return [_prefixed(utf8(prefix))] if prefix else []
        case Comparison(_, op, value):
            at, after = column_type.around(value)
            if op in (Op.EQUAL, Op.NOT_EQUAL):
                return [(at, after)]
            return [(first, at if op in (Op.LESS, Op.GREATER_OR_EQUAL) else after)]


def _prefixed(prefix: bytes) -> _Range:
    """All text that starts so; the last byte can be raised, as none in UTF-8 is 255."""
    return prefix, prefix[:-1] + bytes([prefix[-1] + 1])


def _edges(ranges: Iterable[_Range]) -> list[Any]:
    """The ends of ranges, in order, but not those at which one range goes on where another one ends."""
    merged: list[_Range] = []
    for start, stop in sorted(each for each in ranges if each[0] < each[1]):
        if merged and start <= merged[-1][1]:
            before, last = merged.pop()
            merged.append((before, max(stop, last)))
        else:
            merged.append((start, stop))
    return list(chain.from_iterable(merged))


def _selection(test: ValueTest, column_type: ColumnType, edges: list[Any], *, complement: bool) -> Selection:
    first, _ = column_type.limits
    cuts = [edge for edge in edges if edge > first and column_type.stores(edge)]
    from_start = complement != (sum(edge <= first for edge in edges) % 2 == 1)
    selected = (np.arange(len(cuts) + 1) % 2 == 0) == from_start
    return Selection(test.column, _values(cuts, column_type), selected, _points(test, column_type))


def _points(test: ValueTest, column_type: ColumnType) -> tuple[Any, ...] | None:
    if not isinstance(test, In) and not (isinstance(test, Comparison) and test.op is Op.EQUAL):
        return None
    places = {at for at, after in _ranges(test, column_type) if at < after and column_type.stores(at)}
    return tuple(_values(sorted(places), column_type).tolist())


def _values(positions: list[Any], column_type: ColumnType) -> NDArray[Any]:
    values = np.empty(len(positions), column_type.dtype)
    values[:] = [column_type.value(position) for position in positions]
    return values

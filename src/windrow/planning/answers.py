"""Answers without data: counts and extremes of a table's rows, from the metastore and from sidecars.

An answer is given where it is certain to be the one that the rows would give, and otherwise none. For that, each row
group must match as a whole or not at all; bounds must be values that occur, not shortened ones; and what bounds do not
tell (NaN, which of the two zeros) must not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windrow.metastore import Metastore, TableRecord
from windrow.model.predicate import Predicate, columns_of
from windrow.model.rows import Rows
from windrow.model.split import SplitMetadata
from windrow.planning.listed_files import ListedSplits, ListedVersions
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan, learnt_columns
from windrow.planning.synopses import LearntColumn, StatisticsUse, others_of, summed_uses, uses_of
from windrow.planning.table_plans import time_range
from windrow.planning.units import Unit
from windrow.planning.virtual_schema import arrow_schema
from windrow.questions.naming import Aggregate, AggregateKind, Question
from windrow.sidecar.columns import Bound
from windrow.sidecar.flat_columns import is_flat
from windrow.sidecar.pruning import SidecarPruner, Step, nan_free

__all__ = ["answered", "counted_nulls", "extremes", "table_answer", "table_labels"]

_FULL_LENGTH = ("parquet-cpp-arrow", "windrow")
"""Those who write bounds of text and of long numbers in full, or none."""


class _Chosen(NamedTuple):
    """The row groups of a unit whose rows all match."""

    unit: Unit
    places: NDArray[np.int64]
    learnt: Callable[[Sequence[str]], Mapping[str, LearntColumn]] = lambda _: {}
    """What queries learnt of columns in them."""

    @property
    def rows(self) -> int:
        return int(self.unit.sidecar.row_counts[self.places].sum())


class _Unknown(Exception):
    """Metadata does not say it."""


def table_answer(
    context: ScanContext,
    metastore: Metastore,
    table: TableRecord,
    version: int,
    listed: ListedVersions | None,
    question: Question,
    types: pa.Schema,
    see: Callable[[Sequence[SplitMetadata]], None] = lambda _: None,
) -> ScanPlan | None:
    """Plan aggregates over the rows that fulfil the predicate, with their values; None where rows must be read.

    `types` are those of the table's columns. `see` is shown the splits that matter, and may refuse some. Of columns
    that had another type in earlier schema epochs only rows can tell.
    """
    predicate, aggregates = question.predicate, question.aggregates
    if not context.prune:
        return None
    named = {each.column for each in aggregates} | (frozenset() if predicate is None else columns_of(predicate))
    if any(not named.isdisjoint(changed) for changed in context.old.values()):
        return None
    within = time_range(predicate, table.settings.timestamp, table.settings.timestamp_unit)
    found = (listed or ListedVersions(0)).splits(context, metastore, table, version, within)
    places = [_places(each, within, predicate) for each in found]
    splits = [each.splits[place] for each, near in zip(found, places, strict=True) for place in near.tolist()]
    see(splits)
    if predicate is None and all(each.kind is AggregateKind.ROWS for each in aggregates):
        return answered([pa.scalar(sum(split.row_count for split in splits), pa.int64())] * len(aggregates))
    for each, near in zip(found, places, strict=True):
        each.open(context, near)
    with ExitStack() as locks:
        for each in found:
            locks.enter_context(each.lock)
        try:
            chosen = [
                unit
                for each, near in zip(found, places, strict=True)
                for unit in _chosen(context, each, near, predicate)
            ]
            uses: list[StatisticsUse] = []
            return answered([_value(each, chosen, types, uses) for each in aggregates], uses)
        except _Unknown:
            return None


def answered(values: Sequence[pa.Scalar], uses: Iterable[StatisticsUse] = ()) -> ScanPlan:
    """The plan of a question whose values are there; `uses` are the statistics that it took."""
    return ScanPlan((), Rows(Step, ()), values, statistics=summed_uses(uses))


def _places(found: ListedSplits, within: tuple[int, int] | None, predicate: Predicate | None) -> NDArray[np.int64]:
    """The places of the splits that may hold a row that matches."""
    near = found.within(within)
    if predicate is None:
        return near
    with found.lock:
        return found.zones.prune(predicate, near)


def table_labels(
    context: ScanContext,
    metastore: Metastore,
    table: TableRecord,
    version: int,
    listed: ListedVersions | None,
    column: str,
    predicate: Predicate | None,
    see: Callable[[Sequence[SplitMetadata]], None] = lambda _: None,
) -> list[str]:
    """Return values of a column of text that surely occur in rows that fulfil a predicate; there may be others.

    `see` is shown the splits that matter, and may refuse some. Splits of earlier schema epochs tell nothing of columns
    that had another type then.
    """
    if not context.prune:
        return []
    within = time_range(predicate, table.settings.timestamp, table.settings.timestamp_unit)
    found = (listed or ListedVersions(0)).splits(context, metastore, table, version, within)
    named = {column} | (frozenset() if predicate is None else columns_of(predicate))
    labels: set[str] = set()
    for each in found:
        places = each.within(within)
        see([each.splits[place] for place in places.tolist()])
        each.open(context, places)
        with each.lock:
            if named.isdisjoint(context.old.get(each.epoch, ())):
                labels |= _labels(context, each, places, column, predicate)
    return sorted(labels)


def _labels(
    context: ScanContext, found: ListedSplits, places: NDArray[np.int64], column: str, predicate: Predicate | None
) -> set[str]:
    labels: set[str] = set()
    for chosen in _chosen(context, found, places, predicate, partly=True):
        for kind in (AggregateKind.MINIMUM, AggregateKind.MAXIMUM):
            with suppress(_Unknown):
                labels.update(_bounds(chosen, Aggregate(kind, column), pa.large_string(), []).to_pylist())
    return labels


def _chosen(
    context: ScanContext,
    found: ListedSplits,
    places: NDArray[np.int64],
    predicate: Predicate | None,
    *,
    partly: bool = False,
) -> Iterator[_Chosen]:
    """Yield the row groups that match; one that may match in part ends it, unless some of the answer is enough."""
    pruner = None if predicate is None else SidecarPruner(predicate)
    for unit in found.units(context, places):
        asked = unit.filled & np.isin(unit.files, places)
        learnt = partial(learnt_columns, context, unit, found.files, wanted=asked)
        if pruner is not None and asked.any():
            known = learnt(pruner.columns)
            may_match, all_match = pruner.judge(unit.sidecar, others_of(known) if known else None)
            if not partly and (asked & may_match & ~all_match).any():
                raise _Unknown
            asked = asked & may_match & all_match
        yield _Chosen(unit, np.flatnonzero(asked), learnt)


def _value(asked: Aggregate, chosen: Sequence[_Chosen], schema: pa.Schema, uses: list[StatisticsUse]) -> pa.Scalar:
    if asked.kind is AggregateKind.ROWS:
        return pa.scalar(sum(each.rows for each in chosen), pa.int64())
    if asked.kind is AggregateKind.DISTINCT:
        raise _Unknown  # what bounds and null counts do not tell
    if asked.kind is AggregateKind.COUNT:
        return pa.scalar(sum(each.rows - _nulls(each, asked.column) for each in chosen), pa.int64())
    kind = schema.field(asked.column).type
    bounds = [_bounds(each, asked, kind, uses) for each in chosen]
    values = pa.chunked_array([pa.array([], kind), *bounds], kind)
    extreme = pc.min_max(values)["min" if asked.kind is AggregateKind.MINIMUM else "max"]
    if pa.types.is_floating(kind) and extreme.as_py() == 0:
        raise _Unknown  # there are two zeros, and bounds do not tell which is there
    return extreme


def extremes(units: Sequence[Unit], column: str, schema: pa.Schema) -> tuple[Any, Any]:
    """Return the least and the greatest value of a column as values of Python; None for both where that is unsure."""
    chosen = [_Chosen(unit, np.flatnonzero(unit.filled)) for unit in units]
    ends = [Aggregate(kind, column) for kind in (AggregateKind.MINIMUM, AggregateKind.MAXIMUM)]
    try:
        low, high = (_value(end, chosen, schema, []).as_py() for end in ends)
    except _Unknown:
        return None, None
    return low, high


def counted_nulls(units: Sequence[Unit], column: str) -> int | None:
    """Return the nulls of a column; None where they were not counted."""
    try:
        return sum(_nulls(_Chosen(unit, np.flatnonzero(unit.filled)), column) for unit in units)
    except _Unknown:
        return None


def _position(chosen: _Chosen, column: str) -> int | None:
    """Where the column is in the files; None where they lack it, so that it is null."""
    sidecar = chosen.unit.sidecar
    positions = sidecar.column_positions(column)
    if not positions:
        return None
    if len(positions) > 1 or not is_flat(sidecar, positions[0]):
        raise _Unknown
    return positions[0]


def _nulls(chosen: _Chosen, column: str) -> int:
    position = _position(chosen, column)
    if position is None:
        return chosen.rows
    count, known = chosen.unit.sidecar.column(position, chosen.places).null_count
    if not known.all():
        raise _Unknown
    return int(count.sum())


def _bounds(chosen: _Chosen, asked: Aggregate, kind: pa.DataType, uses: list[StatisticsUse]) -> pa.Array:
    """The extremes of a column in each row group that has values, with the type that it has in the table."""
    position = _position(chosen, asked.column)
    if position is None or not len(chosen.places):
        return pa.array([], kind)
    sidecar = chosen.unit.sidecar
    chunks = sidecar.column(position, chosen.places)
    filled = ~chunks.all_null
    bound = chunks.minimum if asked.kind is AggregateKind.MINIMUM else chunks.maximum
    if not (bound.present & bound.exact)[filled].all():
        raise _Unknown
    own = arrow_schema(chosen.unit.singles[0]).field(asked.column).type
    own = own.value_type if pa.types.is_dictionary(own) else own
    if pa.types.is_floating(own):
        # NaN is greater than all numbers, and in no bound.
        hidden = filled & ~nan_free(sidecar, position, chosen.places)
        if asked.kind is AggregateKind.MAXIMUM and hidden.any():
            uses.append(_without_nan(chosen, asked.column, hidden))
    elif bound.values.dtype.kind == "O" and not all(
        _writes_in_full(each.extensions.created_by) for each in chosen.unit.singles
    ):
        raise _Unknown
    try:
        return _typed(bound, filled, own).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        raise _Unknown from None


def _without_nan(chosen: _Chosen, column: str, hidden: NDArray[np.bool_]) -> StatisticsUse:
    """Which statistics show that a column has no NaN in row groups of which the sidecar does not know."""
    learnt = chosen.learnt([column]).get(column)
    if learnt is None or not learnt.nan_free[chosen.places[hidden]].all():
        raise _Unknown
    judged = np.zeros(len(chosen.unit.owners), bool)
    judged[chosen.places] = True
    return next(uses_of(chosen.unit, [column], judged))


def _writes_in_full(writer: str | None) -> bool:
    return writer is not None and writer.startswith(_FULL_LENGTH)


def _typed(bound: Bound, filled: NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Stored bounds as values of the type that a file says they have."""
    values: NDArray[Any] = bound.values[filled]
    if pa.types.is_decimal(kind):
        whole = [int.from_bytes(each, "big", signed=True) if isinstance(each, bytes) else int(each) for each in values]
        return pa.array([Decimal(number).scaleb(-kind.scale) for number in whole], kind)
    if values.dtype.kind == "O":
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise _Unknown
        return pa.array([each.decode() for each in values], kind)
    if pa.types.is_boolean(kind):
        return pa.array(values.astype(bool))
    if pa.types.is_unsigned_integer(kind):
        return pa.array(values.view(f"<u{values.itemsize}")).cast(kind)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pa.array(values).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        return pa.array(values).view(kind)
    raise _Unknown

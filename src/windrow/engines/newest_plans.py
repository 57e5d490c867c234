"""Plans of questions about newest rows: row groups that may have one, found by their key columns and times.

What is decoded for that are columns of files on this machine that never change. Elsewhere the plain plan stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import Damaged
from windrow.model.operators import Comparison, Op
from windrow.model.predicate import Predicate, columns_of
from windrow.model.sort_schema import Direction, SortSchema
from windrow.model.split import SplitMetadata
from windrow.planning.listed_files import ListedSplits
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan, plan_listed
from windrow.planning.table_plans import time_range
from windrow.planning.virtual_file import VirtualFile
from windrow.questions.conditions import all_of
from windrow.questions.literals import fitted
from windrow.questions.naming import Newest, NewestBuckets, Question
from windrow.reading.newest_rows import Extent, newest_rows, start_of_buckets
from windrow.reading.series import Columns, SeriesCache, UnreadableError
from windrow.sidecar.pruning import Step

__all__ = ["NarrowedPlan", "newest_plan"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNKNOWN = 2**63 - 1

Listed = Callable[[tuple[int, int] | None], Sequence[ListedSplits]]


class NarrowedPlan(NamedTuple):
    """A plan of fewer files, and which rows of its virtual file are enough; None is all of them."""

    plan: ScanPlan
    rows: NDArray[np.int64] | None
    splits: Sequence[SplitMetadata]
    """Those that are read."""


def newest_plan(
    context: ScanContext, listed: Listed, series: SeriesCache, question: Question, types: pa.Schema, timestamp: str
) -> NarrowedPlan | Predicate | None:
    """Plan a question about newest rows, or return what its rows must fulfil besides; None where it is planned as any.

    `types` are those of the table's columns.
    """
    newest, kind = question.newest, types.field(timestamp).type
    if (
        newest is None
        or context.old
        or not context.prune
        or kind not in (pa.timestamp("us"), pa.timestamp("us", "UTC"))
    ):
        return None
    found = listed(time_range(newest.where, timestamp, None))
    if len(found) != 1:
        return None
    try:
        return _planned(context, found[0], series, question, types, timestamp)
    except (UnreadableError, Damaged, pa.ArrowInvalid):
        return None


def _planned(
    context: ScanContext,
    found: ListedSplits,
    series: SeriesCache,
    question: Question,
    types: pa.Schema,
    timestamp: str,
) -> NarrowedPlan | Predicate | None:
    newest = question.newest
    places = _places(context, found, None if newest is None else newest.where, timestamp)
    # Pieces for several threads would be other row groups.
    virtual = _virtual(replace(context, threads=1), found, places, _keys(newest, timestamp))
    if virtual is None:
        return None
    columns, extent = Columns(series, virtual), _extent(virtual, found)
    if isinstance(newest, NewestBuckets):
        start = start_of_buckets(columns, extent, newest, timestamp)
        return None if start is None else _from(start, timestamp, types)
    if newest is None:
        return None
    extent = extent._replace(newest_first=_direction(found, places, newest.by, timestamp))
    rows = newest_rows(columns, extent, newest, timestamp)
    files = virtual.placed.places[:, 0]
    chosen = np.unique(files[list(rows)]) if rows else files[:0]
    with _opened(context, found, chosen):
        step = Step("newest of series", "splits", len(places), len(chosen))
        plan = plan_listed(context, found, chosen, Question(question.columns), steps=[step])
    by_group = {tuple(virtual.placed.places[group, :2].tolist()): each for group, each in rows.items()}
    return NarrowedPlan(plan, _positions(plan, by_group), [found.splits[place] for place in chosen.tolist()])


def _keys(newest: Newest | NewestBuckets | None, timestamp: str) -> tuple[str, ...]:
    """The columns by which newest rows are found."""
    names = [timestamp]
    if newest is not None and newest.where is not None:
        names += sorted(columns_of(newest.where))
    if isinstance(newest, Newest):
        names += [*newest.by, *newest.filled]
    return tuple(dict.fromkeys(names))


def _places(context: ScanContext, found: ListedSplits, where: Predicate | None, timestamp: str) -> NDArray[np.int64]:
    """The splits that may hold a row that counts."""
    places = found.within(time_range(where, timestamp, None))
    if where is not None:
        with found.lock:
            places = found.zones.prune(where, places)
    found.open(context, places)
    return places


def _virtual(
    context: ScanContext, found: ListedSplits, places: NDArray[np.int64], names: tuple[str, ...]
) -> VirtualFile | None:
    """All rows of some columns of splits; None where no single file can have them."""
    with _opened(context, found, places):
        virtual = plan_listed(context, found, places, Question(names)).virtual
    return virtual[0] if len(virtual) == 1 else None


def _opened(context: ScanContext, found: ListedSplits, places: NDArray[np.int64]) -> ExitStack:
    """The lock of a list whose sidecars are open."""
    found.open(context, places)
    with ExitStack() as stack:
        stack.enter_context(found.lock)
        return stack.pop_all()


def _extent(virtual: VirtualFile, found: ListedSplits) -> Extent:
    splits = [found.splits[number] for number in virtual.placed.places[:, 0].tolist()]
    # Rows without a time have windows of their own, and files that others wrote have none.
    is_sure = [
        split.window is not None and not split.window.overflow and split.time_max is not None for split in splits
    ]
    latest = [_UNKNOWN if split.time_max is None else split.time_max for split in splits]
    return Extent(np.array(latest, np.int64), np.array(is_sure, bool))


def _direction(found: ListedSplits, places: NDArray[np.int64], by: Sequence[str], timestamp: str) -> bool | None:
    """Whether splits have the newest row of each series first, or else last; None where their order does not say."""
    schemas = {found.splits[place].scope.sort_schema for place in places.tolist()}
    if len(schemas) != 1:
        return None
    columns = SortSchema.parse(schemas.pop()).columns
    names = [column.name for column in columns]
    if timestamp not in names or not set(names[: names.index(timestamp)]) <= set(by):
        return None
    return columns[names.index(timestamp)].direction is Direction.DESCENDING


def _positions(plan: ScanPlan, rows: dict[tuple[int, ...], NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Where rows of row groups are in the virtual file of a plan, whose pieces of a row group follow each other."""
    if len(plan.virtual) != 1:
        return None
    placed, found = plan.virtual[0].placed, []
    starts = np.cumsum(placed.rows) - placed.rows
    seen: set[tuple[int, ...]] = set()
    for place, start in zip(placed.places[:, :2].tolist(), starts.tolist(), strict=True):
        key = tuple(place)
        if key not in seen:
            seen.add(key)
            found.append(rows.get(key, np.empty(0, np.int64)) + start)
    return np.concatenate(found)


def _from(start: int, timestamp: str, types: pa.Schema) -> Predicate | None:
    """That rows have a time from a microsecond on."""
    moment = _EPOCH + timedelta(microseconds=start)
    return fitted(Comparison(timestamp, Op.GREATER_OR_EQUAL, moment), types)


def narrowed(question: Question, more: Predicate) -> Question:
    """A question whose rows must fulfil more."""
    return replace(question, predicate=all_of([question.predicate, more]), newest=None)

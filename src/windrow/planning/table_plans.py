"""The first steps of the funnel: from a version of a table to the splits that may hold a row that matches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.metastore import Metastore, SplitQuery, TableRecord, WindowSummary
from windrow.model.operators import Literal, Test, operator_of
from windrow.model.predicate import And, Predicate
from windrow.model.split import SplitMetadata
from windrow.model.window import TICKS_PER_SECOND, Window
from windrow.planning.data_files import split_file
from windrow.planning.epoch_plans import asked_of, joined_plans
from windrow.planning.listed_files import ListedSplits, ListedVersions
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan, plan_files, plan_listed
from windrow.pruning.zones import prune_splits
from windrow.questions.naming import Question
from windrow.sidecar.pruning import Step
from windrow.storage import Store

__all__ = ["plan_table", "time_range"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -(2**63), 2**63
"""No time lies before or after these."""
_DAY = timedelta(days=1)
_FEW_SPLITS = 32


def plan_table(
    context: ScanContext,
    metastore: Metastore,
    table: TableRecord,
    version: int,
    question: Question,
    *,
    explain: bool = False,
    see: Callable[[Sequence[SplitMetadata]], None] = lambda _: None,
    listed: ListedVersions | None = None,
) -> ScanPlan:
    """Plan a scan of a table at a version; with `explain` it is counted too how much there was to begin with.

    `see` is shown the splits that are left, and may refuse some. `listed` has lists of splits, so that they need not be
    asked for again.
    """
    asked = question.predicate if context.prune else None
    within = time_range(asked, table.settings.timestamp, table.settings.timestamp_unit)
    if listed is None and not context.old:
        splits, steps = _listed(
            metastore, table.table_id, version, SplitQuery(time_range=within, predicate=asked), explain=explain
        )
        see(splits)
        stores: dict[str, Store] = {}
        files = [split_file(context, split, stores) for split in splits]
        return plan_files(context, files, predicate=asked, columns=question.columns, steps=steps, explain=explain)
    narrowed = Question(question.columns, asked)
    found = (listed or ListedVersions(0)).splits(context, metastore, table, version, within)
    with ExitStack() as locks:
        chosen = _locked_choice(context, locks, found, within, narrowed, explain=explain)
        reached = _Reached.of(each.splits[at] for each in found for at in each.within(within)) if explain else None
        splits = [split for each in chosen for split in each.splits]
        steps = reached.steps(metastore.windows(table.table_id, version), len(splits)) if reached else []
        see(splits)
        if len(chosen) == 1 and not context.old.get(found[0].epoch):
            return chosen[0].plan(context, steps, explain=explain)
        plans = {each.listed.epoch: each.plan(context, explain=explain) for each in chosen}
        return joined_plans(plans, context.old, steps)


class _Chosen(NamedTuple):
    """Those splits of one schema epoch that may hold a row that matches."""

    listed: ListedSplits
    places: NDArray[np.int64]
    question: Question
    by_zones: bool
    """Whether zone maps chose them."""

    @property
    def splits(self) -> list[SplitMetadata]:
        return [self.listed.splits[place] for place in self.places.tolist()]

    def plan(self, context: ScanContext, steps: Sequence[Step] = (), *, explain: bool = False) -> ScanPlan:
        zones = self.listed.zones if self.by_zones else None
        return plan_listed(context, self.listed, self.places, self.question, steps=steps, zones=zones, explain=explain)


def _locked_choice(
    context: ScanContext,
    locks: ExitStack,
    found: Sequence[ListedSplits],
    within: tuple[int, int] | None,
    question: Question,
    *,
    explain: bool,
) -> list[_Chosen]:
    """The splits of each epoch that may hold a row that matches: locked, with their sidecars open.

    Sidecars are opened while nothing is locked, since that may take requests.
    """
    while True:
        for each in found:
            locks.enter_context(each.lock)
        old = context.old
        chosen = [
            _chosen(each, within, asked_of(question, each.epoch, old) if old else question, explain=explain)
            for each in found
        ]
        unopened = [some for some in chosen if not some.listed.are_open(some.places)]
        if not unopened:
            return chosen
        locks.close()
        for some in unopened:
            some.listed.open(context, some.places)


def _chosen(found: ListedSplits, within: tuple[int, int] | None, question: Question, *, explain: bool) -> _Chosen:
    places = found.within(within)
    # Of few splits whose sidecars are open, these tell as much as zone maps.
    is_few = len(places) <= _FEW_SPLITS and found.are_open(places)
    by_zones = question.predicate is not None and (explain or not is_few)
    if question.predicate is not None and by_zones:
        places = found.zones.prune(question.predicate, places)
    return _Chosen(found, places, question, by_zones)


@dataclass(slots=True)
class _Reached:
    """Splits that reach into the range of time of a question, counted."""

    splits: int = 0
    windows: set[Window | None] = field(default_factory=set)

    @classmethod
    def of(cls, splits: Iterable[SplitMetadata]) -> _Reached:
        counted = cls()
        counted.add(splits)
        return counted

    def add(self, splits: Iterable[SplitMetadata]) -> None:
        for split in splits:
            self.splits += 1
            self.windows.add(split.window)

    def steps(self, windows: Sequence[WindowSummary], left: int) -> list[Step]:
        """How much there was to begin with, what times left of it, and what zone maps left of that."""
        return [
            Step("time range", "windows", len(windows), len(self.windows)),
            Step("split times", "splits", sum(window.splits for window in windows), self.splits),
            Step("zone maps", "splits", self.splits, left),
        ]


def _listed(
    metastore: Metastore, table_id: str, version: int, query: SplitQuery, *, explain: bool
) -> tuple[list[SplitMetadata], list[Step]]:
    """The splits that the metastore leaves; with `explain` it counts what each of its steps left."""
    if not explain:
        return [split for page in metastore.splits(table_id, version, query) for split in page], []
    reached, splits = _Reached(), list[SplitMetadata]()
    for page in metastore.splits(table_id, version, replace(query, predicate=None)):
        reached.add(page)
        splits += page if query.predicate is None else prune_splits(query.predicate, page)
    return splits, reached.steps(metastore.windows(table_id, version), len(splits))


def time_range(predicate: Predicate | None, timestamp: str, unit: str | None) -> tuple[int, int] | None:
    """The half-open range of time, in microseconds, outside of which no row matches; None where there is no end of it.

    `unit` is what integers in the column count; without one, numbers are no times. The range may be wider than the
    predicate by a microsecond, since times are stored in other units too.
    """
    low, high = _EARLIEST, _LATEST
    for part in _required(predicate):
        first, last = _span(part, timestamp, unit)
        low, high = max(low, first), min(high, last)
    low, high = min(low, _LATEST), max(high, _EARLIEST)
    return None if (low, high) == (_EARLIEST, _LATEST) else (low, max(low, high))


def _required(predicate: Predicate | None) -> Iterator[Predicate]:
    """What a row must meet, each by itself."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from _required(part)
    elif predicate is not None:
        yield predicate


def _span(part: Predicate, timestamp: str, unit: str | None) -> tuple[int, int]:
    if not isinstance(part, Test) or part.column != timestamp:
        return _EARLIEST, _LATEST
    intervals = operator_of(part).intervals
    found = () if intervals is None else intervals(part)
    lows = [None if each.low is None else _microseconds(each.low, unit) for each in found]
    highs = [None if each.high is None else _microseconds(each.high, unit) for each in found]
    low = min((at for at in lows if at is not None), default=_EARLIEST) if None not in lows else _EARLIEST
    high = max((at + 1 for at in highs if at is not None), default=_LATEST) if None not in highs else _LATEST
    return low, high


def _microseconds(value: Literal, unit: str | None) -> int | None:
    """The microsecond that a value lies in; None for what is no time."""
    match value:
        case datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - _EPOCH.date()) // _DAY * 86_400_000_000
        case bool():
            return None
        case int() | float() | Decimal() if unit is not None and math.isfinite(value):
            return int(Fraction(value) * 10**6 // TICKS_PER_SECOND[unit])
    return None

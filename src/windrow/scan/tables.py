"""The first steps of the funnel: from a version of a table to the splits that may hold a row that matches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from windrow.metastore import Metastore, SplitQuery, TableRecord
from windrow.model.predicate import And, Between, Comparison, In, Literal, Op, Predicate
from windrow.model.split import SplitMetadata
from windrow.scan.context import ScanContext
from windrow.scan.files import split_file
from windrow.scan.kept import KeptVersions
from windrow.scan.naming import Question
from windrow.scan.plan import ScanPlan, plan_files, plan_kept
from windrow.sidecar.pruning import Step
from windrow.storage import Store

__all__ = ["plan_table", "time_range"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -(2**62), 2**62
_DAY = timedelta(days=1)
_FEW_SPLITS = 4


def plan_table(
    context: ScanContext,
    metastore: Metastore,
    table: TableRecord,
    version: int,
    question: Question,
    *,
    explain: bool = False,
    see: Callable[[Sequence[SplitMetadata]], None] = lambda _: None,
    kept: KeptVersions | None = None,
) -> ScanPlan:
    """Plan a scan of a table at a version; with `explain` it is counted too how much there was to begin with.

    `see` is shown the splits that are left, and may refuse some. `kept` has lists of splits, so that they need not be
    asked for again.
    """
    asked = question.predicate if context.prune else None
    query = SplitQuery(time_range=time_range(asked, table.settings.timestamp), predicate=asked)
    if kept is not None:
        found = kept.splits(context, metastore, table, version, query.time_range)
        with found.lock:
            places = found.within(query.time_range)
            # Of few splits whose sidecars are open, these tell as much as zone maps.
            is_few = len(places) <= _FEW_SPLITS and found.are_open(places)
            by_zones = asked is not None and (explain or not is_few)
            if asked is not None and by_zones:
                places = found.zones.prune(asked, places)
            splits = [found.splits[place] for place in places.tolist()]
            steps = _steps(metastore, table, version, splits) if explain else []
            see(splits)
            narrowed = Question(question.columns, asked)
            return plan_kept(context, found, places, narrowed, steps=steps, zones=found.zones if by_zones else None)
    splits = [split for page in metastore.splits(table.table_id, version, query) for split in page]
    steps = _steps(metastore, table, version, splits) if explain else []
    see(splits)
    stores: dict[str, Store] = {}
    files = [split_file(context, split, stores) for split in splits]
    return plan_files(context, files, predicate=asked, columns=question.columns, steps=steps)


def _steps(metastore: Metastore, table: TableRecord, version: int, splits: Sequence[SplitMetadata]) -> list[Step]:
    """How much there was to begin with, and what the metastore's knowledge left of it."""
    windows = metastore.windows(table.table_id, version)
    return [
        Step("time range", "windows", len(windows), len({split.window for split in splits})),
        Step("zone maps", "splits", sum(window.splits for window in windows), len(splits)),
    ]


def time_range(predicate: Predicate | None, timestamp: str) -> tuple[int, int] | None:
    """The half-open range of time, in microseconds, outside of which no row matches; None where there is no end of it.

    It may be wider than the predicate by a microsecond, since times are stored in other units too.
    """
    low, high = _EARLIEST, _LATEST
    for part in _required(predicate):
        first, last = _span(part, timestamp)
        low, high = max(low, first), min(high, last)
    return None if (low, high) == (_EARLIEST, _LATEST) else (low, max(low, high))


def _required(predicate: Predicate | None) -> Iterator[Predicate]:
    """What a row must meet, each by itself."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from _required(part)
    elif predicate is not None:
        yield predicate


def _span(part: Predicate, timestamp: str) -> tuple[int, int]:
    match part:
        case Comparison(column, op, value) if column == timestamp and isinstance(value, date):
            at = _microseconds(value)
            low = at if op in (Op.EQUAL, Op.GREATER, Op.GREATER_OR_EQUAL) else _EARLIEST
            high = at + 1 if op in (Op.EQUAL, Op.LESS, Op.LESS_OR_EQUAL) else _LATEST
            return low, high
        case Between(column, low_value, high_value) if column == timestamp:
            if isinstance(low_value, date) and isinstance(high_value, date):
                return _microseconds(low_value), _microseconds(high_value) + 1
        case In(column, values) if column == timestamp and values and all(isinstance(each, date) for each in values):
            moments = [_microseconds(each) for each in values]
            return min(moments), max(moments) + 1
    return _EARLIEST, _LATEST


def _microseconds(value: Literal) -> int:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(microseconds=1)
    assert isinstance(value, date)  # noqa: S101 (callers have looked)
    return (value - _EPOCH.date()) // _DAY * 86_400_000_000

"""How many series a table has, and where they come from: columns, pairs of labels, metrics, one window after the other.

All of it is put together from what is on record of the table's splits; no data is read. Sketches of windows are united
one after the other, in order of time, so that memory does not grow with the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.metastore import Metastore, TableRecord
from windrow.model.points import tag_columns
from windrow.model.split import SplitMetadata
from windrow.model.timeseries import TIMESERIES_ID
from windrow.model.window import Window
from windrow.statistics.catalog import TableCatalog
from windrow.statistics.hashing import domain_of
from windrow.statistics.label_catalog import LabelCatalog
from windrow.statistics.label_summary import LabelSummary, Pair, covered_labels, pairs_of
from windrow.statistics.layout import split_id_of
from windrow.statistics.sketch import Sketch
from windrow.statistics.table_statistics import DistinctCount

__all__ = ["CardinalityOfTable", "Growth", "SeriesOfWindow", "cardinality_of"]

Ids = npt.NDArray[np.int64]
_MOST_IDS = 1 << 16
_PAGE = 100
"""Splits whose records are in memory at once."""
EXPLODING = 0.5
"""A label explodes if it grows by at least this power of the growth of the series."""
_LEAST_GROWTH = 1.1


_Key = tuple[bool, bool, int, int]
"""Orders windows by time: overflow windows and registered files come last."""
NO_COUNT = DistinctCount(0.0, is_exact=True)


@dataclass(frozen=True, slots=True)
class SeriesOfWindow:
    """The series of one window."""

    window: Window | None
    """None for registered files, which have no window."""
    rows: int
    series: DistinctCount
    new: float
    """Series that no earlier window has."""
    new_error: float
    """The standard error of that, in series."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The distinct values of the first half of the windows, and of all."""

    half: DistinctCount
    whole: DistinctCount

    @property
    def factor(self) -> float:
        """How much more values there are in the end; 1 where the difference may be an error of the sketches."""
        grown = self.whole.estimate - self.half.estimate
        error = 3 * _error_of_difference(self.half, self.whole)
        return self.whole.estimate / self.half.estimate if self.half.estimate and grown > error else 1.0

    def keeps_up_with(self, series: Growth) -> float | None:
        """The power of the growth of series that this growth is: 1 where both grow alike, 0 where this stands still.

        None where the series do not grow, so that nothing can be told.
        """
        return math.log(self.factor) / math.log(series.factor) if series.factor >= _LEAST_GROWTH else None


@dataclass(frozen=True, slots=True)
class CardinalityOfTable:
    """What is known of the cardinality of a table at a version."""

    rows: int
    series: DistinctCount | None
    columns: Mapping[str, DistinctCount | None]
    labels: tuple[str, ...]
    growth: Mapping[str, float | None]
    """By label, how its distinct values keep up with the series; None where nothing can be told."""
    pairs: Mapping[Pair, DistinctCount]
    metrics: Mapping[str, DistinctCount]
    other_metrics: int
    """Metrics whose series are not counted."""
    windows: tuple[SeriesOfWindow, ...]
    missing: tuple[str, ...]
    """Columns of which not all rows were read."""
    retyped: tuple[str, ...]
    """Columns some of whose values have an earlier type: these are not counted."""
    has_labels: bool
    """Whether labels and series of all splits are on record."""

    @property
    def exploding(self) -> str | None:
        """The label whose distinct values grow with the series; of several the one that grows most."""
        growing = {name: power for name, power in self.growth.items() if power is not None and power >= EXPLODING}
        counts = {name: self.columns.get(name) for name in growing}
        values = {name: 0.0 if count is None else count.estimate for name, count in counts.items()}
        return max(growing, key=lambda name: (round(growing[name], 1), values[name]), default=None)


def cardinality_of(metastore: Metastore, table: TableRecord, version: int) -> CardinalityOfTable:
    """Put together what is on record of the splits of a version."""
    splits = sorted(chain.from_iterable(metastore.splits(table.table_id, version)), key=_by_time)
    rows = sum(split.row_count for split in splits)
    types = {each.name: each.type for each in metastore.columns(table.table_id, version)}
    labels = _labels(table, types)
    of_labels = _LabelUnion(LabelCatalog(metastore, table.table_id), splits, covered_labels(labels))
    catalog = TableCatalog(metastore, table.table_id)
    columns = {
        name: _Union.of_column(catalog, splits, name, kind)
        for name, kind in types.items()
        if domain_of(kind) is not None
    }
    by_id = columns.get(TIMESERIES_ID)
    series = of_labels.series if by_id is None or by_id.known_rows <= of_labels.series.known_rows else by_id
    return CardinalityOfTable(
        rows,
        series.distinct,
        {name: each.distinct for name, each in columns.items()} | of_labels.value_counts(),
        labels,
        {name: _power(columns[name], series) for name in labels if name in columns},
        of_labels.pair_counts(rows),
        of_labels.metric_counts(rows),
        of_labels.other_metrics,
        series.windows,
        tuple(name for name, each in columns.items() if each.known_rows + each.retyped_rows < rows),
        tuple(name for name, each in columns.items() if each.retyped_rows),
        of_labels.series.known_rows == rows,
    )


def _labels(table: TableRecord, types: Mapping[str, pa.DataType]) -> tuple[str, ...]:
    settings, schema = table.settings, pa.schema(list(types.items()))
    tags = tag_columns(schema, declared=settings.tags, timestamp=settings.timestamp, signal=settings.signal)
    return tuple(name for name in tags if name in types)


def _by_time(split: SplitMetadata) -> _Key:
    window = split.window
    return (True, True, 0, 0) if window is None else (False, window.overflow, window.start, window.duration)


def _error_of_difference(part: DistinctCount, whole: DistinctCount) -> float:
    """The standard error of how many more values a whole has than a part of it, in values.

    Errors of estimates of a growing set are independent in their increments, whose variances therefore add up.
    """
    return max(part.error, whole.error) * math.sqrt(max(whole.estimate**2 - part.estimate**2, 0.0))


def _power(column: _Union, series: _Union) -> float | None:
    return None if column.growth is None or series.growth is None else column.growth.keeps_up_with(series.growth)


class _Union:
    """The distinct values of one column, or of the series, united over the splits in order of time."""

    def __init__(self, splits: Sequence[SplitMetadata]) -> None:
        self._half = (len({_by_time(split) for split in splits}) + 1) // 2
        self._half_count = self._before = NO_COUNT
        self._own, self._total = _Part(None, None), _Part(None, None)
        self._windows: list[SeriesOfWindow] = []
        self.retyped_rows = 0
        """Rows whose values have an earlier type, so that they cannot be united with those of now."""

    @classmethod
    def of_column(cls, catalog: TableCatalog, splits: Sequence[SplitMetadata], name: str, kind: pa.DataType) -> _Union:
        """What is on record of a column; values of another type that it once had are not united with those of now."""
        union = cls(splits)
        for page in _pages(splits):
            found = catalog.load([split_id_of(split) for split in page], [name], with_samples=False)
            for split in page:
                summary = found.get(split.split_id, {}).get(name)
                if summary is None:
                    union.add(split, None, 0)
                elif domain_of(summary.type) == domain_of(kind):
                    union.add(split, summary.sketch, summary.known_rows)
                else:
                    union.add(split, None, 0)
                    union.retyped_rows += summary.known_rows
        return union.ended()

    @property
    def known_rows(self) -> int:
        """Rows whose values are in the sketches."""
        return self._total.known_rows

    def add(self, split: SplitMetadata, sketch: Sketch | None, known_rows: int, ids: Ids | None = None) -> None:
        """Add a split, after all of earlier windows; without a sketch nothing is known of it.

        `ids` are its distinct values, where all of them are on record.
        """
        if _by_time(split) != self._own.key:
            self.ended()
            self._own = _Part(_by_time(split), split.window)
        if sketch is None:
            self._own.add(_Part(None, None, ids=None, rows=split.row_count))
        else:
            self._own.add(_Part(None, None, sketch, ids, split.row_count, known_rows))

    def ended(self) -> _Union:
        """The same after the last split of a window."""
        own = self._own
        if own.key is None:
            return self
        self._total.add(own)
        after = self._total.of_known_rows
        new, error = max(after.estimate - self._before.estimate, 0.0), _error_of_difference(self._before, after)
        self._windows.append(SeriesOfWindow(own.window, own.rows, own.count, new, error))
        self._before = after
        if len(self._windows) == self._half:
            self._half_count = after
        return self

    @property
    def distinct(self) -> DistinctCount | None:
        """The distinct values of all windows; None where none were read."""
        return self._total.count if self.known_rows else None

    @property
    def windows(self) -> tuple[SeriesOfWindow, ...]:
        """The windows; none where nothing was read."""
        return tuple(self._windows) if self.known_rows else ()

    @property
    def growth(self) -> Growth | None:
        """The growth from the first half of the windows on; None of one window, or where rows were not read."""
        has_all = len(self._windows) > 1 and self._total.known_rows == self._total.rows
        return Growth(self._half_count, self._before) if has_all else None


@dataclass(slots=True)
class _Part:
    """What is on record of some splits."""

    key: _Key | None
    window: Window | None
    sketch: Sketch = field(default_factory=Sketch)
    ids: Ids | None = field(default_factory=lambda: np.empty(0, np.int64))
    """The distinct values; None where not all are on record."""
    rows: int = 0
    known_rows: int = 0

    def add(self, other: _Part) -> None:
        """Unite both."""
        self.sketch.merge(other.sketch)
        self.rows, self.known_rows = self.rows + other.rows, self.known_rows + other.known_rows
        ids = None if self.ids is None or other.ids is None else np.union1d(self.ids, other.ids)
        self.ids = None if ids is None or ids.size > _MOST_IDS else ids

    @property
    def of_known_rows(self) -> DistinctCount:
        """The distinct values of the rows that were read."""
        return _count(self.sketch, 0, 0) if self.ids is None else DistinctCount(float(self.ids.size), is_exact=True)

    @property
    def count(self) -> DistinctCount:
        """The distinct values of all rows, of which those that were read tell."""
        count = self.of_known_rows
        return count if self.known_rows >= self.rows else replace(count, is_exact=False, is_vague=True)


class _LabelUnion:
    """The labels and series of all splits, united."""

    def __init__(self, catalog: LabelCatalog, splits: Sequence[SplitMetadata], labels: tuple[str, ...]) -> None:
        self._pairs = {pair: (Sketch(), 0) for pair in pairs_of(labels)}
        self._metrics: dict[str, Sketch] = {}
        self.series = _Union(splits)
        self.other_metrics = 0
        self.values: dict[str, set[str]] = {name: set() for name in labels}
        """The values of labels of which all are on record."""
        for page in _pages(splits):
            found = catalog.load([split_id_of(split) for split in page])
            for split in page:
                summary = found.get(split.split_id)
                if summary is None:
                    self.values.clear()
                    self.series.add(split, None, 0)
                else:
                    self._add(summary)
                    self.series.add(split, summary.series, summary.known_rows, summary.series_ids)
        self.series.ended()

    def _add(self, summary: LabelSummary) -> None:
        for pair in summary.pairs.keys() & self._pairs.keys():
            sketch, rows = self._pairs[pair]
            sketch.merge(summary.pairs[pair])
            self._pairs[pair] = sketch, rows + summary.known_rows
        for name, sketch in summary.metrics.items():
            self._metrics.setdefault(name, Sketch()).merge(sketch)
        for name in list(self.values):
            values = self.values[name].union(summary.values.get(name, ()))
            if name not in summary.values or not summary.is_complete or len(values) > _MOST_IDS:
                del self.values[name]
            else:
                self.values[name] = values
        self.other_metrics = max(self.other_metrics, summary.other_metrics)

    def value_counts(self) -> dict[str, DistinctCount]:
        """The values of labels that are all on record, by label."""
        return {name: DistinctCount(float(len(values)), is_exact=True) for name, values in self.values.items()}

    def pair_counts(self, rows: int) -> dict[Pair, DistinctCount]:
        """The values that labels have together, the most first."""
        counts = {pair: _count(sketch, known, rows) for pair, (sketch, known) in self._pairs.items() if known}
        return dict(sorted(counts.items(), key=lambda each: (-each[1].estimate, each[0])))

    def metric_counts(self, rows: int) -> dict[str, DistinctCount]:
        """The series of metrics, the most first; vague where splits have more metrics than are counted."""
        known = 0 if self.other_metrics else self.series.known_rows
        counts = {name: _count(sketch, known, rows) for name, sketch in self._metrics.items()}
        return dict(sorted(counts.items(), key=lambda each: (-each[1].estimate, each[0])))


def _count(sketch: Sketch, known_rows: int, rows: int) -> DistinctCount:
    """What a sketch tells, when so many of the rows that it is about were read."""
    estimate, is_vague = sketch.estimate, known_rows < rows
    if sketch.is_exact:
        return DistinctCount(float(round(estimate)), is_exact=not is_vague, is_vague=is_vague)
    return DistinctCount(estimate, sketch.error, is_vague=is_vague)


def _pages(splits: Sequence[SplitMetadata]) -> Iterator[Sequence[SplitMetadata]]:
    return (splits[start : start + _PAGE] for start in range(0, len(splits), _PAGE))

"""What is known of the labels and series of one file: pairs of labels, series of each metric, and few values in full.

A label is a column that tells series apart. All of it follows from the distinct sets of labels in a file, of which
there are as many as series, however many rows it has. It is bounded: so many labels, metrics and values, and sketches
of fewer registers where there are many of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from windrow.statistics.layout import FileId
from windrow.statistics.sketch import Sketch, united

__all__ = [
    "MOST_LABELS",
    "MOST_METRICS",
    "MOST_SERIES",
    "MOST_VALUES",
    "LabelSummary",
    "Pair",
    "covered_labels",
    "few_series",
    "few_values",
    "merged_labels",
    "most_numerous",
    "pairs_of",
]

MOST_LABELS = 16
"""Labels of a table whose pairs are counted: the first ones of the table."""
MOST_METRICS = 256
"""Metrics of a file whose series are counted: those that have most of them."""
MOST_SERIES = 1024
"""So many series of a file have their ids on record, which makes their number exact."""
MOST_VALUES = 1024
"""So many values of a label are on record in full, if they are not long."""
_MOST_TEXT = 16 * 1024

Pair = tuple[str, str]
"""The names of two labels, in the order of the table."""
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class LabelSummary:
    """The labels and series of one content of a file."""

    file: FileId
    rows: int
    """Rows of the file."""
    known_rows: int
    """Rows whose labels were read, by whoever wrote this file from others too."""
    labels: tuple[str, ...]
    """The labels whose pairs are counted."""
    series: Sketch = field(default_factory=Sketch)
    series_ids: Ids | None = None
    """The ids of all series, ascending; None where there are many, or they have none."""
    pairs: Mapping[Pair, Sketch] = field(default_factory=dict)
    """Values that two labels have together; rows in which one of them is null count for none."""
    metrics: Mapping[str, Sketch] = field(default_factory=dict)
    """The series of each metric."""
    other_metrics: int = 0
    """Metrics whose series are not counted."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """All values of a label that has few, in order, without null."""
    has_ids: bool = False
    """Whether the ids of series are in the rows, not made of their metric and tags."""

    @property
    def is_complete(self) -> bool:
        """Whether all rows were read."""
        return self.known_rows == self.rows


def pairs_of(labels: Sequence[str]) -> list[Pair]:
    """All pairs of some labels."""
    return list(combinations(labels, 2))


def covered_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels of a table whose pairs are counted."""
    return tuple(labels[:MOST_LABELS])


def few_values(values: Iterable[str]) -> tuple[str, ...] | None:
    """Values in order; None where there are too many, or too long ones, to have them all on record."""
    found = sorted(set(values))
    size = sum(len(value.encode()) for value in found)
    return tuple(found) if len(found) <= MOST_VALUES and size <= _MOST_TEXT else None


def few_series(parts: Iterable[Ids | None]) -> Ids | None:
    """The ids of several parts together; None where one has none, or all are too many."""
    found = np.empty(0, np.int64)
    for part in parts:
        if part is None:
            return None
        found = np.union1d(found, part)
        if found.size > MOST_SERIES:
            return None
    return found


def most_numerous(metrics: Mapping[str, Sketch]) -> dict[str, Sketch]:
    """The metrics that are counted: those of most series, and of equal ones the first by name."""
    ordered = sorted(metrics, key=lambda name: (-metrics[name].estimate, name))
    return {name: metrics[name] for name in sorted(ordered[:MOST_METRICS])}


def merged_labels(parts: Sequence[LabelSummary | None], file: FileId, rows: int) -> LabelSummary | None:
    """What is known of the labels of a file that holds the rows of others and was not read; None where nothing is.

    A part of which nothing is known is None; what is on record in full must be so in every part.
    """
    known = [part for part in parts if part is not None]
    if not known:
        return None
    is_whole = len(known) == len(parts)
    labels = tuple(name for name in known[0].labels if all(name in part.labels for part in known))
    names = sorted({name for part in known for name in part.metrics})
    metrics = {name: united(part.metrics[name] for part in known if name in part.metrics) for name in names}
    chosen = most_numerous(metrics)
    merged = LabelSummary(
        file,
        rows,
        sum(part.known_rows for part in known),
        labels,
        united(part.series for part in known),
        few_series(part.series_ids for part in known) if is_whole else None,
        {pair: united(part.pairs[pair] for part in known if pair in part.pairs) for pair in pairs_of(labels)},
        chosen,
        max(part.other_metrics for part in known) + len(metrics) - len(chosen),
    )
    values = _common_values(known) if is_whole else {}
    return replace(merged, values=values, has_ids=all(part.has_ids for part in known))


def _common_values(parts: Sequence[LabelSummary]) -> dict[str, tuple[str, ...]]:
    names = [name for name in parts[0].values if all(name in part.values for part in parts)]
    found = {name: few_values(value for part in parts for value in part.values[name]) for name in names}
    return {name: values for name, values in found.items() if values is not None}

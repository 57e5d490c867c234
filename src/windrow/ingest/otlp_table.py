"""Points of OpenTelemetry metrics, collected and turned into an Arrow table."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.ingest.attributes import POINT_COLUMNS, RESIDUAL, RESIDUAL_TYPE, AttributeCounts
from windrow.ingest.otlp_points import Attributes, Metric, Sample
from windrow.model.points import VALUE

__all__ = ["PointTable"]

_PER_METRIC = tuple(POINT_COLUMNS)[:8]
"""The columns that do not change from point to point."""


class PointTable:
    """Collects points. What many rows share, a metric's head and a set of attributes, is stored once and coded."""

    def __init__(self) -> None:
        self._heads: dict[tuple[Any, ...], int] = {}
        self._tag_sets: dict[tuple[Attributes, Attributes], int] = {}
        self._head_codes, self._tag_codes = array("q"), array("q")
        self._times, self._starts, self._values = array("q"), array("q"), array("d")

    def add(self, metric: Metric) -> None:
        """Add a row for each sample of each point."""
        for point in (point for point in metric.points if point.samples):
            tags = _code(self._tag_sets, (metric.context, point.attributes))
            for sample in point.samples:
                self._head_codes.append(_code(self._heads, _head(metric, sample)))
                self._tag_codes.append(tags)
                self._times.append(point.time)
                self._starts.append(point.start)
                self._values.append(sample.value)

    def counts(self) -> AttributeCounts:
        """Return how many rows have which attribute."""
        rows: Counter[str] = Counter()
        for each, count in zip(self._sets(), np.bincount(self._tag_codes).tolist(), strict=True):
            rows.update(dict.fromkeys(each, count))
        return AttributeCounts(len(self._tag_codes), rows)

    def to_arrow(self, promoted: frozenset[str]) -> pa.Table:
        """Return the rows in the order they came: the columns of a point, then the promoted attributes among theirs."""
        heads, tags = pa.array(np.array(self._head_codes)), pa.array(np.array(self._tag_codes))
        per_metric = zip(*self._heads, strict=True) if self._heads else ((),) * len(_PER_METRIC)
        columns = {
            name: pa.array(values, POINT_COLUMNS[name]).take(heads)
            for name, values in zip(_PER_METRIC, per_metric, strict=True)
        }
        columns |= {"timestamp": _times(self._times), "start_timestamp": _times(self._starts)}
        columns |= {VALUE: pa.array(np.array(self._values))}
        columns |= {name: values.take(tags) for name, values in _attribute_columns(self._sets(), promoted).items()}
        return pa.table(columns)

    def _sets(self) -> list[dict[str, str]]:
        """The different sets of attributes, by their codes."""
        return [dict(context) | dict(own) for context, own in self._tag_sets]


def _head(metric: Metric, sample: Sample) -> tuple[Any, ...]:
    """Return the values of the columns that do not change from point to point."""
    return (
        metric.name + sample.suffix,
        metric.kind,
        metric.unit or None,
        metric.description or None,
        metric.temporality,
        metric.monotonic,
        sample.upper_bound,
        sample.quantile,
    )


def _times(nanoseconds: array[int]) -> pa.Array:
    times = np.array(nanoseconds)
    return pa.array(times, mask=times == 0).cast(POINT_COLUMNS["timestamp"])


def _code(codes: dict[Any, int], key: Any) -> int:
    return codes.setdefault(key, len(codes))


def _attribute_columns(sets: Sequence[Mapping[str, str]], promoted: frozenset[str]) -> dict[str, pa.Array]:
    """Return a column for each promoted attribute that is there, and one for the others, with a row for each set."""
    names = sorted(promoted.intersection(chain.from_iterable(sets)))
    columns = {name: pa.array([each.get(name) for each in sets], pa.string()) for name in names}
    rest = [[(name, each[name]) for name in sorted(each) if name not in columns] or None for each in sets]
    return columns | {RESIDUAL: pa.array(rest, RESIDUAL_TYPE)}

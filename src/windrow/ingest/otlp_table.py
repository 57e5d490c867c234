"""Points of OpenTelemetry metrics as an Arrow table: which attributes become columns, and which stay together."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.ingest.otlp_points import Attributes, Metric, Sample
from windrow.model.points import METRIC_NAME, METRIC_TYPE, VALUE
from windrow.model.timeseries import TIMESERIES_ID

__all__ = ["NOT_ATTRIBUTES", "RESIDUAL", "PointTable"]

RESIDUAL = "attributes"
"""The column of the attributes that are too rare for one of their own."""

_TIME = pa.timestamp("ns", "UTC")
_PER_METRIC = {
    METRIC_NAME: pa.string(),
    METRIC_TYPE: pa.uint8(),
    "unit": pa.string(),
    "description": pa.string(),
    "temporality": pa.string(),
    "is_monotonic": pa.bool_(),
    "upper_bound": pa.string(),
    "quantile": pa.string(),
}

NOT_ATTRIBUTES = frozenset([*_PER_METRIC, "timestamp", "start_timestamp", VALUE, RESIDUAL, TIMESERIES_ID])
"""Columns that no attribute takes: one of such a name stays in the residual column."""


class PointTable:
    """Collects points. What many rows share, a metric's head and a set of attributes, is kept once and coded."""

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

    def to_arrow(self, *, rare: float, already_promoted: frozenset[str]) -> pa.Table:
        """Return the rows in the order they came, with the columns of one point first, then attributes by name."""
        heads, tags = np.array(self._head_codes), np.array(self._tag_codes)
        per_metric = zip(*self._heads, strict=True) if self._heads else ((),) * len(_PER_METRIC)
        columns = {
            name: pa.array(values, kind).take(pa.array(heads))
            for (name, kind), values in zip(_PER_METRIC.items(), per_metric, strict=True)
        }
        columns |= {"timestamp": _times(self._times), "start_timestamp": _times(self._starts)}
        columns |= {VALUE: pa.array(np.array(self._values))}
        sets = [dict(context) | dict(own) for context, own in self._tag_sets]
        return pa.table(columns | _attribute_columns(sets, tags, rare, already_promoted))


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
    return pa.array(times, mask=times == 0).cast(_TIME)


def _code(codes: dict[Any, int], key: Any) -> int:
    return codes.setdefault(key, len(codes))


def _attribute_columns(
    sets: Sequence[Mapping[str, str]], codes: npt.NDArray[np.int64], rare: float, already_promoted: frozenset[str]
) -> dict[str, pa.Array]:
    rows = np.bincount(codes, minlength=len(sets)).tolist()
    promoted = _promoted(sets, rows, rare, already_promoted)
    columns = {name: pa.array([each.get(name) for each in sets], pa.string()) for name in promoted}
    rest = [[(name, each[name]) for name in sorted(each) if name not in columns] or None for each in sets]
    columns[RESIDUAL] = pa.array(rest, pa.map_(pa.string(), pa.string()))
    return {name: values.take(pa.array(codes)) for name, values in columns.items()}


def _promoted(
    sets: Sequence[Mapping[str, str]], rows: Sequence[int], rare: float, already_promoted: frozenset[str]
) -> list[str]:
    """Return the attributes that become columns, in order: those that were before, and those that are not rare.

    Engines do not tell columns apart by case, so that of names that differ in nothing else only one becomes a column.
    """
    counts: Counter[str] = Counter()
    for each, count in zip(sets, rows, strict=True):
        counts.update(dict.fromkeys(each, count))
    fewest = rare * sum(rows)
    promoted = (already_promoted & counts.keys()) - NOT_ATTRIBUTES
    taken = {name.casefold() for name in NOT_ATTRIBUTES | already_promoted}
    for name in sorted(counts):
        if name and counts[name] >= fewest and name.casefold() not in taken:
            promoted |= {name}
            taken.add(name.casefold())
    return sorted(promoted)

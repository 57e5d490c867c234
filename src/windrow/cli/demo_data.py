"""The points of the demo: what a small fleet of servers would report in two hours, the same for the same seed.

Most points lie in the two hours, some came late and lie in the hour before, and a few have lost their timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SERIES", "DemoPlan", "generate", "series_points"]

Floats = npt.NDArray[np.float64]

_SPAN_SECONDS = 2 * 3600
_LATE_SECONDS = 3600
_LATE_SHARE = 0.01
_NULL_SHARE = 0.002
_GAUGE, _SUM = 0, 1


@dataclass(frozen=True, slots=True)
class _Metric:
    """How a metric walks: where it begins, how far a step goes, and between which bounds it stays."""

    name: str
    kind: int
    begin: float
    step: float
    low: float
    high: float


_METRICS = (
    _Metric("cpu.usage", _GAUGE, 35, 0.8, 0, 100),
    _Metric("memory.used_mib", _GAUGE, 2048, 24, 256, 8192),
    _Metric("disk.writes", _SUM, 60, 6, 0, 1000),
    _Metric("http.requests", _SUM, 150, 9, 1, 2000),
    _Metric("http.errors", _SUM, 2, 0.4, 0, 40),
    _Metric("http.latency_ms", _GAUGE, 45, 3, 2, 1500),
)
_SERVICES = ("cart", "checkout", "payments", "search", "web")
_REGIONS = ("eu-west", "us-east")
_HOSTS_PER_SERVICE = 20
_STAGING_EVERY = 5
SERIES = len(_METRICS) * len(_SERVICES) * _HOSTS_PER_SERVICE
"""How many series report: each metric of each host."""

_SPARK_SCHEMA = (
    "metric_name string, metric_type tinyint, service string, env string, host string, region string, "
    "timestamp timestamp, value double"
)


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Which points to make; equal plans make equal points."""

    points: int
    seed: int
    end: int
    """The second after the last point; the points lie in the two hours before it."""

    @property
    def start(self) -> int:
        """The first second of the two hours; points before it are late."""
        return self.end - _SPAN_SECONDS

    def samples(self, series: int) -> int:
        """How many points a series has, so that all of them together are as many as wanted."""
        return self.points // SERIES + (series < self.points % SERIES)


def generate(spark: SparkSession, plan: DemoPlan, tasks: int = 4) -> DataFrame:
    """Return the points as a DataFrame; they do not depend on the number of tasks."""

    def points(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for series in batch.column(0).to_pylist():
                yield series_points(plan, series)

    return spark.range(0, SERIES, 1, tasks).mapInArrow(points, _SPARK_SCHEMA)


def series_points(plan: DemoPlan, series: int) -> pa.RecordBatch:
    """Return the points of one series: one metric of one host."""
    host, metric = series // len(_METRICS), _METRICS[series % len(_METRICS)]
    number, service = host // len(_SERVICES), _SERVICES[host % len(_SERVICES)]
    count = plan.samples(series)
    random = np.random.default_rng([plan.seed, series])
    values = _walk(random, metric, count)
    return pa.RecordBatch.from_pydict(
        {
            "metric_name": pa.repeat(metric.name, count),
            "metric_type": pa.repeat(pa.scalar(metric.kind, pa.int8()), count),
            "service": pa.repeat(service, count),
            "env": pa.repeat("prod" if number % _STAGING_EVERY else "staging", count),
            "host": pa.repeat(f"{service}-{number:02}", count),
            "region": pa.repeat(_REGIONS[number % len(_REGIONS)], count),
            "timestamp": _timestamps(random, plan, count),
            "value": pa.array(values, pa.float64()),
        }
    )


def _walk(random: np.random.Generator, metric: _Metric, count: int) -> Floats:
    """A gauge wanders; a sum counts what happened since the last point, at a rate that wanders."""
    begin = metric.begin * random.uniform(0.6, 1.4)
    level = _between(begin + np.cumsum(random.normal(0, metric.step, count)), metric.low, metric.high)
    return random.poisson(level).astype(np.float64) if metric.kind == _SUM else np.round(level, 3)


def _between(walk: Floats, low: float, high: float) -> Floats:
    """Turn a walk back where it would leave its bounds."""
    span = high - low
    folded: Floats = low + span - np.abs((walk - low) % (2 * span) - span)
    return folded


def _timestamps(random: np.random.Generator, plan: DemoPlan, count: int) -> pa.Array:
    micros = 10**6
    steps = (np.arange(count) + random.uniform(0, 1, count)) / max(count, 1)
    times = plan.start * micros + (steps * _SPAN_SECONDS * micros).astype(np.int64)
    late = plan.start * micros - random.integers(1, _LATE_SECONDS * micros, count)
    times = np.where(random.random(count) < _LATE_SHARE, late, times)
    lost = random.random(count) < _NULL_SHARE
    return pa.array(times, mask=lost, type=pa.int64()).cast(pa.timestamp("us", tz="UTC"))

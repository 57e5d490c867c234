"""The points of OpenTelemetry metrics, whatever they were encoded in: what a reader must find, and what becomes of it.

A point holds samples, and each sample becomes one row. Its name is the metric's with a suffix:

| metric | samples |
|---|---|
| gauge, sum | the value, without a suffix |
| histogram | `_bucket` for each bucket, with its `upper_bound`; `_count`; `_sum`, `_min`, `_max` where they are given |
| exponential histogram | the same; buckets without a count are left out |
| summary | the value at each `quantile`, without a suffix; `_count`; `_sum` |

The count of a bucket is that of the bucket alone, as in OTLP; it is not summed up over lower buckets. The last bucket
ends at `+Inf`. The buckets of an exponential histogram end where its scale says, rounded to 12 digits; that around zero
ends at the zero threshold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from windrow.errors import Damaged

__all__ = [
    "NO_RECORDED_VALUE",
    "AttributeValue",
    "Attributes",
    "Distribution",
    "Metric",
    "MetricType",
    "Point",
    "Sample",
    "attribute_text",
    "explicit_buckets",
    "exponential_buckets",
    "finite",
    "moment",
    "naming",
    "scope_attributes",
    "summary_samples",
    "temporality_name",
]

AttributeValue = str | bool | int | float | list["AttributeValue"] | dict[str, "AttributeValue"] | None
"""The value of an attribute; bytes are their base64 text."""

Attributes = tuple[tuple[str, str], ...]
"""Names and texts, in the order of the file; of a name that is there twice, the last one counts."""

NO_RECORDED_VALUE = 1
"""The bit of a point's flags that says that it has no value."""

_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
_TEMPORALITIES = {1: "delta", 2: "cumulative"}
_LATEST = 2**63 - 1


class MetricType(IntEnum):
    """What a metric is, as the column `metric_type` holds it."""

    GAUGE = 0
    SUM = 1
    HISTOGRAM = 2
    EXPONENTIAL_HISTOGRAM = 3
    SUMMARY = 4


class Sample(NamedTuple):
    """One value of a point."""

    suffix: str
    value: float
    upper_bound: str | None = None
    quantile: str | None = None


class Point(NamedTuple):
    """What a metric was at one moment, for one set of attributes. Times are nanoseconds, 0 where there is none."""

    attributes: Attributes
    start: int
    time: int
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its points."""

    name: str
    kind: MetricType
    unit: str
    description: str
    temporality: str | None
    monotonic: bool | None
    context: Attributes
    """The attributes of its resource, then of its scope."""
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram of either sort, its buckets as (upper bound, count)."""

    count: int
    total: float | None
    minimum: float | None
    maximum: float | None
    buckets: Sequence[tuple[float, int]]

    def samples(self) -> list[Sample]:
        """Return a sample for each bucket and one for each sum."""
        sums = {"_count": self.count, "_sum": self.total, "_min": self.minimum, "_max": self.maximum}
        return [
            *(Sample("_bucket", float(count), upper_bound=_number_text(bound)) for bound, count in self.buckets),
            *(Sample(suffix, float(value)) for suffix, value in sums.items() if value is not None),
        ]


def explicit_buckets(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[float, int]]:
    """Return the buckets of a histogram, which has one count more than bounds, or none."""
    if counts and len(counts) != len(bounds) + 1:
        raise Damaged(f"a histogram has {len(counts)} bucket counts for {len(bounds)} bounds; expected one more")
    return list(zip([*bounds, math.inf], counts, strict=True)) if counts else []


def exponential_buckets(
    scale: int,
    zero: tuple[float, int],
    negative: tuple[int, Sequence[int]],
    positive: tuple[int, Sequence[int]],
) -> list[tuple[float, int]]:
    """Return the buckets that have a count, in order; `negative` and `positive` are (offset, counts).

    The bucket i holds what is above base**i, up to base**(i+1), for a base of 2**(2**-scale).
    """
    below = [(-_power(negative[0] + place, scale), count) for place, count in enumerate(negative[1])]
    above = [(_power(positive[0] + place + 1, scale), count) for place, count in enumerate(positive[1])]
    return [(_rounded(bound), count) for bound, count in [*below[::-1], zero, *above] if count]


def summary_samples(count: int, total: float, quantiles: Sequence[tuple[float, float]]) -> list[Sample]:
    """Return a sample for each quantile, which is (share, value), and the sums."""
    return [
        *(Sample("", value, quantile=_number_text(share)) for share, value in quantiles),
        Sample("_count", float(count)),
        Sample("_sum", total),
    ]


def scope_attributes(name: str, version: str, attributes: Attributes) -> Attributes:
    """Return the attributes of a scope; its name and version are attributes too, by OpenTelemetry's names for them."""
    named = (("otel.scope.name", name), ("otel.scope.version", version))
    return (*((key, text) for key, text in named if text), *attributes)


def attribute_text(value: AttributeValue) -> str | None:
    """Return the text of an attribute: a string is its own, all else is written as JSON, nothing is None."""
    if value is None or isinstance(value, str):
        return value
    return _as_json(value)


def finite(value: float) -> float | str:
    """Return a number of an attribute as JSON can hold it."""
    return value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]


def moment(nanoseconds: int) -> int:
    """Return a time since the epoch that can be stored."""
    if nanoseconds > _LATEST:
        raise Damaged(f"a time of {nanoseconds} ns lies beyond the year 2262; expected nanoseconds since 1970")
    return nanoseconds


def temporality_name(number: int) -> str | None:
    """Return what a sum or a histogram counts from: the last report or a fixed start."""
    return _TEMPORALITIES.get(number)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Say in the error of anything damaged inside where it is."""
    try:
        yield
    except Damaged as error:
        raise Damaged(f"{what}: {error}") from None
    except RecursionError:
        raise Damaged(f"{what}: an attribute is nested too deeply; expected a few levels") from None


def _power(index: int, scale: int) -> float:
    try:
        return math.pow(2.0, math.ldexp(index, -scale))
    except OverflowError:
        return math.inf if index > 0 else 0.0


def _rounded(bound: float) -> float:
    """Drop the last digits: they differ between machines, and a bound is part of a series' name."""
    return float(f"{bound:.12g}")


def _number_text(number: float) -> str:
    # The sum turns -0.0 into 0.0: both are one bound, and must name one series.
    return "+Inf" if number == math.inf else repr(float(number) + 0.0)

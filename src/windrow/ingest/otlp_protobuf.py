"""OpenTelemetry metrics as protobuf: one ExportMetricsServiceRequest, or many, each behind its length.

The length is a varint, as the protobuf libraries write it, or four bytes, most significant first, as the OpenTelemetry
Collector does. A request shows by its shape: all its fields are of one kind and end where it ends.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from windrow.errors import Damaged
from windrow.extras import require
from windrow.ingest.otlp_points import (
    NO_RECORDED_VALUE,
    Attributes,
    AttributeValue,
    Distribution,
    Metric,
    MetricType,
    Point,
    Sample,
    attribute_text,
    explicit_buckets,
    exponential_buckets,
    finite,
    moment,
    naming,
    scope_attributes,
    summary_samples,
    temporality_name,
)

__all__ = ["protobuf_metrics", "requests"]

_EXPECTED = (
    "expected an ExportMetricsServiceRequest of OTLP metrics, as JSON or serialized, or many behind their lengths"
)
_RESOURCE_METRICS_TAG = 0x0A
_LONGEST_VARINT = 5

Length = Callable[[memoryview, int], tuple[int, int] | None]
"""Reads a length at a place: the length and where what it measures starts; None when there is none."""


def requests(data: bytes) -> list[memoryview] | None:
    """Return the bytes of each request of a file, None when it does not hold requests."""
    view = memoryview(data)
    if _is_request(view):
        return [view]
    # A frame is not empty: else a file of zeros would be one of requests.
    return _cut(view, _varint, _is_request) or _cut(view, _four_bytes, _is_request)


def protobuf_metrics(request: memoryview | bytes) -> Iterator[Metric]:
    """Yield the metrics of a serialized request."""
    parsed_request, not_parsed = _library()
    try:
        message = parsed_request(bytes(request))
    except not_parsed as error:
        raise Damaged(f"{_EXPECTED}; {error}") from None
    if not message.resource_metrics:
        raise Damaged(f"{_EXPECTED}; found bytes without resource metrics")
    for resource in message.resource_metrics:
        of_resource = _attributes(resource.resource.attributes)
        for scope in resource.scope_metrics:
            of_scope = scope_attributes(scope.scope.name, scope.scope.version, _attributes(scope.scope.attributes))
            for metric in scope.metrics:
                with naming(f"metric {metric.name!r}"):
                    parsed = _metric(metric, of_resource + of_scope)
                if parsed is not None:
                    yield parsed


@cache
def _library() -> tuple[Callable[[bytes], Any], type[Exception]]:
    """What parses a request, and the error when it cannot."""
    require("otlp")
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    return ExportMetricsServiceRequest.FromString, DecodeError


def _is_request(frame: memoryview) -> bool:
    return bool(_cut(frame, _field))


def _cut(
    view: memoryview, length: Length, fits: Callable[[memoryview], bool] = lambda _: True
) -> list[memoryview] | None:
    """Return what lies behind each length, None unless all of it fits and ends where the bytes end."""
    frames, place = [], 0
    while place < len(view):
        size, start = length(view, place) or (0, len(view) + 1)
        place = start + size
        if place > len(view) or not fits(view[start:place]):
            return None
        frames.append(view[start:place])
    return frames


def _field(view: memoryview, place: int) -> tuple[int, int] | None:
    return _varint(view, place + 1) if view[place] == _RESOURCE_METRICS_TAG else None


def _varint(view: memoryview, place: int) -> tuple[int, int] | None:
    value = 0
    for number, byte in enumerate(view[place : place + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return value, place + number + 1
    return None


def _four_bytes(view: memoryview, place: int) -> tuple[int, int] | None:
    return int.from_bytes(view[place : place + 4], "big"), place + 4


def _metric(metric: Any, context: Attributes) -> Metric | None:
    kind = metric.WhichOneof("data")
    if kind not in _KINDS:
        return None
    type_, samples = _KINDS[kind]
    data = getattr(metric, kind)
    return Metric(
        name=metric.name,
        kind=type_,
        unit=metric.unit,
        description=metric.description,
        temporality=temporality_name(getattr(data, "aggregation_temporality", 0)),
        monotonic=data.is_monotonic if type_ is MetricType.SUM else None,
        context=context,
        points=[
            Point(
                _attributes(point.attributes),
                moment(point.start_time_unix_nano),
                moment(point.time_unix_nano),
                () if point.flags & NO_RECORDED_VALUE else samples(point),
            )
            for point in data.data_points
        ],
    )


def _number(point: Any) -> list[Sample]:
    kind = point.WhichOneof("value")
    return [Sample("", float(getattr(point, kind)))] if kind is not None else []


def _histogram(point: Any) -> list[Sample]:
    return _distribution(point, explicit_buckets(point.explicit_bounds, point.bucket_counts))


def _exponential(point: Any) -> list[Sample]:
    negative, positive = point.negative, point.positive
    buckets = exponential_buckets(
        point.scale,
        (point.zero_threshold, point.zero_count),
        (negative.offset, negative.bucket_counts),
        (positive.offset, positive.bucket_counts),
    )
    return _distribution(point, buckets)


def _distribution(point: Any, buckets: list[tuple[float, int]]) -> list[Sample]:
    total, low, high = (getattr(point, name) if point.HasField(name) else None for name in ("sum", "min", "max"))
    return Distribution(point.count, total, low, high, buckets).samples()


def _summary(point: Any) -> list[Sample]:
    quantiles = [(each.quantile, each.value) for each in point.quantile_values]
    return summary_samples(point.count, point.sum, quantiles)


_KINDS: dict[str, tuple[MetricType, Callable[[Any], list[Sample]]]] = {
    "gauge": (MetricType.GAUGE, _number),
    "sum": (MetricType.SUM, _number),
    "histogram": (MetricType.HISTOGRAM, _histogram),
    "exponential_histogram": (MetricType.EXPONENTIAL_HISTOGRAM, _exponential),
    "summary": (MetricType.SUMMARY, _summary),
}


def _attributes(pairs: Iterable[Any]) -> Attributes:
    texts = [(pair.key, attribute_text(_value(pair.value))) for pair in pairs]
    return tuple([(key, text) for key, text in texts if text is not None])


def _value(value: Any) -> AttributeValue:
    kind = value.WhichOneof("value")
    if kind in ("string_value", "bool_value", "int_value"):
        return getattr(value, kind)  # type: ignore[no-any-return]
    if kind == "double_value":
        return finite(value.double_value)
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    return None

"""OpenTelemetry metrics as JSON: ExportMetricsServiceRequest objects, one in a file or one on each line.

It is protobuf's JSON with the rules of OTLP: names in lowerCamelCase, enumerations as numbers, 64-bit integers as
strings or numbers. A field that is null is absent, an unknown field is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from windrow.errors import Damaged
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

__all__ = ["json_metrics", "json_requests"]

Json = dict[str, Any]

_RESOURCE_METRICS = "resourceMetrics"
_SPACE = re.compile(r"[ \t\r\n]*")
_DIGITS = re.compile(r"-?[0-9]{1,20}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_EXPECTED = "expected ExportMetricsServiceRequests of OTLP metrics as JSON objects, one in the file or one on each line"
_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)
_INT32 = range(-(2**31), 2**31)
_UINT32 = range(2**32)


def json_requests(data: bytes) -> Iterator[Json]:
    """Yield each JSON object of a file."""
    decoder = json.JSONDecoder()
    try:
        text = data.decode("utf-8-sig")
        start = _after_space(text, 0)
        while start < len(text):
            request, end = decoder.raw_decode(text, start)
            if _SURROGATE.search(text, start, end):
                # Half of a character cannot be stored; only an escape can bring it in.
                json.dumps(request, ensure_ascii=False).encode()
            yield _request(request)
            start = _after_space(text, end)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{_EXPECTED}; {error}") from None


def json_metrics(request: Json) -> Iterator[Metric]:
    """Yield the metrics of a request."""
    for resource in _objects(request, _RESOURCE_METRICS):
        of_resource = _attributes(_object(resource, "resource"))
        for scope_metrics in _objects(resource, "scopeMetrics"):
            scope = _object(scope_metrics, "scope")
            of_scope = scope_attributes(_text(scope, "name"), _text(scope, "version"), _attributes(scope))
            for metric in _objects(scope_metrics, "metrics"):
                with naming(f"metric {metric.get('name')!r}"):
                    parsed = _metric(metric, of_resource + of_scope)
                if parsed is not None:
                    yield parsed


def _after_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place


def _request(value: Any) -> Json:
    if not isinstance(value, dict):
        raise Damaged(f"{_EXPECTED}; found {_named(value)}")
    if value and _RESOURCE_METRICS not in value:
        raise Damaged(f"{_EXPECTED}; found an object with {next(iter(value))!r} and without {_RESOURCE_METRICS!r}")
    return value


def _metric(metric: Json, context: Attributes) -> Metric | None:
    kind = next((kind for kind in _KINDS if metric.get(kind) is not None), None)
    if kind is None:
        return None
    type_, samples = _KINDS[kind]
    data = _object(metric, kind)
    return Metric(
        name=_text(metric, "name"),
        kind=type_,
        unit=_text(metric, "unit"),
        description=_text(metric, "description"),
        temporality=temporality_name(_integer(data, "aggregationTemporality", _INT32)),
        monotonic=_flag(data, "isMonotonic") if type_ is MetricType.SUM else None,
        context=context,
        points=[_point(point, samples) for point in _objects(data, "dataPoints")],
    )


def _point(point: Json, samples: Callable[[Json], list[Sample]]) -> Point:
    return Point(
        _attributes(point),
        moment(_integer(point, "startTimeUnixNano", _UINT64)),
        moment(_integer(point, "timeUnixNano", _UINT64)),
        () if _integer(point, "flags", _UINT32) & NO_RECORDED_VALUE else samples(point),
    )


def _value_samples(point: Json) -> list[Sample]:
    if point.get("asInt") is not None:
        return [Sample("", float(_integer(point, "asInt", _INT64)))]
    value = _number(point, "asDouble")
    return [] if value is None else [Sample("", value)]


def _histogram_samples(point: Json) -> list[Sample]:
    bounds = [_as_number(bound, "explicitBounds") for bound in _list(point, "explicitBounds")]
    return _distribution_samples(point, explicit_buckets(bounds, _counts(point)))


def _exponential_samples(point: Json) -> list[Sample]:
    negative, positive = _object(point, "negative"), _object(point, "positive")
    buckets = exponential_buckets(
        _integer(point, "scale", _INT32),
        (_number(point, "zeroThreshold") or 0.0, _integer(point, "zeroCount", _UINT64)),
        (_integer(negative, "offset", _INT32), _counts(negative)),
        (_integer(positive, "offset", _INT32), _counts(positive)),
    )
    return _distribution_samples(point, buckets)


def _distribution_samples(point: Json, buckets: list[tuple[float, int]]) -> list[Sample]:
    total, low, high = (_number(point, name) for name in ("sum", "min", "max"))
    return Distribution(_integer(point, "count", _UINT64), total, low, high, buckets).samples()


def _summary_samples(point: Json) -> list[Sample]:
    quantiles = [
        (_number(each, "quantile") or 0.0, _number(each, "value") or 0.0) for each in _objects(point, "quantileValues")
    ]
    return summary_samples(_integer(point, "count", _UINT64), _number(point, "sum") or 0.0, quantiles)


_KINDS: dict[str, tuple[MetricType, Callable[[Json], list[Sample]]]] = {
    "gauge": (MetricType.GAUGE, _value_samples),
    "sum": (MetricType.SUM, _value_samples),
    "histogram": (MetricType.HISTOGRAM, _histogram_samples),
    "exponentialHistogram": (MetricType.EXPONENTIAL_HISTOGRAM, _exponential_samples),
    "summary": (MetricType.SUMMARY, _summary_samples),
}


def _attributes(owner: Json) -> Attributes:
    pairs = _objects(owner, "attributes")
    texts = [(_text(pair, "key"), attribute_text(_value(_object(pair, "value")))) for pair in pairs]
    return tuple([(key, text) for key, text in texts if text is not None])


def _value(value: Json) -> AttributeValue:
    for kind, content in value.items():
        if content is not None and kind in _VALUES:
            return _VALUES[kind](value)
    return None


_VALUES: dict[str, Callable[[Json], AttributeValue]] = {
    "stringValue": lambda value: _text(value, "stringValue"),
    "boolValue": lambda value: _flag(value, "boolValue"),
    "intValue": lambda value: _integer(value, "intValue", _INT64),
    "doubleValue": lambda value: finite(_as_number(value["doubleValue"], "doubleValue")),
    "bytesValue": lambda value: _text(value, "bytesValue"),
    "arrayValue": lambda value: [_value(each) for each in _objects(_object(value, "arrayValue"), "values")],
    "kvlistValue": lambda value: {
        _text(pair, "key"): _value(_object(pair, "value")) for pair in _objects(_object(value, "kvlistValue"), "values")
    },
}


def _counts(owner: Json) -> list[int]:
    return [_as_integer(count, "bucketCounts", _UINT64) for count in _list(owner, "bucketCounts")]


def _list(owner: Json, field: str) -> list[Any]:
    value = owner.get(field)
    if value is None:
        return []
    return value if isinstance(value, list) else _refuse(field, "a list", value)


def _objects(owner: Json, field: str) -> list[Json]:
    values = _list(owner, field)
    for each in values:
        if not isinstance(each, dict):
            _refuse(field, "a list of objects", each)
    return values


def _object(owner: Json, field: str) -> Json:
    value = owner.get(field)
    if value is None:
        return {}
    return value if isinstance(value, dict) else _refuse(field, "an object", value)


def _text(owner: Json, field: str) -> str:
    value = owner.get(field)
    if value is None:
        return ""
    return value if isinstance(value, str) else _refuse(field, "a string", value)


def _flag(owner: Json, field: str) -> bool:
    value = owner.get(field)
    if value is None:
        return False
    return value if isinstance(value, bool) else _refuse(field, "true or false", value)


def _integer(owner: Json, field: str, allowed: range) -> int:
    value = owner.get(field)
    return 0 if value is None else _as_integer(value, field, allowed)


def _as_integer(value: Any, field: str, allowed: range) -> int:
    number: int | None = None
    if isinstance(value, str):
        number = int(value) if _DIGITS.fullmatch(value) else None
    elif isinstance(value, float):
        number = int(value) if value.is_integer() else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None or number not in allowed:
        _refuse(field, f"an integer from {allowed.start} to {allowed.stop - 1}", value)
    return number


def _number(owner: Json, field: str) -> float | None:
    value = owner.get(field)
    return None if value is None else _as_number(value, field)


def _as_number(value: Any, field: str) -> float:
    try:
        return _refuse(field, "a number", value) if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        _refuse(field, "a number", value)


def _refuse(field: str, expected: str, value: Any) -> NoReturn:
    raise Damaged(f"field {field!r}: expected {expected}, found {_named(value)}")


def _named(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"{json.dumps(value)[:60]}"

"""Every encoding of the same metrics gives the same rows, and broken files give clear words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from tests.ingest.otlp_rows import read_otlp

from windrow.errors import Damaged

DATA = Path(__file__).parents[1] / "data" / "otlp"
FILES = sorted([*DATA.glob("*.binpb"), DATA / "metrics.json", DATA / "stream.jsonl"])


texts = st.sampled_from(["", "a", "b", "größe", "\U0001f600", 'x"\n'])
names = st.sampled_from(["", "a", "b", "service.name", "unit"])
floats = st.floats() | st.sampled_from([0.0, 1.0, -2.5])
counts = st.integers(0, 2**64 - 1)
moments = st.integers(0, 2**63 - 1)
scalars = st.one_of(
    st.builds(AnyValue),
    st.builds(AnyValue, string_value=texts),
    st.builds(AnyValue, bool_value=st.booleans()),
    st.builds(AnyValue, int_value=st.integers(-(2**63), 2**63 - 1)),
    st.builds(AnyValue, double_value=floats),
    st.builds(AnyValue, bytes_value=st.binary(max_size=4)),
)


def pairs(values):
    return st.lists(st.builds(KeyValue, key=names, value=values), max_size=3)


def containers(values):
    arrays = st.builds(ArrayValue, values=st.lists(values, max_size=2))
    maps = st.builds(KeyValueList, values=pairs(values))
    return st.builds(AnyValue, array_value=arrays) | st.builds(AnyValue, kvlist_value=maps)


common = {
    "attributes": pairs(st.recursive(scalars, containers, max_leaves=4)),
    "time_unix_nano": moments,
    "start_time_unix_nano": moments,
    "flags": st.integers(0, 3),
}
exemplars = st.lists(st.builds(pb.Exemplar, trace_id=st.binary(min_size=16, max_size=16)), max_size=1)
numbers = st.one_of(
    st.builds(pb.NumberDataPoint, as_double=floats, exemplars=exemplars, **common),
    st.builds(pb.NumberDataPoint, as_int=st.integers(-(2**63), 2**63 - 1), **common),
    st.builds(pb.NumberDataPoint, **common),
)
shape = {"count": counts, "sum": st.none() | floats, "min": st.none() | floats, "max": st.none() | floats}
histograms = st.integers(-1, 3).flatmap(
    lambda bounds: st.builds(
        pb.HistogramDataPoint,
        explicit_bounds=st.lists(floats, min_size=max(bounds, 0), max_size=max(bounds, 0)),
        bucket_counts=st.lists(counts, min_size=bounds + 1, max_size=bounds + 1),
        **shape,
        **common,
    )
)
buckets = st.builds(
    pb.ExponentialHistogramDataPoint.Buckets,
    offset=st.integers(-(2**31), 2**31 - 1) | st.integers(-20, 20),
    bucket_counts=st.lists(counts, max_size=3),
)
exponentials = st.builds(
    pb.ExponentialHistogramDataPoint,
    scale=st.integers(-(2**31), 2**31 - 1) | st.integers(-5, 10),
    zero_count=counts,
    zero_threshold=floats,
    positive=buckets,
    negative=buckets,
    **shape,
    **common,
)
quantiles = st.builds(pb.SummaryDataPoint.ValueAtQuantile, quantile=floats, value=floats)
summaries = st.builds(
    pb.SummaryDataPoint, count=counts, sum=floats, quantile_values=st.lists(quantiles, max_size=2), **common
)


def some(points):
    return st.lists(points, max_size=3)


temporality = {"aggregation_temporality": st.integers(0, 3)}
sums = st.builds(pb.Sum, data_points=some(numbers), is_monotonic=st.booleans(), **temporality)
kinds = {
    "gauge": st.builds(pb.Gauge, data_points=some(numbers)),
    "sum": sums,
    "histogram": st.builds(pb.Histogram, data_points=some(histograms), **temporality),
    "exponential_histogram": st.builds(pb.ExponentialHistogram, data_points=some(exponentials), **temporality),
    "summary": st.builds(pb.Summary, data_points=some(summaries)),
}
heads = {"name": texts, "unit": texts, "description": texts}
metrics = st.one_of(
    st.builds(pb.Metric, **heads), *(st.builds(pb.Metric, **heads, **{kind: data}) for kind, data in kinds.items())
)
scopes = st.builds(
    pb.ScopeMetrics,
    scope=st.builds(InstrumentationScope, name=texts, version=texts, attributes=pairs(scalars)),
    metrics=some(metrics),
)
resources = st.builds(
    pb.ResourceMetrics,
    resource=st.builds(Resource, attributes=pairs(scalars)),
    scope_metrics=st.lists(scopes, max_size=2),
)
requests = st.builds(ExportMetricsServiceRequest, resource_metrics=st.lists(resources, max_size=2))


def read(data):
    return read_otlp([("test.otlp", data)])


def as_json(request):
    """The request as OTLP writes it: as protobuf does, but for numbers of enumerations and ids in hexadecimal."""
    plain = MessageToDict(request, use_integers_for_enums=True)
    text = json.dumps(plain)
    for point in (point for owner in walk(plain) for point in owner.get("exemplars", ())):
        text = text.replace(json.dumps(point["traceId"]), json.dumps("5b8efff798038103d269b633813fc60c"))
    return text.encode()


def walk(node):
    if isinstance(node, dict):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from walk(each)


def assert_same(left, right):
    """NaN equals NaN here."""
    np.testing.assert_array_equal(np.asarray(left["value"]), np.asarray(right["value"]))
    assert left.drop_columns(["value"]).equals(right.drop_columns(["value"]))


def varint(number):
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


@settings(deadline=None, max_examples=100)
@given(requests)
def test_json_and_protobuf_give_the_same_rows(request):
    assert_same(read(as_json(request)), read(request.SerializeToString()))


@settings(deadline=None)
@given(st.lists(requests, min_size=1, max_size=3))
def test_files_of_many_requests_give_the_rows_of_each(many):
    serialized = [request.SerializeToString() for request in many if request.resource_metrics]
    # A length of 10 looks like the tag of a request, so that ten bytes, too few for a named point, may be misread.
    assume(all(len(each) != 10 for each in serialized))
    expected = read_otlp(("one.binpb", request) for request in serialized)
    assert_same(read(b"\n".join(map(as_json, many))), expected)
    assert_same(read(b"".join(varint(len(each)) + each for each in serialized)), expected)
    assert_same(read(b"".join(len(each).to_bytes(4, "big") + each for each in serialized)), expected)


# Broken files

BROKEN = json.loads((DATA / "damaged.json").read_text(encoding="utf-8"))


def text_of(case):
    if "text" in case:
        return case["text"].replace("DIGITS", "9" * 5000)
    metric = case.get("metric") or {"name": "m", "gauge": {"dataPoints": [case["point"]]}}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]})


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case["case"])
def test_what_is_wrong_is_said(case):
    with pytest.raises(Damaged, match=f"(?s)^test.otlp: .*{case['problem']}"):
        read(text_of(case).encode())


def nested(depth):
    value = '{"arrayValue":{"values":[' * depth + "{}" + "]}}" * depth
    return f'{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"a","value":{value}}}]}}}}]}}'.encode()


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_deep_nesting_is_refused(depth):
    with pytest.raises(Damaged, match="^test.otlp: "):
        read(nested(depth))


@pytest.mark.parametrize("data", [b"\x00" * 100, b"PAR1", b"\x08\x01", b"plain text", b'{"a": "\xff"}', b"\x0a\xff"])
def test_other_files_are_refused(data):
    with pytest.raises(Damaged, match="^test.otlp: expected"):
        read(data)


def test_the_metric_that_is_broken_is_named():
    point = pb.HistogramDataPoint(explicit_bounds=[1.0], bucket_counts=[1])
    metric = pb.Metric(name="latency", histogram=pb.Histogram(data_points=[point]))
    scope = pb.ScopeMetrics(metrics=[metric])
    request = ExportMetricsServiceRequest(resource_metrics=[pb.ResourceMetrics(scope_metrics=[scope])])
    for data in (request.SerializeToString(), as_json(request)):
        with pytest.raises(Damaged, match="^test.otlp: metric 'latency': .*1 bucket counts for 1 bounds"):
            read(data)


def test_the_file_that_is_broken_is_named():
    good = (DATA / "metrics.json").read_bytes()
    with pytest.raises(Damaged, match="^b.json: expected"):
        read_otlp([("a.json", good), ("b.json", good[:-20]), ("c.json", good)])


@pytest.mark.parametrize("name", ["metrics.json", "metrics.binpb"])
def test_a_file_that_was_cut_short_is_refused(name):
    whole = (DATA / name).read_bytes().rstrip()
    # The first byte of a request alone is an empty line.
    for length in range(2, len(whole)):
        with pytest.raises(Damaged):
            read(whole[:length])


def rows_or_words(data):
    try:
        return read(data).num_rows
    except Damaged as error:
        return str(error)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_a_broken_byte_breaks_nothing_else(path, data):
    bytes_ = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        bytes_[data.draw(st.integers(0, len(bytes_) - 1))] = data.draw(st.integers(0, 255))
    assert isinstance(rows_or_words(bytes(bytes_)), int | str)


@given(st.binary(max_size=60))
@example(b"\n{")
def test_random_bytes_are_refused_or_hold_nothing(data):
    found = rows_or_words(data)
    assert found == 0 or found.startswith("test.otlp: ")

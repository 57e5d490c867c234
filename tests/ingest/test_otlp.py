"""OpenTelemetry metrics become rows, and their attributes columns."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest
from tests.ingest.otlp_rows import read_otlp

from windrow.errors import InvalidInput
from windrow.ingest.attributes import RESIDUAL, series_tags
from windrow.ingest.attributes import promoted_attributes as promoted_of_schema
from windrow.ingest.otlp_points import exponential_buckets
from windrow.model.timeseries import timeseries_ids

DATA = Path(__file__).parents[1] / "data" / "otlp"
ONE_REQUEST = ["metrics.json", "metrics.binpb"]
TWO_REQUESTS = ["stream.jsonl", "stream.delimited.binpb", "stream.collector.binpb"]


def file(name):
    return name, (DATA / name).read_bytes()


def read_json(request, **options):
    return read_otlp([("test.json", json.dumps(request).encode())], **options)


def promoted_attributes(table):
    return promoted_of_schema(table.schema)


def request(*metrics, resource=(), scope=()):
    owner = {"attributes": attributes(dict(scope))}
    scope_metrics = [{"scope": owner, "metrics": list(metrics)}]
    return {
        "resourceMetrics": [{"resource": {"attributes": attributes(dict(resource))}, "scopeMetrics": scope_metrics}]
    }


def attributes(texts):
    return [{"key": key, "value": {"stringValue": text}} for key, text in texts.items()]


def gauge(*points):
    """A gauge with a point for each set of attributes."""
    return {"name": "m", "gauge": {"dataPoints": [{"asInt": "1", "attributes": attributes(each)} for each in points]}}


# Rows


def plain_rows(table):
    for name in ("timestamp", "start_timestamp"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int64()))
    for row in table.to_pylist():
        row |= {"value": row["value"] if math.isfinite(row["value"]) else str(row["value"])}
        row |= {RESIDUAL: dict(row[RESIDUAL]) if row[RESIDUAL] else None}
        yield {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize("name", ONE_REQUEST)
def test_every_kind_of_metric_becomes_rows(name):
    expected = json.loads((DATA / "metrics.rows.json").read_text(encoding="utf-8"))
    assert list(plain_rows(read_otlp([file(name)], rare=0.05))) == expected


@pytest.mark.parametrize("name", TWO_REQUESTS)
def test_a_file_may_hold_many_requests(name):
    table = read_otlp([file(name)])
    assert table.num_rows == read_otlp([file("metrics.json")]).num_rows + 1
    assert table["metric_name"][-1].as_py() == "process.cpu.time"
    assert table.equals(read_otlp([file(TWO_REQUESTS[0])]))


def test_many_files_become_one_table():
    table = read_otlp([file("metrics.binpb"), file("stream.jsonl")])
    assert table.num_rows == read_otlp([file("metrics.json")]).num_rows * 2 + 1


def test_the_columns_of_a_point_always_have_the_same_types():
    assert read_otlp([file("metrics.json")]).schema.names[:11] == read_otlp([]).schema.names[:11]
    assert read_otlp([]).schema == pa.schema(
        {
            "metric_name": pa.string(),
            "metric_type": pa.uint8(),
            "unit": pa.string(),
            "description": pa.string(),
            "temporality": pa.string(),
            "is_monotonic": pa.bool_(),
            "upper_bound": pa.string(),
            "quantile": pa.string(),
            "timestamp": pa.timestamp("ns", "UTC"),
            "start_timestamp": pa.timestamp("ns", "UTC"),
            "value": pa.float64(),
            "attributes": pa.map_(pa.string(), pa.string()),
        }
    )


@pytest.mark.parametrize("data", [b"", b"\n \n", b"{}", b"{}\n\n{}\n", b'\xef\xbb\xbf{"resourceMetrics": null}'])
def test_files_without_points_have_no_rows(data):
    assert read_otlp([("empty", data)]).num_rows == 0


@pytest.mark.parametrize(("number", "value"), [(2**53, 2.0**53), (2**53 + 1, 2.0**53), (-(2**63), -(2.0**63))])
def test_integers_are_exact_up_to_the_limit_of_floats(number, value):
    metric = {"name": "m", "gauge": {"dataPoints": [{"asInt": str(number)}]}}
    assert read_json(request(metric))["value"].to_pylist() == [value]


def test_buckets_of_an_exponential_histogram_lie_where_the_scale_says():
    finer = exponential_buckets(3, (0.0, 0), (0, []), (-1, [5, 6, 7]))
    assert finer == [(1.0, 5), (1.09050773267, 6), (1.189207115, 7)]
    coarser = exponential_buckets(-2, (0.0, 4), (0, [1, 2]), (0, [3]))
    assert coarser == [(-16.0, 2), (-1.0, 1), (0.0, 4), (16.0, 3)]


@pytest.mark.parametrize(("scale", "index", "bound"), [(-2000, 1, math.inf), (-2000, -2, 0.0), (2**31, 5, 1.0)])
def test_bounds_beyond_all_floats_end_at_their_limits(scale, index, bound):
    assert exponential_buckets(scale, (0.0, 0), (0, []), (index - 1, [1])) == [(bound, 1)]


# Attributes


def test_the_nearest_owner_of_an_attribute_wins():
    found = read_json(
        request(gauge({}, {"a": "p"}), resource={"a": "r", "b": "r", "c": "r"}, scope={"a": "s", "b": "s"})
    )
    assert found.select(["a", "b", "c"]).to_pylist() == [
        {"a": "s", "b": "s", "c": "r"},
        {"a": "p", "b": "s", "c": "r"},
    ]


def many(rare_rows, rows=200):
    return request(gauge(*({"common": "x"} | ({"rare": str(row)} if row < rare_rows else {}) for row in range(rows))))


def test_a_rare_attribute_stays_in_the_residual_column():
    table = read_json(many(rare_rows=1))
    assert promoted_attributes(table) == {"common"}
    assert table[RESIDUAL].to_pylist() == [[("rare", "0")], *[None] * 199]


def test_an_attribute_of_one_row_in_a_hundred_has_a_column():
    table = read_json(many(rare_rows=2))
    assert promoted_attributes(table) == {"common", "rare"}
    assert table["rare"].to_pylist() == ["0", "1", *[None] * 198]


def test_the_limit_can_be_set():
    assert promoted_attributes(read_json(many(rare_rows=1), rare=0)) == {"common", "rare"}
    assert promoted_attributes(read_json(many(rare_rows=199), rare=1)) == {"common"}


def test_a_promoted_attribute_stays_a_column():
    table = read_json(many(rare_rows=1), already_promoted=frozenset({"rare", "absent", "unit"}))
    assert promoted_attributes(table) == {"common", "rare"}
    assert table[RESIDUAL].null_count == 200


@pytest.mark.parametrize("name", ["", "unit", "Value", "attributes", "timeseries_id", "METRIC_NAME"])
def test_an_attribute_named_like_a_column_stays_in_the_residual_column(name):
    table = read_json(request(gauge({name: "x"})))
    assert promoted_attributes(table) == set()
    assert table[RESIDUAL].to_pylist() == [[(name, "x")]]


def test_of_names_that_differ_in_case_one_becomes_a_column():
    table = read_json(request(gauge({"Host": "a", "host": "b"})))
    assert promoted_attributes(table) == {"Host"}
    table = read_json(request(gauge({"Host": "a", "host": "b"})), already_promoted=frozenset({"host"}))
    assert promoted_attributes(table) == {"host"}
    assert table[RESIDUAL].to_pylist() == [[("Host", "a")]]


@pytest.mark.parametrize("rare", [-0.1, 1.1, math.nan])
def test_a_share_that_is_none_is_refused(rare):
    with pytest.raises(InvalidInput, match="rare_attributes="):
        read_otlp([], rare=rare)


def test_a_series_is_the_same_wherever_its_attributes_live():
    files = [file("stream.jsonl")]
    ids = []
    for rare in (0, 0.05, 1):
        table = read_otlp(files, rare=rare)
        ids.append(timeseries_ids(table, tags=series_tags(table), residual=RESIDUAL))
    assert ids[0] == ids[1] == ids[2]
    assert len(ids[0].unique()) == read_otlp(files).num_rows - 1, "two of the points are of one series"


def test_unit_and_description_do_not_tell_series_apart():
    tags = series_tags(read_otlp([file("metrics.json")]))
    assert {"upper_bound", "quantile", "service.name", "env"} <= set(tags)
    assert not {"unit", "description", "temporality", "metric_name", "attributes"} & set(tags)

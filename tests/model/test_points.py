"""What a row must be: required columns and their types, tags, and what a sort schema says of a table."""

import pyarrow as pa
import pytest

from windrow.errors import InvalidInput
from windrow.model.points import Signal, check_point_schema, is_text, signal_of, tag_columns
from windrow.model.sort_schema import SortSchema

TEXT = pa.dictionary(pa.int32(), pa.string())
METRICS = {"metric_name": TEXT, "metric_type": pa.uint8(), "timestamp": pa.timestamp("us"), "value": pa.float64()}


def check(columns, signal=Signal.METRICS, timestamp="timestamp", unit=None):
    check_point_schema(pa.schema(columns), signal=signal, timestamp=timestamp, timestamp_unit=unit)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metric_name": pa.string()},
        {"metric_name": pa.large_string()},
        {"metric_name": pa.string_view()},
        {"value": pa.int64()},
        {"value": pa.uint8()},
        {"value": pa.float16()},
        {"value": pa.decimal128(10, 2)},
        {"metric_type": pa.int64()},
        {"timestamp": pa.timestamp("ns", "Europe/Berlin")},
        {"timestamp": pa.date32()},
        {"timestamp": pa.date64()},
        {"host": pa.string(), "labels": pa.map_(pa.string(), pa.string())},
    ],
    ids=str,
)
def test_metrics_have_a_name_a_value_and_a_timestamp(changes):
    check(METRICS | changes)


def test_the_type_of_a_metric_is_optional():
    check({name: kind for name, kind in METRICS.items() if name != "metric_type"})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_timestamp_may_be_an_integer_with_a_unit(unit):
    check(METRICS | {"timestamp": pa.uint64()}, unit=unit)


def test_events_only_need_a_timestamp():
    check({"at": pa.timestamp("ms"), "metric_name": pa.int8()}, Signal.EVENTS, "at")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"metric_name": pa.int64()}, "column 'metric_name' is int64, make it text"),
        ({"metric_name": pa.dictionary(pa.int8(), pa.int64())}, "column 'metric_name' is dictionary"),
        ({"metric_name": pa.binary()}, "column 'metric_name' is binary"),
        ({"metric_type": pa.string()}, "column 'metric_type' is string, make it an integer"),
        ({"value": pa.string()}, "column 'value' is string, make it a number"),
        ({"value": pa.bool_()}, "column 'value' is bool"),
        ({"timestamp": pa.string()}, "column 'timestamp' is string, make it a timestamp"),
        ({"timestamp": pa.float64()}, "column 'timestamp' is double"),
        ({"timestamp": pa.time64("us")}, "column 'timestamp' is time64"),
        ({"timestamp": pa.int64()}, "column 'timestamp' holds integers, set timestamp_unit to one of s, ms, us, ns"),
    ],
    ids=str,
)
def test_a_column_of_the_wrong_type_is_named(changes, problem):
    with pytest.raises(InvalidInput) as caught:
        check(METRICS | changes)
    assert problem in str(caught.value)


def test_everything_that_is_wrong_is_named_at_once():
    with pytest.raises(InvalidInput) as caught:
        check({"value": pa.string(), "metric_type": pa.float64(), "host": pa.string()}, unit="h")
    message = str(caught.value)
    assert "these rows cannot be metrics" in message
    for name in ("metric_name", "value", "metric_type", "timestamp"):
        assert f"column {name!r}" in message
    assert "timestamp_unit is 'h', use one of s, ms, us, ns" in message
    assert "host" not in message


def test_a_column_that_is_there_twice_is_refused():
    with pytest.raises(InvalidInput, match="column 'host' is there 2 times"):
        check([*METRICS.items(), ("host", TEXT), ("host", TEXT)])


def test_events_without_their_timestamp_are_refused():
    with pytest.raises(InvalidInput, match="these rows cannot be events: column 'at' is missing"):
        check({"timestamp": pa.timestamp("us")}, Signal.EVENTS, "at")


def tags(columns, declared=None, signal=Signal.METRICS, timestamp="timestamp"):
    return tag_columns(pa.schema(columns), declared=declared, timestamp=timestamp, signal=signal)


COLUMNS = METRICS | {"host": pa.string(), "env": TEXT, "pod": pa.large_string(), "port": pa.int32(), "raw": pa.binary()}


def test_every_text_column_but_the_metric_name_is_a_tag():
    assert tags(COLUMNS) == ("host", "env", "pod")


def test_an_event_may_be_named_as_metrics_are():
    assert tags(COLUMNS, signal=Signal.EVENTS) == ("metric_name", "host", "env", "pod")


@pytest.mark.parametrize("declared", [(), ("env",), ("port", "host", "not there yet")])
def test_declared_tags_are_the_tags(declared):
    assert tags(COLUMNS, declared) == declared


@pytest.mark.parametrize(
    ("schema", "signal"),
    [
        ("metric_name|host|timestamp/V2", Signal.METRICS),
        ("host|timestamp&metric_name/V2", Signal.METRICS),
        ("service|timestamp/V2", Signal.EVENTS),
    ],
)
def test_a_schema_that_names_the_metric_is_for_metrics(schema, signal):
    assert signal_of(SortSchema.parse(schema)) is signal


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(pa.string_view(), True), (TEXT, True), (pa.binary(), False), (pa.dictionary(pa.int8(), pa.binary()), False)],
)
def test_text_may_be_dictionary_encoded(kind, expected):
    assert is_text(kind) is expected

"""Rows are cut at tenants and windows: nothing lost, nothing in a wrong window."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.ingest.steps import add_timeseries_id, check_rows, cut, written_schema
from windrow.model.settings import TableSettings
from windrow.model.window import window_start

EVENTS = TableSettings.of(sort="host|timestamp/V2", window="5m", partition_by=["tenant"])
METRICS = TableSettings.of(sort="metric_name|host|timeseries_id|timestamp/V2")

seconds = st.one_of(st.none(), st.integers(-10_000, 10_000))
points = st.lists(st.tuples(seconds, st.sampled_from(["a", "b", None])), max_size=60)


def events(drawn):
    return pa.table(
        {
            "timestamp": pa.array([second for second, _ in drawn], pa.timestamp("s")),
            "tenant": pa.array([tenant for _, tenant in drawn], pa.string()),
            "number": pa.array(range(len(drawn)), pa.int64()),
        }
    )


@given(points)
def test_every_row_is_in_exactly_one_part_and_each_part_in_one_window_of_one_tenant(drawn):
    seen = []
    for _, window, part in cut(events(drawn), EVENTS):
        numbers = part["number"].to_pylist()
        assert numbers == sorted(numbers, key=lambda number: (drawn[number][0] is None, -(drawn[number][0] or 0)))
        assert len({drawn[number][1] for number in numbers}) == 1
        for number in numbers:
            second = drawn[number][0]
            assert window.overflow if second is None else window.start == window_start(second, 300)
        seen += numbers
    assert sorted(seen) == list(range(len(drawn)))


@given(points)
def test_no_two_parts_share_tenant_and_window(drawn):
    keys = [(tenant, window) for tenant, window, _ in cut(events(drawn), EVENTS)]
    assert len(keys) == len(set(keys))


def test_the_window_comes_from_the_timestamp_column_that_the_sort_schema_names():
    settings = TableSettings.of(sort="host|seen/V2", timestamp="seen", window="5m")
    times = {"seen": pa.array([10, 400], pa.timestamp("s")), "timestamp": pa.array([900, 900], pa.timestamp("s"))}
    rows = pa.table({"host": ["a", "a"], **times})
    assert [window.start for _, window, _ in cut(rows, settings)] == [0, 300]


def test_a_series_id_is_added_when_the_sort_schema_asks_for_it():
    rows = pa.table({"metric_name": ["cpu", "cpu"], "host": ["a", "b"], "value": [1.0, 2.0]})
    ids = add_timeseries_id(rows, METRICS)["timeseries_id"].to_pylist()
    assert len(set(ids)) == 2
    assert written_schema(rows.schema, METRICS).names[-1] == "timeseries_id"
    assert add_timeseries_id(rows, TableSettings.of(sort="host|timestamp/V2")) is rows


def test_a_series_id_that_the_rows_bring_is_kept():
    rows = pa.table({"metric_name": ["cpu"], "value": [1.0], "timeseries_id": [42]})
    assert add_timeseries_id(rows, METRICS)["timeseries_id"].to_pylist() == [42]


def test_rows_without_the_tenant_column_are_refused():
    with pytest.raises(InvalidInput, match="tenant column 'tenant'"):
        check_rows(pa.schema([("timestamp", pa.timestamp("us"))]), EVENTS)


def test_rows_that_cannot_be_points_are_refused_with_all_their_faults():
    with pytest.raises(InvalidInput, match="metric_name.*value"):
        check_rows(pa.schema([("timestamp", pa.timestamp("us"))]), METRICS)

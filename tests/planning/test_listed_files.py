"""Lists of splits that are kept: plans made from them are those that are made without."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.proofs.worlds import compact, visible

import windrow
from windrow.cache import CacheSettings
from windrow.engines.table_relation import scan_context
from windrow.planning.listed_files import ListedVersions
from windrow.planning.table_plans import plan_table
from windrow.questions.naming import Question
from windrow.questions.where import parse_where

START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(number, **more):
    times = [START + timedelta(minutes=5 * number, seconds=10 * n) for n in range(60)]
    columns = {
        "metric_name": [f"metric_{(number + n) % 7}" for n in range(60)],
        "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
        "value": [float(n) for n in range(60)],
        "reading": [float(n) if n % 11 else None for n in range(60)],
    }
    return pa.table(columns | more)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    with windrow.connect(folder / "lake", cache=CacheSettings(folder=folder / "cache")) as lake:
        made = lake.create_table("metrics", sort="metric_name|timestamp/V2", window="15m", mirror=False)
        for number in range(9):
            made.ingest(batch(number))
        made.ingest(batch(4, region=["eu"] * 60, absent=pa.nulls(60, pa.string())))
        compact(made, [each for each in visible(made) if each.window.start == int(START.timestamp())])
        yield made


def planned(table, where, columns, kept, version=None):
    question = Question(columns, None if where is None else parse_where(where))
    record, context = table.record(), scan_context(table.context)
    return plan_table(
        context, table.context.metastore, record, version or record.version, question, explain=True, listed=kept
    )


def rows_of(plan, context):
    """The rows that a virtual file has, as its readers see them."""
    import pyarrow.parquet as pq

    from windrow.reading.read_context import ReadContext
    from windrow.reading.virtual_reader import VirtualReader
    from windrow.storage.handles import Handle

    found = []
    for each in plan.virtual:
        with VirtualReader(each, ReadContext(context.url, context.store)) as reader:
            found += pq.ParquetFile(Handle(reader)).read().to_pylist()
    return found


def moment(minutes):
    return f"timestamp '{START + timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S}'"


CONDITIONS = st.one_of(
    st.none(),
    st.integers(0, 8).map("metric_name = 'metric_{}'".format),
    st.integers(-20, 60).map(lambda m: f"timestamp >= {moment(m)} and timestamp < {moment(m + 7)}"),
    st.tuples(st.integers(0, 8), st.integers(0, 45)).map(
        lambda both: f"metric_name = 'metric_{both[0]}' and timestamp >= {moment(both[1])}"
    ),
    st.just("reading > 1000"),
    st.just("region = 'eu'"),
    st.just("timestamp is null"),
)
COLUMNS = st.sampled_from(
    [None, ("reading",), ("metric_name", "timestamp"), ("region", "absent", "reading"), ("absent",)]
)


@settings(max_examples=60)
@given(st.lists(st.tuples(CONDITIONS, COLUMNS), min_size=1, max_size=4))
def test_plans_from_a_kept_list_are_those_from_the_metastore(table, asked):
    kept = ListedVersions(2**26)
    for where, columns in asked:
        ours, plain = planned(table, where, columns, kept), planned(table, where, columns, None)
        assert rows_of(ours, table.context) == rows_of(plain, table.context)
        assert ours.bytes == plain.bytes
        assert [(each.step, each.kept) for each in ours.steps] == [(each.step, each.kept) for each in plain.steps]


def test_questions_about_the_same_windows_ask_the_metastore_once(table, monkeypatch):
    kept, metastore = ListedVersions(2**26), table.context.metastore
    planned(table, f"timestamp >= {moment(1)} and timestamp < {moment(2)}", None, kept)
    monkeypatch.setattr(metastore, "splits", None)
    planned(table, f"timestamp >= {moment(9)} and timestamp < {moment(14)}", None, kept)


def test_every_version_has_lists_of_its_own(table):
    kept = ListedVersions(2**26)
    assert planned(table, None, ("reading",), kept).rows == 600
    assert planned(table, None, ("reading",), kept, version=1).rows == 60


def test_nothing_is_kept_beyond_the_budget(table):
    kept = ListedVersions(1)
    assert planned(table, None, None, kept).rows == 600
    assert len(kept._lists) == 0


def test_a_lake_without_a_cache_keeps_no_lists(tmp_path):
    with windrow.connect(tmp_path, cache=None) as lake:
        assert lake.context.listed is None

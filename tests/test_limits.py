"""What `connect` is given reaches whatever works on the lake: threads, memory, and options of other stores."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.compaction.compactor import Bounds
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.storage import open_store

ROWS = pa.table({"host": ["a", "b"], "timestamp": pa.array([0, 1], pa.timestamp("us")), "value": [1.0, 2.0]})
SETTINGS = "current_setting('threads')::int as threads, current_setting('memory_limit') as memory"


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=None, threads=1, memory_limit="200MiB") as opened:
        opened.create_table("metrics", sort="host|timestamp/V2").ingest(ROWS)
        yield opened


@pytest.fixture
def table(lake):
    return lake.table("metrics")


BOTH = [{"threads": 1, "memory": "200.0 MiB"}]


def test_limits_reach_queries_of_a_lake_and_of_a_table(lake, table):
    assert lake.sql(f"select {SETTINGS}").to_dict() == BOTH
    assert table.sql(f"select {SETTINGS}").to_dict() == BOTH


def test_limits_reach_scans(table):
    relation = table.scan().to_duckdb()
    assert relation.query("rows", f"select {SETTINGS}").fetchall() == [(1, "200.0 MiB")]
    here = "current_setting('threads')::int = 1 and current_setting('memory_limit') = '200.0 MiB'"
    scan = table.scan(where=here)
    assert (scan.count(), scan.to_arrow().num_rows, scan.to_polars().collect().height) == (2, 2, 2)
    assert scan.context.in_flight == 50 * 2**20
    assert table.scan(memory_budget="1GiB").context.in_flight == 256 * 2**20


def test_lakes_of_one_process_have_limits_of_their_own(tmp_path, table):
    where = "current_setting('threads')::int = 1"
    with windrow.connect(tmp_path / "other", cache=None, threads=3) as other:
        made = other.create_table("metrics", sort="host|timestamp/V2")
        made.ingest(ROWS)
        assert (made.scan(where=where).count(), table.scan(where=where).count()) == (0, 2)


def test_limits_reach_ingest_unless_it_is_given_others(lake):
    run = Ingest.of(lake.context, "metrics", IngestSettings())
    assert (run.threads, run.context.limits.memory, run.memory_budget) == (1, 200 * 2**20, None)
    run = Ingest.of(lake.context, "metrics", IngestSettings(threads=4, memory_budget="1GiB"))
    assert (run.threads, run.memory_budget) == (4, 2**30)


def test_limits_reach_merges_of_this_process_unless_they_are_given_others(lake):
    bounds = Bounds.of(None, None, lake.context.limits)
    assert (bounds.local.tasks, bounds.local.size, bounds.of_a_task) == (1, 200 * 2**20, 512 * 2**20)
    bounds = Bounds.of("1GiB", 2, lake.context.limits)
    assert (bounds.local.tasks, bounds.local.size, bounds.of_a_task) == (2, 2**29, 2**30)


def test_limits_travel_with_a_lake_and_its_tables(lake, table):
    with pickle.loads(pickle.dumps(lake)) as there:
        assert there.context.limits == lake.context.limits
    there = pickle.loads(pickle.dumps(table))
    assert there.context.limits == lake.context.limits
    there.context.close()


@pytest.mark.s3
def test_a_local_lake_takes_options_for_foreign_buckets(tmp_path, s3_url, s3_options):
    bucket, sink = open_store(s3_url, options=s3_options), pa.BufferOutputStream()
    pq.write_table(ROWS, sink)
    for name in ("asked.parquet", "ingested.parquet", "registered.parquet"):
        bucket.put(name, sink.getvalue().to_pybytes())
    with windrow.connect(tmp_path / "lake", cache=None, store_options=s3_options) as lake:
        assert lake.sql(f"select sum(value) as v from '{s3_url}/asked.parquet'").to_dict() == [{"v": 3.0}]
        table = lake.create_table("metrics", sort="host|timestamp/V2")
        for _ in range(2):
            table.ingest(f"{s3_url}/ingested.parquet")
        table.register.run(f"{s3_url}/registered.parquet")
        table.compact.run(threads=1)
        assert lake.sql("select sum(value) as v from metrics").to_dict() == [{"v": 9.0}]
        assert table.scan().to_arrow().num_rows == 6
        assert table.upkeep.check(data=True).sound
        with pickle.loads(pickle.dumps(lake)) as there:
            assert there.sql("select sum(value) as v from metrics").to_dict() == [{"v": 9.0}]

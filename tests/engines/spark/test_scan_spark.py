"""The same scan through DuckDB, Polars, Arrow and Spark, over a folder and over a bucket, gives the same rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.worlds import SORT, connect, fill, plain, points, told

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

# Spark's own reader has no nanoseconds and no times of day.
NATIVE = ["metric_name", "host", "value", "number", "price", "day", "attributes", "on", "zone", "blob", "rack"]
ALL = [*NATIVE, "timestamp", "seen", "clock"]
EXACT = [
    None,
    "not (value <= 0.5) and value <> 0.75 or value = 'nan'::double",
    "zone = 'z1' and (rack = 'r1' or rack is null)",
    "number >= 2.5 and number < 1000000000000 or price between 12.5 and 700",
    "day >= '2024-04-13' and day < date '2024-05-02'",
    "HOST like 'h1%' or host in ('h2', 'it''s', 'back\\slash')",
]
OTHERS = [
    'value * 2 > 1 or "on"',
    "length(host) = 2 and timestamp > '2024-05-01 12:20:00'",
    "seen > '2024-05-01 12:00:30'",
    "clock < time '06:00:00'",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("scan")
    with connect({"url": str(place / "lake")}) as lake:
        rows = plain(fill(lake, place))
        yield lake.table("metrics"), rows


@pytest.fixture
def bucket(tmp_path, s3_url, s3_options):
    place = {"url": s3_url, "metastore": f"sqlite:///{tmp_path}/windrow.db", "store_options": s3_options}
    with connect(place) as lake:
        rows = plain(fill(lake, tmp_path))
        yield lake.table("metrics"), rows


def is_native(frame):
    return "FileScan parquet" in frame._jdf.queryExecution().toString()


def check_all_engines(scan, frame, columns):
    wanted = told(scan.to_arrow(), columns)
    assert told(scan.to_polars().collect().to_arrow(), columns) == wanted
    assert told(scan.to_duckdb().to_arrow_table(), columns) == wanted
    assert told(from_spark(frame), columns, finest="us") == told(scan.to_arrow(), columns, finest="us")
    return len(wanted)


def from_spark(frame):
    """The rows of a DataFrame, with times of day again: Spark counts nanoseconds."""
    rows = frame.toArrow()
    at = rows.schema.get_field_index("clock")
    return rows if at < 0 else rows.set_column(at, "clock", rows["clock"].cast(pa.time64("ns")))


@pytest.mark.parametrize("where", EXACT)
def test_spark_reads_by_itself_what_it_reads_exactly(folder, spark, where):
    scan = folder[0].scan(where, NATIVE)
    frame = scan.to_spark(spark)
    assert is_native(frame)
    assert 0 < check_all_engines(scan, frame, NATIVE) <= folder[1].num_rows


@pytest.mark.parametrize("where", [None, *OTHERS])
def test_tasks_of_ours_read_the_rest(folder, spark, where):
    scan = folder[0].scan(where, ALL)
    frame = scan.to_spark(spark)
    assert not is_native(frame)
    assert 0 < check_all_engines(scan, frame, ALL) <= folder[1].num_rows


@pytest.mark.s3
def test_a_bucket_is_read_by_tasks_of_ours_since_spark_has_no_connector(bucket, spark):
    for where in (EXACT[2], OTHERS[1]):
        scan = bucket[0].scan(where, ALL)
        frame = scan.to_spark(spark)
        assert not is_native(frame)
        assert 0 < check_all_engines(scan, frame, ALL) <= bucket[1].num_rows


def test_conditions_that_are_added_in_spark_lose_no_nan(folder, spark):
    table, rows = folder
    wanted = sum(value is not None and not value <= 2.9 for value in rows["value"].to_pylist())
    assert table.scan().to_spark(spark).where("value > 2.9").count() == wanted
    assert table.scan(columns=NATIVE).to_spark(spark).where("value > 2.9").count() == wanted


def test_only_files_that_can_matter_are_given_to_spark(folder, spark):
    table, _ = folder
    scan = table.scan("number > 1000000000000", NATIVE)
    assert 0 < len(scan.to_spark(spark).inputFiles()) < len(table.inspect.splits())
    assert table.scan("metric_name = 'none'", NATIVE).to_spark(spark).count() == 0


def test_rows_come_of_files_that_lack_all_columns_that_are_asked_for(folder, spark):
    table, rows = folder
    assert table.scan(columns=["zone"]).to_spark(spark).count() == rows.num_rows
    missing = rows["zone"].null_count
    assert table.scan("zone is null", ["zone"]).to_spark(spark).count() == missing
    assert table.scan("zone is null", ["zone"]).to_arrow().num_rows == missing


def test_a_large_file_is_dealt_out_to_several_tasks(tmp_path, spark, monkeypatch):
    monkeypatch.setattr("windrow.engines.spark.shares._TASK_BYTES", 20_000)
    with connect({"url": str(tmp_path / "lake")}) as lake:
        table = lake.create_table("metrics", sort=SORT, timestamp_precision="ns")
        pq.write_table(points(1, 20_000), tmp_path / "large.parquet", row_group_size=1000)
        table.register.run(tmp_path / "large.parquet")
        table.ingest(points(2, 300))
        scan = table.scan("value * 1 > 0")
        frame = scan.to_spark(spark)
        assert frame.rdd.getNumPartitions() > 4
        columns = ["metric_name", "value", "timestamp"]
        assert told(frame.toArrow(), columns, finest="us") == told(scan.to_arrow(), columns, finest="us")


def test_odd_paths_and_odd_types_are_left_to_tasks_of_ours(tmp_path, spark):
    with connect({"url": str(tmp_path / "a [strange] lake")}) as lake:
        table = lake.create_table("events", sort="timestamp/V2")
        times = pa.array([1_700_000_000_000_000 + n for n in range(9)], pa.timestamp("us", "UTC"))
        odd = {
            "u8": pa.array(range(9), pa.uint8()),
            "u64": pa.array([2**64 - 1 - n for n in range(9)], pa.uint64()),
            "half": pa.array([0.5 * n for n in range(9)], pa.float16()),
            "taken": pa.array(range(9), pa.duration("ms")),
            "parts": pa.array([[{"x": n}] for n in range(9)]),
            "key": pa.array([bytes([n]) * 4 for n in range(9)], pa.binary(4)),
        }
        table.ingest(pa.table({"timestamp": times, "value": [float(n) for n in range(9)], **odd}))
        found = table.scan(columns=["u8", "u64", "half", "taken", "parts", "key"]).to_spark(spark).collect()
        assert sorted(row.u8 for row in found) == list(range(9))
        assert sorted(int(row.u64) for row in found) == [2**64 - 9 + n for n in range(9)]
        assert {row.taken.microseconds for row in found} == {1000 * n for n in range(9)}
        assert sorted(row.parts[0].x for row in found) == list(range(9))
        assert bytes(found[0].key) == bytes([found[0].u8]) * 4
        plain_columns = table.scan(columns=["timestamp", "value"]).to_spark(spark)
        assert not is_native(plain_columns)
        assert plain_columns.count() == 9


@pytest.mark.long
def test_a_frame_of_an_older_version_stays_there(tmp_path, spark):
    with connect({"url": str(tmp_path / "lake")}) as lake:
        table = lake.create_table("metrics", sort=SORT, timestamp_precision="ns")
        table.ingest(points(1, 50))
        frame = table.scan(columns=["metric_name", "value"]).to_spark(spark)
        for seed in range(4):
            table.ingest(points(seed, 50))
        table.compact.run()
        table.upkeep.gc.run(grace=0)
        assert frame.count() == 50
        assert table.scan().to_spark(spark).count() == 250


@pytest.mark.long
def test_a_client_of_spark_connect_gets_the_same_rows(folder):
    table, rows = folder
    program = [sys.executable, str(Path(__file__).with_name("connect_scan.py")), table.context.url]
    told = subprocess.run(program, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()[-1]
    wanted = sum(value is not None and not value <= 0 for value in rows["value"].to_pylist())
    assert json.loads(told) == {"native": wanted, "tasks": wanted, "source": wanted, "sql": wanted}

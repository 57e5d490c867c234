"""Every row exactly once, whatever dies: drivers of a stream, attempts at tasks, executors."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow

# These have sessions of their own, so that they need not wait for those who share one.
pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("drivers")]

DRIVER = str(Path(__file__).with_name("driver.py"))
SORT = "metric_name|host|timeseries_id|timestamp/V2"
ROWS = 40
"""In each batch of a stream."""


class Driver:
    """A driver that runs in a process group of its own, with its Java."""

    def __init__(self, job, lake, folder, **more):
        self.log = folder / "driver.log"
        argument = json.dumps([job, lake, {"folder": str(folder), **more}])
        with self.log.open("ab") as words:
            self.process = subprocess.Popen(
                [sys.executable, DRIVER, argument],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
                start_new_session=True,
            )

    def kill(self):
        """End it without a word, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def answer(self):
        """Wait until it ends by itself, and return the last line that it printed."""
        try:
            printed, _ = self.process.communicate(timeout=600)
        except BaseException:
            self.kill()
            raise
        assert self.process.returncode == 0, self.log.read_text()[-3000:]
        return json.loads(printed.splitlines()[-1])


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        opened.create_table("metrics", sort=SORT)
        yield opened


def address(lake):
    context = lake.context
    return {"url": lake.url, "metastore": context.metastore_url, "store_options": dict(context.store_options)}


def values(lake):
    return sorted(row["value"] for row in lake.sql("select value from metrics").to_dict())


def collect_orphans(lake):
    """Delete what failed attempts left behind, and return how many files that were; only visible splits remain."""
    table = lake.table("metrics")
    collected = table.upkeep.gc.run(grace=0)
    stored = {info.key for info in lake.context.store.list("metrics") if info.key.endswith(".parquet")}
    pages = lake.context.metastore.splits(table.record().table_id, table.version())
    assert stored == {split.key for page in pages for split in page}
    assert collected.unknown_files == collected.retired_splits == 0
    return collected.orphan_files


class TestDrivers:
    def arrive(self, folder, batches):
        """Files that come in as the batches of a stream, with points of now."""
        (folder / "incoming").mkdir()
        for number in range(batches):
            numbers = range(ROWS * number, ROWS * number + ROWS)
            columns = {
                "metric_name": ["cpu"] * ROWS,
                "host": [f"h{value % 3}" for value in numbers],
                "timestamp": pa.array([datetime.now(UTC)] * ROWS, pa.timestamp("us", "UTC")),
                "value": [float(value) for value in numbers],
            }
            pq.write_table(pa.table(columns), folder / "incoming" / f"{number:03}.parquet")

    def wait_for(self, path, driver):
        while not path.exists():
            assert driver.process.poll() is None, "the driver ended before its time"
            time.sleep(0.005)

    def kill_and_restart(self, lake, folder, *, batches, kills, seed):
        """Kill the driver at random points of random batches, and start it again; the last one is let live."""
        self.arrive(folder, batches)
        chance = random.Random(seed)
        ways = ["foreachBatch", "sink"]
        for number, batch in enumerate(sorted(chance.sample(range(batches), kills))):
            driver = Driver("stream", address(lake), folder, way=ways[number % 2])
            try:
                assert driver.process.stdout.readline() == b"running\n", driver.log.read_text()[-3000:]
                self.wait_for(folder / "checkpoint" / "offsets" / str(batch), driver)
                time.sleep(chance.uniform(0, 2))
            finally:
                driver.kill()
        Driver("stream", address(lake), folder, way="foreachBatch").answer()
        assert values(lake) == list(range(ROWS * batches))
        assert {row.state for row in lake.table("metrics").inspect.commits()} == {"published"}
        collect_orphans(lake)
        assert values(lake) == list(range(ROWS * batches))

    def test_a_stream_whose_driver_is_killed_and_restarted_loses_and_repeats_nothing(self, lake, tmp_path):
        self.kill_and_restart(lake, tmp_path, batches=8, kills=3, seed=1)

    @pytest.mark.long
    def test_a_long_stream_whose_driver_is_killed_twenty_times(self, lake, tmp_path):
        self.kill_and_restart(lake, tmp_path, batches=50, kills=20, seed=2)


class TestTasks:
    def test_two_of_three_attempts_at_every_task_fail(self, lake, tmp_path):
        rows = 400
        job = {"master": "local[2,3]", "rows": rows, "harms": ["fail twice"]}
        assert Driver("ingest", address(lake), tmp_path, **job).answer() == [rows, rows]
        assert values(lake) == sorted([*range(rows), *range(rows)])
        # Four tasks, one window each: two of three attempts left a file with its sidecar behind.
        assert collect_orphans(lake) == 4 * 2 * 2
        assert len(values(lake)) == 2 * rows

    @pytest.mark.s3
    @pytest.mark.postgres
    def test_an_executor_is_lost_on_a_cluster_with_s3_and_postgresql(self, s3_url, s3_options, postgres_url, tmp_path):
        rows = 400
        with windrow.connect(s3_url, metastore=postgres_url, store_options=s3_options) as lake:
            lake.create_table("metrics", sort=SORT)
            job = {"master": "local-cluster[2,1,1024]", "rows": rows, "harms": ["lose the executor"]}
            job["spark.scheduler.minRegisteredResourcesRatio"] = "0"
            assert Driver("ingest", address(lake), tmp_path, **job).answer() == [rows, rows]
            assert values(lake) == sorted([*range(rows), *range(rows)])
            assert collect_orphans(lake) > 0
            assert len(values(lake)) == 2 * rows


class TestConnect:
    @pytest.fixture
    def port(self, tmp_path):
        """The port of a server of Spark Connect."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            number = free.getsockname()[1]
        server = Driver("serve", {}, tmp_path, port=str(number))
        try:
            assert server.process.stdout.readline() == b"ready\n", server.log.read_text()[-3000:]
            yield number
        finally:
            server.kill()

    @pytest.mark.postgres
    def test_rows_come_in_through_spark_connect(self, tmp_path, postgres_url, port):
        rows = 200
        with windrow.connect(tmp_path / "lake", metastore=postgres_url) as lake:
            lake.create_table("metrics", sort=SORT)
            assert Driver("connect", address(lake), tmp_path, port=port, rows=rows).answer() == [rows, rows]
            assert values(lake) == sorted([*range(rows)] * 4)

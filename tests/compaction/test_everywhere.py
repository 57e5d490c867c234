"""The same table compacted in this process, on local Spark and on a cluster, in a folder and on S3 with PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import make_url

import windrow
from windrow.model.invariants import require
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata

from .conftest import HOUR, answers, fill, points, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@contextlib.contextmanager
def driver(kind):
    """Runs compactions in a process of its own."""
    program = [sys.executable, str(Path(__file__).with_name("cluster.py")), kind]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(place, **options):
            process.stdin.write(json.dumps({**place, **options}) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


@pytest.fixture(scope="module")
def cluster():
    """Spark with two executors that are processes of their own."""
    with driver("cluster") as run:
        yield run


@pytest.fixture
def connected():
    """A client of Spark Connect."""
    with driver("connect") as run:
        yield run


@pytest.fixture
def folder(tmp_path):
    return {"lake": str(tmp_path / "lake"), "metastore": f"sqlite:///{tmp_path}/windrow.db", "store_options": {}}


@pytest.fixture
def bucket(request, postgres_url, s3_options):
    name = f"lake_{abs(hash(request.node.name))}"
    with psycopg.connect(postgres_url.replace("postgresql+psycopg", "postgresql"), autocommit=True) as connection:
        connection.execute(f"create database {name}")
    database = make_url(postgres_url).set(database=name).render_as_string(hide_password=False)
    return {"lake": f"s3://lakes/{name}", "metastore": database, "store_options": s3_options}


def connect(place):
    return windrow.connect(place["lake"], metastore=place["metastore"], store_options=place["store_options"])


def check_invariants(lake, table):
    """Every visible file is sorted, lies in its window, and says of itself what the metastore says of it."""
    store, record = lake.context.store, table.record()
    for split in (each for page in lake.context.metastore.splits(record.table_id, record.version) for each in page):
        data = store.get(split.key)
        rows = pq.read_table(pa.BufferReader(data))
        require("SS-1", table=rows, schema=SortSchema.parse(split.scope.sort_schema))
        nulls = rows["timestamp"].null_count
        require(
            "TW-1", window=split.window, time_min_us=split.time_min, time_max_us=split.time_max, null_timestamps=nulls
        )
        pairs = pq.read_metadata(pa.BufferReader(data)).metadata
        said = SplitMetadata.from_key_value(
            {name.decode(): value.decode() for name, value in pairs.items()},
            key=split.key,
            size_bytes=len(data),
            etag=split.etag,
            digest=split.digest,
        )
        assert said == replace(split, sidecar=None, zones=tuple(split.zones))
        assert store.head(split.sidecar.key).size == split.sidecar.length


class Reader(threading.Thread):
    """Asks the same questions again and again, and remembers answers that differ."""

    def __init__(self, place, expected):
        super().__init__()
        self.place, self.expected = place, expected
        self.different, self.asked, self.ended = [], 0, threading.Event()

    def run(self):
        with connect(self.place) as lake:
            while not self.ended.is_set():
                found = answers(lake)
                self.asked += 1
                if found != self.expected:
                    self.different.append(found)
                self.ended.wait(0.2)


def compacted(where, place, request):
    if where in ("cluster", "connected"):
        return request.getfixturevalue(where)(place)
    spark = request.getfixturevalue("spark") if where == "local" else None
    with connect(place) as lake:
        return lake.table("metrics").compact.run(spark=spark, verify="full").to_dict()


@pytest.mark.parametrize("where", ["process", "local", "cluster", pytest.param("connected", marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["folder", pytest.param("bucket", marks=[pytest.mark.s3, pytest.mark.postgres])])
def test_the_same_everywhere(where, kind, request):
    place = request.getfixturevalue(kind)
    with connect(place) as lake:
        table = fill(lake, batches=3)
        before, questions = rows_of(lake), answers(lake)
        reader = Reader(place, questions)
        reader.start()
        try:
            result = compacted(where, place, request)
        finally:
            reader.ended.set()
            reader.join()
        assert (result["done"], result["failed"], result["skipped"]) == (5, 0, 0), result["problems"]
        assert (reader.different, reader.asked > 0) == ([], True)
        assert rows_of(lake) == before
        assert answers(lake) == questions
        assert [row.splits for row in table.inspect.windows()] == [1] * 5
        check_invariants(lake, table)


MERGES = 100


@pytest.fixture
def full_disk(tmp_path):
    """Makes a folder one in which nothing more can be written, and gives it room again."""
    mounted = []

    def fill_up(folder):
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        size = sum(len(data) + 8192 for data in files.values())
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False)
        if done.returncode:
            pytest.skip("a full disk takes the right to mount one")
        mounted.append(folder)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        with (folder / "_filler").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(4096))
            except OSError:
                pass

    yield fill_up
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_lost_executor_a_poisoned_input_and_a_full_disk(folder, cluster, full_disk):
    with connect(folder) as lake:
        table = lake.create_table("metrics", sort="metric_name|host|timestamp/V2", policy={"merge_factor": 2})
        for seed in range(2):
            rows = points(seed, rows=MERGES * 8, windows=MERGES)
            table.ingest(rows.filter(pa.compute.is_valid(rows["timestamp"])))
        before = rows_of(lake)
        windows = [row for row in table.inspect.windows() if row.splits == 2]
        assert len(windows) == MERGES
        splits = {row.key: row for row in table.inspect.splits()}
        poisoned = next(row for row in splits.values() if f"={HOUR + 900 * 7}/" in row.key)
        path = Path(folder["lake"], poisoned.key)
        intact = path.read_bytes()
        path.write_bytes(intact[:-50])
        crowded = Path(folder["lake"], "metrics", "partition_id=0", f"window_start={HOUR + 900 * 50}")
        full_disk(crowded)

        result = cluster(folder, kill=True)
        assert result["killed"] == 1
        assert result["planned"] == MERGES
        assert result["done"] >= 97
        reasons = {problem["window"]: problem["why"] for problem in result["problems"]}
        assert len(reasons) == result["failed"] + result["skipped"] == MERGES - result["done"]
        assert any("disk is full" in why for why in reasons.values())
        assert any(poisoned.split_id in why for why in reasons.values())

        path.write_bytes(intact)
        assert rows_of(lake) == before
        path.write_bytes(intact[:-50])
        (crowded / "_filler").unlink()
        again = cluster(folder)
        assert (again["done"], again["failed"]) == (MERGES - result["done"] - 1, 0), again["problems"]
        assert [row.splits for row in table.inspect.windows()].count(2) == 1
        assert [each.split_id for each in table.compact.quarantined()] == [poisoned.split_id]
        path.write_bytes(intact)
        assert rows_of(lake) == before

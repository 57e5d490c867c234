"""What goes wrong with data, files, disks and stores: a clear error or a counted drop; a table as before, or after."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.errors import Damaged, InvalidInput, MetastoreError, NotFound, StorageError
from windrow.ingest.files import FilePart, find_files, read_part
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sources import FilesSource, source_of

START = datetime(2024, 1, 1, tzinfo=UTC)
SORT = "metric_name|host|timestamp/V2"
OTLP = Path(__file__).parents[1] / "data" / "otlp" / "metrics.json"


def points(count=100, step=30, **columns):
    times = [START + timedelta(seconds=step * n) for n in range(count)]
    rows = {
        "metric_name": ["cpu"] * count,
        "host": [f"h{n % 5}" for n in range(count)],
        "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
        "value": [float(n) for n in range(count)],
    }
    return pa.table(rows | columns)


@pytest.fixture
def metrics(lake):
    return lake.create_table("metrics", sort=SORT)


def count(lake):
    return lake.sql("select count(*) as n from metrics").to_dict()[0]["n"]


class TestRows:
    def test_huge_strings_are_kept_and_what_is_known_of_them_stays_small(self, lake, metrics):
        hosts = ["x" * 2**20 + str(n) for n in range(4)]
        metrics.ingest(points(4, host=hosts, payload=["ä" * 2**21] * 4))
        (split,) = metrics.inspect.splits()
        zone = next(iter(lake.context.metastore.splits(metrics.record().table_id, 1)))[0].zones[1]
        assert len(zone.minimum.to_json()) + len(zone.maximum.to_json()) + len(zone.regex or "") < 2000
        assert split.size_bytes < 2**20, "they compress well"
        found = lake.sql("select host, length(payload) as n from metrics order by host").to_dict()
        assert found == [{"host": host, "n": 2**21} for host in hosts]

    def test_times_of_all_zones_are_the_same_instants(self, lake, metrics):
        for zone in ("Europe/Berlin", "UTC", "America/St_Johns", "+05:30"):
            metrics.ingest(
                points(60).set_column(2, "timestamp", points(60)["timestamp"].cast(pa.timestamp("ms", zone)))
            )
        assert [(row.splits, row.rows) for row in metrics.inspect.windows()] == [(4, 120), (4, 120)]
        first = lake.sql("select min(timestamp) as t from metrics").to_dict()[0]["t"]
        assert first.astimezone(UTC) == START

    def test_times_with_and_without_a_zone_do_not_mix(self, lake, metrics):
        metrics.ingest(points(10))
        local = points(10).set_column(2, "timestamp", points(10)["timestamp"].cast(pa.timestamp("us")))
        with pytest.raises(
            InvalidInput, match=r"'timestamp' is timestamp\[us, tz=UTC\] in the table and timestamp\[us\]"
        ):
            metrics.ingest(local)
        assert (metrics.version(), count(lake)) == (1, 10)

    def test_a_table_may_keep_times_without_a_zone_which_are_utc(self, lake, metrics):
        berlin = datetime(2024, 1, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))
        local = points(1).set_column(2, "timestamp", pa.array([START.replace(tzinfo=None)], pa.timestamp("us")))
        metrics.ingest(local)
        assert metrics.inspect.windows()[0].start == int(berlin.timestamp())

    def test_five_thousand_columns(self, lake, metrics):
        wide = {f"c{n:04}": pa.array(np.full(20, float(n))) for n in range(5000)}
        metrics.ingest(points(20, step=1, **wide))
        metrics.ingest(points(20, step=1))
        assert len(metrics.inspect.columns()) == 5004
        assert lake.sql("select sum(c4999) as s, count(*) as n from metrics").to_dict() == [{"s": 20 * 4999.0, "n": 40}]

    def test_what_a_failed_ingest_would_have_added_does_not_bind_the_next(self, metrics):
        with pytest.raises(InvalidInput, match="would be dropped"):
            metrics.ingest(points(5, shard=[1] * 5), drop_late=True)
        metrics.ingest(points(5, shard=["eu"] * 5))
        assert [column.type for column in metrics.inspect.columns() if column.name == "shard"] == ["string"]

    def test_values_that_do_not_fit_are_refused_with_their_column(self, lake, metrics):
        fine = lake.create_table("fine", sort=SORT, timestamp_precision="ns")
        far = pa.array([datetime(3000, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
        with pytest.raises(InvalidInput, match="times of column 'timestamp' lie out of the years 1677 to 2262"):
            fine.ingest(points(1).set_column(2, "timestamp", far))
        assert (fine.version(), metrics.ingest(points(1).set_column(2, "timestamp", far)).rows) == (0, 1)


def cut_short(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


class TestFiles:
    @pytest.fixture(params=["parquet", "csv", "jsonl", "otlp.json", "csv.gz", "otlp.json.gz"])
    def path(self, request, tmp_path):
        """A good file of each kind."""
        path = tmp_path / f"points.{request.param}"
        if request.param == "parquet":
            pq.write_table(points(), path)
            return path
        data = OTLP.read_bytes()
        if request.param == "jsonl":
            rows = points().to_pylist()
            data = "\n".join(json.dumps(row | {"timestamp": row["timestamp"].isoformat()}) for row in rows).encode()
        elif "csv" in request.param:
            pa.csv.write_csv(points(), tmp_path / "plain.csv")
            data = (tmp_path / "plain.csv").read_bytes()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    def test_a_good_file_is_taken(self, metrics, path):
        assert metrics.ingest(path).rows in (100, 20)

    def test_a_file_that_is_cut_short_is_refused_by_name(self, metrics, path):
        cut_short(path)
        with pytest.raises(Damaged, match=path.name):
            metrics.ingest(path)
        assert (metrics.version(), list(metrics.inspect.splits())) == (0, [])

    def test_a_file_that_vanishes_after_it_was_found_is_refused_by_name(self, metrics, path):
        (file,) = find_files([str(path)])
        path.unlink()
        with pytest.raises(NotFound, match=rf"{path.name}: the file is gone"):
            list(read_part(FilePart(file, file.size)))


@dataclass(frozen=True)
class Disturbed:
    """Files as a source, to which something happens when the first batch of a task was read."""

    files: FilesSource
    disturb: Callable[[], None]

    @property
    def schema(self):
        return self.files.schema

    @property
    def on_spark(self):
        return self.files.on_spark

    def run(self, work, on_report, threads=None):
        def meddled(batches):
            for batch in batches:
                yield batch
                self.disturb()

        return self.files.run(lambda batches, number: work(meddled(batches), number), on_report, threads)


class TestFilesInMidRead:
    @pytest.fixture(params=[1, 2**20], ids=["one by one", "together"])
    def files(self, tmp_path, monkeypatch, request):
        """Enough files that some are not open yet when the first is done; small ones would be read at once."""
        monkeypatch.setattr("windrow.ingest.share_rows._BATCH", 1)
        monkeypatch.setattr("windrow.ingest.share_rows._SMALL", request.param)
        for number in range(12):
            pq.write_table(points(), tmp_path / f"{number:02}.parquet")
        return sorted(tmp_path.glob("*.parquet"))

    def ingest(self, metrics, files, disturb):
        run = Ingest.of(metrics.context, metrics.name, IngestSettings())
        return run.run(Disturbed(source_of([str(path) for path in files]), disturb))

    def test_a_file_that_vanishes_while_others_are_read_leaves_the_table_as_it_was(self, lake, metrics, files):
        metrics.ingest(points(1))
        with pytest.raises(NotFound, match=r"11\.parquet: the file is gone"):
            self.ingest(metrics, files, lambda: files[11].unlink(missing_ok=True))
        assert (metrics.version(), count(lake)) == (1, 1)
        assert metrics.inspect.commits()[0].state == "aborted"

    def test_a_file_that_is_cut_while_others_are_read_leaves_the_table_as_it_was(self, lake, metrics, files):
        metrics.ingest(points(1))
        with pytest.raises(Damaged, match=r"11\.parquet"):
            self.ingest(metrics, files, lambda: cut_short(files[11]))
        assert (metrics.version(), count(lake)) == (1, 1)

    def test_a_file_that_is_cut_while_it_is_read_does_not_end_the_process(self, tmp_path):
        path = tmp_path / "large.parquet"
        rows = pa.table({"value": np.random.default_rng(1).random(2_000_000)})
        pq.write_table(rows, path, compression="none", use_dictionary=False, row_group_size=50_000)
        (file,) = find_files([str(path)])
        batches = read_part(FilePart(file, file.size))
        read = [next(batches)]
        with path.open("r+b") as opened:
            opened.truncate(1000)
        try:
            read += batches
        except (Damaged, StorageError) as error:
            assert "large.parquet" in str(error)  # noqa: PT017 - all of it may have been read ahead
        else:
            assert pa.Table.from_batches(read).equals(rows)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes, where mounting one is permitted."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("mounting a file system is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def noise(rows):
    """Rows that do not compress."""
    return points(rows, step=0, noise=np.random.default_rng(1).bytes(rows * 16).hex("-", 16).split("-"))


LIMITED = """
import resource, signal, sys
import numpy as np, pyarrow as pa, windrow
from windrow.errors import StorageError

def rows(count):
    hosts = np.random.default_rng(count).bytes(count * 8).hex("-", 8).split("-")
    return pa.table({"host": hosts, "timestamp": pa.array([n % 900 for n in range(count)], pa.timestamp("s"))})

with windrow.connect(sys.argv[1]) as lake:
    events = lake.create_table("events", sort="host|timestamp/V2")
    events.ingest(rows(10))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        events.ingest(rows(60_000))
    except StorageError:
        print("refused")
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    print(events.version())
    events.ingest(rows(60_000))
    print(lake.sql("select count(*) as n from events").to_dict()[0]["n"])
"""


class TestFullDisk:
    def test_a_full_disk_leaves_the_table_as_it_was_and_room_makes_it_go_on(self, tmp_path, small_disk):
        database = f"sqlite:///{tmp_path}/windrow.db"
        with windrow.connect(small_disk, metastore=database) as lake:
            metrics = lake.create_table("metrics", sort=SORT)
            metrics.ingest(points(10))
            with pytest.raises(StorageError, match="the disk is full; free some space"):
                metrics.ingest(noise(150_000))
            assert (metrics.version(), count(lake)) == (1, 10)
            for path in small_disk.rglob("*"):
                if path.is_file() and path.stem not in {split.split_id for split in metrics.inspect.splits()}:
                    path.unlink()
            metrics.ingest(points(10))
            assert (metrics.version(), count(lake)) == (2, 20)

    def test_a_full_disk_under_the_metastore_too(self, small_disk):
        with windrow.connect(small_disk) as lake:
            metrics = lake.create_table("metrics", sort=SORT)
            metrics.ingest(points(10))
            ballast = small_disk / "ballast"
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            with pytest.raises((StorageError, MetastoreError)):
                metrics.ingest(points(100))
            ballast.unlink()
            assert (metrics.version(), count(lake)) == (1, 10)
            metrics.ingest(points(100))
            assert count(lake) == 110

    def test_a_limit_on_the_size_of_files(self, tmp_path):
        script = [sys.executable, "-c", LIMITED, str(tmp_path)]
        done = subprocess.run(script, capture_output=True, text=True, timeout=300, check=False)
        assert done.stdout.splitlines() == ["refused", "1", "60010"], done.stderr


def failure_of(call):
    """Return how the store failed, None when it did not."""
    try:
        call()
    except StorageError as error:
        return str(error)
    return None


@pytest.mark.s3
class TestS3:
    @pytest.fixture
    def remote(self, tmp_path, s3_url, s3_options):
        """A lake in a bucket whose client gives up at the first failure, and after some seconds."""
        impatient = s3_options | {"max_retries": "0", "timeout": "5s"}
        with windrow.connect(s3_url, metastore=f"sqlite:///{tmp_path}/windrow.db", store_options=impatient) as lake:
            lake.create_table("metrics", sort=SORT).ingest(points(10))
            yield lake

    @pytest.mark.parametrize("kind", ["slow down", "internal", "lost"])
    def test_whichever_write_fails_the_table_is_as_before_or_wholly_after(self, remote, s3_faults, kind):
        metrics, expected = remote.table("metrics"), 10
        for nth in itertools.count(1):
            s3_faults.set("PUT", nth, kind)
            failed = failure_of(lambda: metrics.ingest(points(20, step=60)))
            assert failed is None or "metrics/partition_id=0" in failed
            # the mirror for other readers is written when the commit is published: there, a failure is not one of it
            assert (failed is not None) == (nth <= 4)
            expected += 0 if failed else 20
            assert count(remote) == expected
            if not s3_faults.struck:
                break
        assert nth > 4, "there were two windows, each with a file and a sidecar"

    def test_a_patient_client_gets_through(self, tmp_path, s3_url, s3_options, s3_faults):
        database = f"sqlite:///{tmp_path}/windrow.db"
        with windrow.connect(s3_url, metastore=database, store_options=s3_options) as lake:
            metrics = lake.create_table("metrics", sort=SORT)
            s3_faults.set("PUT", 1, "slow down")
            assert metrics.ingest(points(10)).rows == 10
            assert (s3_faults.struck, count(lake)) == (1, 10)

    def test_a_write_and_a_read_that_take_too_long_are_given_up(self, remote, s3_faults):
        metrics = remote.table("metrics")
        for method in ("PUT", "GET"):
            s3_faults.set(method, 1, "late", 6)
            source = points(20) if method == "PUT" else f"{remote.url}/metrics"
            assert failure_of(lambda source=source: metrics.ingest(source)) is not None
            assert (s3_faults.struck, metrics.version()) == (1, 1)

    def test_a_source_that_cannot_be_fetched_is_named(self, remote, s3_url, s3_faults):
        sink = pa.BufferOutputStream()
        pq.write_table(points(10), sink)
        remote.context.store.put("raw/a.parquet", sink.getvalue().to_pybytes())
        for nth in itertools.count(1):
            s3_faults.set("GET", nth, "slow down")
            version = remote.table("metrics").version()
            failed = failure_of(lambda: remote.table("metrics").ingest(f"{s3_url}/raw"))
            assert failed is None or f"{s3_url}/raw" in failed
            assert remote.table("metrics").version() == version + (failed is None)
            if not s3_faults.struck:
                break
        assert nth > 2

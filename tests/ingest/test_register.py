"""Existing Parquet files join a table as they are, and leave it; nobody writes to them."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import windrow
from windrow.compaction.planner import Planner
from windrow.errors import AlreadyExists, Conflict, Damaged, Incompatible, InvalidInput, NotFound
from windrow.ingest.foreign import look_at
from windrow.metastore import SplitQuery
from windrow.sidecar.reader import Sidecar
from windrow.storage import open_store, url_of

START = datetime(2024, 1, 1, tzinfo=UTC)
SORT = "metric_name|host|timestamp/V2"
DATA = Path(__file__).parents[1] / "data" / "parquet-testing"


def points(count=10, start=0, **columns):
    times = [START + timedelta(minutes=start + n) for n in range(count)]
    rows = {
        "metric_name": ["cpu"] * count,
        "host": [f"h{n % 5}" for n in range(count)],
        "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
        "value": [float(start + n) for n in range(count)],
    }
    return pa.table(rows | columns)


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    for number in range(3):
        pq.write_table(points(10, 10 * number), folder / f"{number}.parquet")
    return folder


@pytest.fixture
def metrics(lake):
    return lake.create_table("metrics", sort=SORT)


def contents(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*")}


def splits(table, query=None):
    record = table.record()
    pages = table.context.metastore.splits(record.table_id, record.version, query or SplitQuery())
    return [split for page in pages for split in page]


class TestRegistering:
    def test_files_are_read_with_the_table_and_left_as_they_are(self, lake, metrics, raw):
        before = contents(raw)
        result = metrics.register.run(raw)
        assert (result.files, result.rows, result.version) == (3, 30, 1)
        metrics.ingest(points(5, 30))
        assert lake.sql("select count(*) as n, sum(value) as s from metrics").to_dict() == [{"n": 35, "s": 595.0}]
        assert contents(raw) == before

    def test_they_have_no_window_no_order_and_bounds_of_time(self, metrics, raw):
        metrics.register.run(raw)
        first = next(split for split in splits(metrics) if split.key.endswith("/0.parquet"))
        assert (first.window, first.scope.sort_schema, first.scope.window_duration, tuple(first.zones)) == (
            None,
            "",
            0,
            (),
        )
        low = int(START.timestamp()) * 10**6
        assert (first.time_min, first.time_max) == (low, low + 9 * 60 * 10**6)
        early = SplitQuery(time_range=(low, low + 10**6))
        assert [split.key[-9:] for split in splits(metrics, early)] == ["0.parquet"]
        assert metrics.inspect.commits()[0].kind == "register"

    def test_the_sidecar_lies_in_the_lake_and_knows_the_file(self, lake, metrics, raw):
        metrics.register.run(raw / "0.parquet")
        (split,) = splits(metrics)
        data = lake.context.store.get(split.sidecar.key)
        assert split.sidecar.key.startswith("metrics/_registered/_")
        assert len(data) == split.sidecar.length
        sidecar = Sidecar.of(data)
        assert sidecar.describes(split.size_bytes, split.etag)
        assert not sidecar.describes(split.size_bytes, "another")

    def test_they_are_never_merged(self, lake, metrics, raw):
        metrics.register.run(raw)
        (left,) = Planner(lake.context.metastore, metrics.record(), now=lake.context.now()).decisions()
        assert (left.count, left.why) == (3, "it has no window: registered files are never merged")

    def test_numbers_widen_and_new_columns_appear(self, lake, metrics, raw):
        metrics.ingest(points(1, 100))
        narrow = points(4, 50, region=["eu"] * 4)
        pq.write_table(narrow.set_column(3, "value", narrow["value"].cast(pa.float32())), raw / "narrow.parquet")
        metrics.register.run(raw)
        rows = lake.sql("select count(*) as n, count(region) as r, sum(value) as s from metrics").to_dict()
        assert rows == [{"n": 35, "r": 4, "s": 435.0 + 100 + 206}]

    def test_nested_columns_are_read_as_they_are(self, lake, metrics, raw):
        nested = pa.array([{"a": 1, "b": [1, 2]}, None, {"a": 3, "b": []}])
        pq.write_table(points(3, 0, nested=nested), raw / "nested.parquet")
        metrics.register.run(raw)
        rows = lake.sql("select nested.a as a, len(nested.b) as n from metrics where nested is not null order by a")
        assert rows.to_dict() == [{"a": 1, "n": 2}, {"a": 3, "n": 0}]

    def test_files_of_every_place_and_name_are_reached(self, lake, metrics, tmp_path):
        folder = tmp_path / "100% ünï#?"
        folder.mkdir()
        pq.write_table(points(), folder / "a b%20.parquet")
        metrics.register.run(folder)
        assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 10}]

    def test_an_older_version_does_not_have_them(self, metrics, raw):
        metrics.ingest(points(1))
        metrics.register.run(raw)
        tables = metrics, metrics.at(version=1)
        assert [len(table.inspect.splits()) for table in tables] == [4, 1]

    def test_a_plan_tells_what_would_join_and_changes_nothing(self, metrics, raw, tmp_path):
        pq.write_table(points(0), raw / "empty.parquet")
        plan = metrics.register.plan(str(raw / "*.parquet"))
        assert (len(plan.files), plan.rows, plan.empty, plan.already_registered) == (3, 30, 1, 0)
        assert plan.new_columns == ("metric_name", "host", "timestamp", "value")
        assert (metrics.version(), list(metrics.inspect.commits())) == (0, [])
        assert not (tmp_path / "lake" / "metrics").exists()

    def test_progress_is_told_file_by_file(self, metrics, raw):
        heard = []
        metrics.register.run(raw, on_file=heard.append)
        assert sorted(split.key for split in heard) == sorted(metrics.unregister.plan(raw).files)


class TestAgain:
    def test_files_that_are_in_are_passed_by(self, lake, metrics, raw):
        metrics.register.run(raw)
        again = metrics.register.run(raw)
        assert (again.commit_id, again.version, again.files, again.already_registered) == (None, 1, 0, 3)
        pq.write_table(points(1, 90), raw / "new.parquet")
        assert metrics.register.run([raw, raw / "new.parquet"]).files == 1
        assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 31}]

    def test_a_link_to_a_file_is_the_file(self, metrics, raw, tmp_path):
        (tmp_path / "link").symlink_to(raw)
        metrics.register.run(raw)
        assert metrics.register.run(tmp_path / "link").already_registered == 3

    def test_a_file_that_has_changed_since_is_refused(self, metrics, raw):
        metrics.register.run(raw)
        pq.write_table(points(2), raw / "1.parquet")
        with pytest.raises(AlreadyExists, match=r"1\.parquet is registered .* has changed since"):
            metrics.register.run(raw)

    def test_of_two_runs_at_once_one_adds_a_file(self, lake, metrics, raw):
        outcomes = []
        ready = threading.Barrier(4)

        def register():
            ready.wait()
            try:
                outcomes.append(metrics.register.run(raw).files)
            except (AlreadyExists, Conflict) as error:
                outcomes.append(type(error).__name__)

        threads = [threading.Thread(target=register) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes.count(3) == 1, outcomes
        assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 30}]


class TestLeaving:
    def test_files_leave_by_path_and_by_folder_and_stay_as_they_are(self, lake, metrics, raw):
        before = contents(raw)
        metrics.register.run(raw)
        assert metrics.unregister.run(raw / "1.parquet").rows == 10
        assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 20}]
        assert metrics.unregister.run(raw).files == 2
        assert contents(raw) == before
        assert metrics.inspect.commits()[0].kind == "unregister"
        assert metrics.register.run(raw).files == 3, "and may come again"

    def test_a_column_whose_files_have_left_is_null(self, lake, metrics, raw):
        metrics.ingest(points(3))
        pq.write_table(points(4, 50, region=["eu"] * 4), raw / "wide.parquet")
        metrics.register.run(raw / "wide.parquet")
        metrics.unregister.run(raw)
        assert lake.sql("select count(*) as n, count(region) as r from metrics").to_dict() == [{"n": 3, "r": 0}]

    def test_what_is_not_registered_cannot_leave(self, metrics, raw):
        with pytest.raises(NotFound, match="no such file is registered in table 'metrics'"):
            metrics.unregister.run(raw)

    def test_a_file_that_vanished_is_named_and_can_be_taken_out(self, lake, metrics, raw):
        metrics.register.run(raw)
        (raw / "2.parquet").unlink()
        with pytest.raises(NotFound, match=r"2\.parquet: the file is registered in table 'metrics' and gone"):
            lake.sql("select * from metrics")
        metrics.unregister.run(raw / "2.parquet")
        assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 20}]

    def test_a_file_that_changed_is_not_read(self, lake, metrics, raw):
        metrics.register.run(raw)
        pq.write_table(points(2), raw / "2.parquet")
        with pytest.raises(Damaged, match=r"2\.parquet: the file has changed since it was registered"):
            lake.sql("select * from metrics")


def encrypted(path, *, footer):
    class Keys(pe.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key, _):
            return key

        def unwrap_key(self, key, _):
            return key

    config = pe.EncryptionConfiguration(
        "k", column_keys={"k": ["value"]}, plaintext_footer=not footer, double_wrapping=False
    )
    factory = pe.CryptoFactory(Keys)
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), config)
    with pq.ParquetWriter(path, points().schema, encryption_properties=properties) as writer:
        writer.write_table(points())


DAMAGES = {
    "cut short": lambda data: data[:-9],
    "empty": lambda data: b"",
    "tiny": lambda data: b"PAR1",
    "other": lambda data: b"no Parquet at all",
    "huge footer": lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
}


class TestRefusals:
    def refused(self, metrics, path, error, match):
        with pytest.raises(error, match=match):
            metrics.register.run([path.parent / "0.parquet", path])
        with pytest.raises(error, match=match):
            metrics.register.plan(path)
        assert (metrics.version(), list(metrics.inspect.commits())) == (0, [])

    def test_another_type_is_named_with_the_file_and_both_types(self, metrics, raw):
        pq.write_table(points().set_column(1, "host", pa.array(range(10))), raw / "x.parquet")
        with pytest.raises(InvalidInput, match=r"x\.parquet: column 'host' is int64, in the files before it string"):
            metrics.register.run(raw)
        metrics.ingest(points(1))
        with pytest.raises(InvalidInput, match=r"x\.parquet: column 'host' is int64, in the table string"):
            metrics.register.run(raw / "x.parquet")
        assert metrics.version() == 1

    def test_rows_that_cannot_be_points_are_refused(self, metrics, raw):
        pq.write_table(points().drop_columns(["timestamp"]), raw / "x.parquet")
        self.refused(metrics, raw / "x.parquet", InvalidInput, r"x\.parquet: these rows cannot be metrics.*'timestamp'")

    def test_nested_columns_of_another_shape_are_refused(self, metrics, raw):
        pq.write_table(points(1, nested=[{"a": 1}]), raw / "0.parquet")
        pq.write_table(points(1, nested=[{"a": "x"}]), raw / "x.parquet")
        with pytest.raises(InvalidInput, match=r"column 'nested' is struct<a: string>.*struct<a: int64>"):
            metrics.register.run([raw / "0.parquet", raw / "x.parquet"])

    @pytest.mark.parametrize("footer", [True, False], ids=["footer", "columns"])
    def test_encrypted_files_are_refused(self, metrics, raw, footer):
        encrypted(raw / "x.parquet", footer=footer)
        self.refused(metrics, raw / "x.parquet", Incompatible, r"x\.parquet: .*encrypted")

    @pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
    def test_damaged_files_are_refused(self, metrics, raw, damage):
        (raw / "x.parquet").write_bytes(damage((raw / "0.parquet").read_bytes()))
        self.refused(metrics, raw / "x.parquet", Damaged, r"x\.parquet")

    def test_a_file_with_unknown_types_is_refused(self, metrics, raw):
        (raw / "x.parquet").write_bytes((DATA / "PARQUET-1481.parquet").read_bytes())
        self.refused(metrics, raw / "x.parquet", Damaged, r"x\.parquet: schema element")

    def test_files_that_are_not_there_are_refused(self, metrics, raw):
        self.refused(metrics, raw / "x.parquet", NotFound, r"x\.parquet")

    def test_files_of_the_lake_itself_are_refused(self, metrics, tmp_path):
        metrics.ingest(points())
        with pytest.raises(InvalidInput, match="lies in the lake itself"):
            metrics.register.run(tmp_path / "lake" / "metrics")

    def test_a_file_that_changes_meanwhile_is_refused(self, metrics, raw):
        looked_at = look_at(url_of(str(raw / "0.parquet")), metrics.settings(), {})
        pq.write_table(points(3), raw / "0.parquet")
        with pytest.raises(Conflict, match="changed while it was being registered"):
            looked_at.sidecar({})

    def test_a_file_that_vanishes_meanwhile_is_refused(self, metrics, raw):
        looked_at = look_at(url_of(str(raw / "0.parquet")), metrics.settings(), {})
        (raw / "0.parquet").unlink()
        with pytest.raises(NotFound, match=r"0\.parquet"):
            looked_at.sidecar({})

    def test_a_run_that_is_stopped_is_given_up(self, metrics, raw):
        def stop(_):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            metrics.register.run(raw, on_file=stop)
        assert (metrics.version(), metrics.inspect.commits()[0].state) == (0, "aborted")


@pytest.mark.s3
def test_files_of_a_bucket_join_a_lake_in_a_bucket(tmp_path, s3_url, s3_options):
    raw = open_store(f"{s3_url}/raw", options=s3_options)
    for number in range(2):
        sink = pa.BufferOutputStream()
        pq.write_table(points(10, 10 * number), sink)
        raw.put(f"day=1/{number}.parquet", sink.getvalue().to_pybytes())
    metastore = f"sqlite:///{tmp_path}/windrow.db"
    with windrow.connect(f"{s3_url}/lake", metastore=metastore, store_options=s3_options) as lake:
        metrics = lake.create_table("metrics", sort=SORT)
        assert metrics.register.run(f"{s3_url}/raw").rows == 20
        metrics.ingest(points(1, 20))
        assert lake.sql("select sum(value) as s from metrics").to_dict() == [{"s": 210.0}]
        assert metrics.register.run(f"{s3_url}/raw").already_registered == 2
        assert metrics.unregister.run(f"{s3_url}/raw/day=1").files == 2


def put_points(store, key, rows):
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="none", use_dictionary=False)
    store.put(key, sink.getvalue().to_pybytes())


@pytest.fixture
def of_a_bucket(tmp_path, s3_url, s3_options):
    """A local lake whose table has three files of a bucket, and the store of these."""
    raw = open_store(f"{s3_url}/raw", options=s3_options)
    for number in range(3):
        put_points(raw, f"{number}.parquet", points(10, 10 * number))
    metastore = f"sqlite:///{tmp_path}/windrow.db"
    with windrow.connect(f"{s3_url}/lake", metastore=metastore, store_options=s3_options) as lake:
        lake.create_table("metrics", sort=SORT, mirror=False).register.run(f"{s3_url}/raw")
        yield lake, raw


ASKING = {
    "count from metadata": lambda lake: lake.sql("select count(*) as n from metrics").to_dict(),
    "largest from metadata": lambda lake: lake.sql("select max(value) as v from metrics").to_dict(),
    "count of a scan": lambda lake: lake.table("metrics").scan().count(),
    "rows": lambda lake: lake.sql("select sum(value) from metrics").to_dict(),
    "rows of a scan": lambda lake: lake.table("metrics").scan().to_arrow(),
    "rows that metadata rules out": lambda lake: lake.sql("select * from metrics where value > 500").to_dict(),
    "labels": lambda lake: lake.table("metrics").inspect.labels("host"),
}


@pytest.mark.s3
@pytest.mark.parametrize("asking", ASKING)
def test_a_file_of_a_bucket_that_was_replaced_is_found_by_every_question(of_a_bucket, asking):
    lake, raw = of_a_bucket
    ask = ASKING[asking]
    ask(lake)
    ask(lake)
    put_points(raw, "1.parquet", points(400, 200))
    with pytest.raises(Damaged, match=r"raw/1\.parquet: the file has changed.*unregister"):
        ask(lake)
    raw.delete("1.parquet")
    with pytest.raises(NotFound, match=r"raw/1\.parquet: the file is registered.*gone"):
        ask(lake)
    lake.table("metrics").unregister.run(f"{raw.url}/1.parquet")
    ask(lake)
    assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 20}]


@pytest.mark.s3
def test_a_file_of_a_bucket_that_is_replaced_by_one_of_its_size_is_found(of_a_bucket):
    lake, raw = of_a_bucket
    assert ASKING["largest from metadata"](lake) == [{"v": 29.0}]
    size = raw.head("2.parquet").size
    put_points(raw, "2.parquet", points(10, 10))
    assert raw.head("2.parquet").size == size
    with pytest.raises(Damaged, match=r"raw/2\.parquet"):
        ASKING["largest from metadata"](lake)

"""Rows come from Arrow, from files and from Spark alike: the same table, whoever runs the tasks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged, InvalidInput, NotFound
from windrow.ingest.files import deal_out, find_files, schema_of
from windrow.ingest.parquet_heads import heads_of
from windrow.ingest.sources import ArrowSource, source_of
from windrow.lake import open_lake

START = datetime(2024, 1, 1, tzinfo=UTC)
SORT = "metric_name|host|timestamp/V2"
MOMENT = pa.timestamp("us", "UTC")


def points(count=100, start=0):
    return pa.table(
        {
            "metric_name": ["cpu"] * count,
            "host": [f"h{n % 5}" for n in range(count)],
            "timestamp": pa.array(
                [START + timedelta(seconds=30 * (start + n)) for n in range(count)], pa.timestamp("us", "UTC")
            ),
            "value": [float(start + n) for n in range(count)],
        }
    )


@pytest.fixture
def metrics(lake):
    return lake.create_table("metrics", sort=SORT)


def total(lake):
    (answer,) = lake.sql("select count(*) as n, sum(value) as total from metrics").to_dict()
    return answer["n"], answer["total"]


class TestArrow:
    @pytest.mark.parametrize(
        "rows",
        [points(), points().to_reader(), points().to_batches()[0], points().to_pandas()],
        ids=["table", "reader", "batch", "pandas"],
    )
    def test_anything_that_speaks_arrow_is_taken(self, lake, metrics, rows):
        assert metrics.ingest(rows).rows == 100
        assert total(lake) == (100, sum(range(100)))

    def test_a_long_stream_is_cut_into_chunks(self):
        source = ArrowSource(points(1000).to_reader(max_chunksize=100), chunk_bytes=points(250).nbytes)

        def count(batches, number):
            yield f"{number}: {sum(batch.num_rows for batch in batches)}"

        found = source.run(count, None, threads=4)
        assert [report for report in found if not report.endswith(" 0")] == ["0: 300", "1: 300", "2: 300", "3: 100"]

    def test_what_cannot_be_a_source_is_refused(self, metrics):
        for rows in (5, [], [1], {1, 2}):
            with pytest.raises(InvalidInput, match="cannot ingest a"):
                metrics.ingest(rows)


class TestFiles:
    def test_parquet_csv_and_json_give_the_same_rows(self, lake, metrics, tmp_path):
        pq.write_table(points(40), tmp_path / "a.parquet")
        pa.csv.write_csv(points(30, 40), tmp_path / "b.csv")
        rows = points(30, 70).to_pylist()
        lines = [f'{{"metric_name": "cpu", "host": "{r["host"]}", "timestamp": "{r["timestamp"]:%Y-%m-%dT%H:%M:%SZ}", "value": {r["value"]}}}' for r in rows]  # fmt: skip  # noqa: E501
        (tmp_path / "c.jsonl").write_text("\n".join(lines))
        for name in ("a.parquet", "b.csv", "c.jsonl"):
            metrics.ingest(tmp_path / name)
        assert total(lake) == (100, sum(range(100)))

    def test_a_text_file_that_comes_first_is_read_by_guessing(self, lake, metrics, tmp_path):
        pa.csv.write_csv(points(10), tmp_path / "a.csv")
        metrics.ingest(tmp_path / "a.csv")
        assert lake.sql("select typeof(host) as h, count(timestamp) as n from metrics group by all").to_dict() == [
            {"h": "VARCHAR", "n": 10}
        ]

    def test_folders_and_globs_are_looked_through_and_hidden_files_passed_by(self, lake, metrics, tmp_path):
        for number in range(4):
            pq.write_table(points(10, number * 10), tmp_path / f"part-{number}.parquet")
        (tmp_path / "_part.pm").write_bytes(b"a sidecar")
        (tmp_path / ".hidden.parquet").write_bytes(b"unfinished")
        (tmp_path / "deep").mkdir()
        pq.write_table(points(10, 40), tmp_path / "deep" / "part-4.parquet")
        assert len(find_files([str(tmp_path / "part-*.parquet")])) == 4
        assert metrics.ingest([tmp_path / "part-0.parquet", str(tmp_path / "deep")]).rows == 20

    def test_columns_of_all_files_are_taken_and_numbers_widen(self, lake, metrics, tmp_path):
        rows = points(10)
        narrow = rows.set_column(3, "value", rows["value"].cast(pa.float32()))
        pq.write_table(narrow, tmp_path / "a.parquet")
        pq.write_table(points(10, 10).append_column("region", pa.array(["eu"] * 10)), tmp_path / "b.parquet")
        metrics.ingest(str(tmp_path / "*.parquet"))
        assert lake.sql("select count(region) as n, sum(value) as s from metrics").to_dict() == [{"n": 10, "s": 190.0}]

    def test_times_of_96_bits_are_instants_as_spark_writes_them(self, lake, metrics, tmp_path):
        pq.write_table(points(50), tmp_path / "spark.parquet", use_deprecated_int96_timestamps=True)
        pq.write_table(points(50, start=50), tmp_path / "other.parquet")
        assert metrics.ingest([str(tmp_path / "spark.parquet"), str(tmp_path / "other.parquet")]).rows == 100
        (answer,) = lake.sql("select min(timestamp) as first, max(timestamp) as last from metrics").to_dict()
        assert answer == {"first": START, "last": START + timedelta(seconds=30 * 99)}

    def test_a_conflict_between_files_names_the_file_and_both_types(self, metrics, tmp_path):
        pq.write_table(points(1), tmp_path / "a.parquet")
        pq.write_table(points(1).set_column(1, "host", pa.array([5])), tmp_path / "b.parquet")
        with pytest.raises(InvalidInput, match=r"b.parquet: column 'host' is int64, in the files before it string"):
            metrics.ingest([tmp_path / "a.parquet", tmp_path / "b.parquet"])
        assert list(metrics.inspect.commits()) == []

    def test_a_large_file_is_dealt_out_by_row_groups(self, tmp_path, monkeypatch):
        monkeypatch.setattr("windrow.ingest.files._PART_BYTES", 1000)
        pq.write_table(points(1000), tmp_path / "a.parquet", row_group_size=100)
        files = find_files([str(tmp_path / "a.parquet")])
        shares = deal_out(files, 3, heads_of([files[0].name], "timestamp", lambda _: schema_of(files[0])))
        assert len(shares) == 3
        groups = [group for share in shares for part in share for group in part.row_groups]
        assert sorted(groups) == list(range(10))

    @pytest.mark.parametrize(
        ("name", "content", "error", "message"),
        [
            ("a.parquet", b"not Parquet at all", Damaged, "a.parquet"),
            ("a.parquet", None, NotFound, "no such file"),
            ("a.xls", b"x", InvalidInput, "does not tell the format"),
            ("a.csv", b"", Damaged, "a.csv"),
        ],
    )
    def test_bad_files_are_refused_by_name_and_the_table_stays_as_it_was(
        self, metrics, tmp_path, name, content, error, message
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(error, match=message):
            metrics.ingest(str(tmp_path / name))
        assert metrics.version() == 0

    def test_a_file_that_is_cut_short_in_its_pages_leaves_the_table_as_it_was(self, metrics, tmp_path):
        pq.write_table(points(5000), tmp_path / "a.parquet", compression="none", use_dictionary=False)
        data = bytearray((tmp_path / "a.parquet").read_bytes())
        data[4:2000] = bytes(1996)
        (tmp_path / "a.parquet").write_bytes(data)
        with pytest.raises(Damaged, match="a.parquet"):
            metrics.ingest(str(tmp_path / "a.parquet"))
        assert metrics.version() == 0
        assert metrics.inspect.commits()[0].state == "aborted"


class TestLateRows:
    def now(self, hours):
        return lambda: int((START + timedelta(hours=hours)).timestamp()) * 10**6

    def test_a_batch_is_a_backfill_unless_told_otherwise(self, tmp_path):
        with open_lake(tmp_path, now=self.now(1000)) as lake:
            result = lake.create_table("metrics", sort=SORT).ingest(points())
            assert (result.rows, result.late) == (100, 0)

    def test_late_rows_are_dropped_and_counted(self, tmp_path):
        with open_lake(tmp_path, now=self.now(1.25)) as lake:
            result = lake.create_table("metrics", sort=SORT).ingest(points(), drop_late=True)
            assert (result.rows, result.late, result.future) == (70, 30, 0)
            assert lake.sql("select min(value) as least from metrics").to_dict() == [{"least": 30.0}]

    def test_rows_from_the_future_are_dropped_when_a_bound_is_set(self, tmp_path):
        with open_lake(tmp_path, now=self.now(0)) as lake:
            metrics = lake.create_table("metrics", sort=SORT)
            result = metrics.ingest(points(), future="40m")
            assert (result.rows, result.late, result.future) == (81, 0, 19)

    def test_when_too_many_would_be_dropped_nothing_is_published(self, tmp_path):
        with open_lake(tmp_path, now=self.now(1.5)) as lake:
            metrics = lake.create_table("metrics", sort=SORT)
            with pytest.raises(InvalidInput, match="60 of 100 rows are late"):
                metrics.ingest(points(), drop_late=True)
            assert metrics.version() == 0
            assert metrics.ingest(points(), drop_late=True, most_dropped=0.6).late == 60


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_sparks_tasks_read_files_by_themselves(lake, metrics, tmp_path, spark):
    for number in range(5):
        pq.write_table(points(20, number * 20), tmp_path / f"part-{number}.parquet")
    heard = []
    result = metrics.ingest(str(tmp_path / "*.parquet"), spark=spark, on_split=heard.append)
    assert (result.rows, len(heard)) == (100, result.splits)
    assert total(lake) == (100, sum(range(100)))


def test_a_source_is_recognised_by_what_it_can_do():
    assert isinstance(source_of(points()), ArrowSource)

"""Rows that are dropped are kept, with the reason; one bad file does not stop the others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged, InvalidInput, StorageError
from windrow.ingest.dead_letter import FILE, set_apart
from windrow.lake import open_lake
from windrow.metastore import SqlMetastore
from windrow.table import Table

START = datetime(2024, 1, 1, tzinfo=UTC)
SORT = "metric_name|host|timestamp/V2"


def points(count=100, start=0):
    times = [START + timedelta(seconds=30 * (start + n)) for n in range(count)]
    return pa.table(
        {
            "metric_name": ["cpu"] * count,
            "host": [f"h{n % 5}" for n in range(count)],
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "value": [float(start + n) for n in range(count)],
        }
    )


@pytest.fixture
def lake(tmp_path):
    now = int((START + timedelta(hours=1.25)).timestamp()) * 10**6
    with open_lake(tmp_path / "lake", now=lambda: now) as opened:
        yield opened


@pytest.fixture
def metrics(lake):
    return lake.create_table("metrics", sort=SORT)


def letters(lake, result):
    return [pq.read_table(lake.context.store.path(key)) for key in result.dead_letters]


class TestLateRows:
    def test_late_and_future_rows_are_kept_as_they_were(self, lake, metrics):
        result = metrics.ingest(points(), drop_late=True, future=0, dead_letter=True, source="agent-7", most_dropped=1)
        assert (result.rows, result.late, result.future) == (70, 30, 0)
        (table,) = letters(lake, result)
        assert pa.Table.from_struct_array(table["row"].combine_chunks()).equals(points(30))
        assert set(table["reason"].to_pylist()) == {"late: older than the acceptance window when it arrived"}
        assert set(table["source"].to_pylist()) == {"agent-7"}
        assert set(table["arrived_at"].to_pylist()) == {START + timedelta(hours=1.25)}

    def test_reasons_lie_in_files_of_their_own(self, lake, metrics):
        result = metrics.ingest(points(200), drop_late=True, future="5m", dead_letter=True)
        reasons = {table["reason"][0].as_py().partition(":")[0]: table.num_rows for table in letters(lake, result)}
        assert reasons == {"late": 30, "future": 39} == {"late": result.late, "future": result.future}

    def test_without_being_asked_nothing_is_kept(self, lake, metrics, tmp_path):
        result = metrics.ingest(points(), drop_late=True)
        assert (result.late, result.dead_letters) == (30, ())
        assert not list(tmp_path.rglob("_dead_letter"))


class TestConflicts:
    @pytest.fixture
    def good(self, tmp_path):
        pq.write_table(points(40), tmp_path / "a.parquet")
        return tmp_path / "a.parquet"

    def test_a_file_of_other_types_does_not_stop_the_rest(self, lake, metrics, tmp_path, good):
        bad = points(10).set_column(1, "host", pa.array(range(10))).append_column("extra", pa.array([1] * 10))
        pq.write_table(bad, tmp_path / "b.parquet")
        pq.write_table(points(40, 40), tmp_path / "c.parquet")
        result = metrics.ingest(str(tmp_path / "*.parquet"), dead_letter=True)
        assert (result.rows, result.conflicting) == (80, 10)
        (table,) = letters(lake, result)
        assert pa.Table.from_struct_array(table["row"].combine_chunks()).equals(bad)
        assert set(table["reason"].to_pylist()) == {"column 'host' is string in the table and int64 in the data"}
        assert set(table["file"].to_pylist()) == {str(tmp_path / "b.parquet")}
        assert "extra" not in {column.name for column in metrics.inspect.columns()}

    def test_the_table_decides_before_the_first_file_does(self, lake, metrics, tmp_path, good):
        metrics.ingest(good)
        pq.write_table(points(9).set_column(1, "host", pa.array(range(9))), tmp_path / "0.parquet")
        result = metrics.ingest([tmp_path / "0.parquet", good], dead_letter=True)
        assert (result.rows, result.conflicting) == (40, 9)

    def test_text_that_cannot_be_read_is_kept_line_by_line(self, lake, metrics, tmp_path, good):
        metrics.ingest(good)
        rows = points(3, 40)
        pa.csv.write_csv(rows.set_column(3, "value", pa.array(["1", "much", "3"])), tmp_path / "b.csv")
        (tmp_path / "c.jsonl").write_text('{"metric_name": "cpu", "value": 1}\n{"metric_name": 7, "value": 2}\n')
        result = metrics.ingest([good, tmp_path / "b.csv", tmp_path / "c.jsonl"], dead_letter=True)
        assert (result.rows, result.conflicting) == (40, 5)
        by_file = {table["file"][0].as_py()[-5:]: table for table in letters(lake, result)}
        first = by_file["b.csv"]["row"][1].as_py()
        assert (first["header"], "much" in first["line"]) == ('"metric_name","host","timestamp","value"', True)
        assert "'much'" in by_file["b.csv"]["reason"][0].as_py()
        assert by_file["jsonl"]["row"][1].as_py() == {"line": '{"metric_name": 7, "value": 2}'}

    def test_files_that_are_wrong_alike_are_told_apart(self):
        rows = pa.RecordBatch.from_pydict({"host": [1, 2]})
        batches = [rows.replace_schema_metadata({FILE: name}) for name in ("b", "c", "b")]
        fitting, rejected = set_apart(batches, {"host": pa.string()})
        assert fitting == []
        assert [(each.file, each.rows.num_rows) for each in rejected] == [("b", 4), ("c", 2)]

    def test_a_damaged_file_is_still_an_error(self, metrics, tmp_path, good):
        (tmp_path / "b.parquet").write_bytes(good.read_bytes()[:-20])
        with pytest.raises(Damaged, match="b.parquet"):
            metrics.ingest([good, tmp_path / "b.parquet"], dead_letter=True)
        assert metrics.version() == 0

    def test_too_many_are_an_error_and_nothing_is_published(self, metrics, tmp_path, good):
        pq.write_table(points(60).set_column(1, "host", pa.array(range(60))), tmp_path / "b.parquet")
        with pytest.raises(InvalidInput, match="60 are of other types .* more than 50%"):
            metrics.ingest([good, tmp_path / "b.parquet"], dead_letter=True)
        assert (metrics.version(), list(metrics.inspect.dead_letters())) == (0, [])

    def test_when_no_file_fits_nothing_is_begun(self, metrics, tmp_path, good):
        metrics.ingest(good)
        pq.write_table(points(6).set_column(1, "host", pa.array(range(6))), tmp_path / "b.parquet")
        with pytest.raises(InvalidInput, match="b.parquet: column 'host' is int64, in the table string"):
            metrics.ingest(tmp_path / "b.parquet", dead_letter=True)
        assert len(metrics.inspect.commits()) == 1

    def test_a_plan_tells_which_files_would_be_set_aside(self, metrics, tmp_path, good):
        pq.write_table(points(6).set_column(1, "host", pa.array(range(6))), tmp_path / "b.parquet")
        plan = metrics.ingest.plan(str(tmp_path / "*.parquet"), dead_letter=True)
        assert [problem.partition(":")[0] for problem in plan.set_aside] == [str(tmp_path / "b.parquet")]

    @pytest.mark.spark
    @pytest.mark.xdist_group("spark")
    def test_sparks_tasks_set_rows_aside_too(self, lake, metrics, tmp_path, good, spark):
        pq.write_table(points(6).set_column(1, "host", pa.array(range(6))), tmp_path / "b.parquet")
        result = metrics.ingest(str(tmp_path / "*.parquet"), dead_letter=True, spark=spark)
        assert (result.rows, result.conflicting, sum(table.num_rows for table in letters(lake, result))) == (40, 6, 6)


def test_letters_are_listed_with_the_commit_that_published_them(metrics):
    first = metrics.ingest(points(), drop_late=True, dead_letter=True)
    metrics.ingest(points(10, 90))
    (row,) = metrics.inspect.dead_letters()
    assert (row.key, row.rows, row.commit_id, row.version) == (first.dead_letters[0], 30, first.commit_id, 1)
    assert list(metrics.at(version=0).inspect.dead_letters()) == []


def test_letters_of_a_commit_that_failed_are_not_listed(lake, metrics, tmp_path):
    def fail(step):
        if step == "committing":
            raise StorageError("the disk is full")

    with SqlMetastore(f"sqlite:///{tmp_path}/lake/windrow.db", at_step=fail) as failing:
        table = Table(replace(lake.context, metastore=failing), "metrics")
        with pytest.raises(StorageError):
            table.ingest(points(), drop_late=True, dead_letter=True)
    assert len(list(tmp_path.rglob("_dead_letter/*.parquet"))) == 1, "the file was written and is an orphan"
    assert list(metrics.inspect.dead_letters()) == []
    assert metrics.version() == 0


def test_drops_are_counted_for_each_source(metrics):
    metrics.ingest(points(), drop_late=True, source="agent-1")
    metrics.ingest(points(), source="agent-2")
    metrics.ingest(points(200), drop_late=True, future="5m", source="agent-1")
    rows = metrics.inspect.sources().to_dict()
    none = {"unfit": 0, "rounded": 0}
    assert rows == [
        {"source": "agent-1", "commits": 2, "rows": 201, "late": 60, "future": 39, "conflicting": 0} | none,
        {"source": "agent-2", "commits": 1, "rows": 100, "late": 0, "future": 0, "conflicting": 0} | none,
    ]
    assert [row.commits for row in metrics.at(version=1).inspect.sources()] == [1]

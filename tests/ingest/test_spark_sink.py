"""Spark writes into a table by its own words: df.write and df.writeStream with the format `windrow`."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import windrow

SORT = "metric_name|host|timeseries_id|timestamp/V2"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
COLUMNS = "metric_name string, host string, timestamp timestamp, value double"

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        opened.create_table("metrics", sort=SORT)
        yield opened


def values(lake):
    return sorted(row["value"] for row in lake.sql("select value from metrics").to_dict())


class TestBatches:
    @pytest.fixture
    def rows(self, spark):
        return spark.createDataFrame([("cpu", f"h{i % 3}", NOON, float(i)) for i in range(20)], COLUMNS).repartition(3)

    def save(self, rows, lake, **options):
        rows.write.format("windrow").options(**{"table": "metrics"} | options).mode("append").save(lake.url)

    def test_a_dataframe_becomes_one_commit(self, lake, rows):
        self.save(rows, lake, source="nightly")
        self.save(rows, lake, source="nightly")
        assert lake.table("metrics").version() == 2
        assert values(lake) == sorted([*range(20), *range(20)])
        assert [commit.state for commit in lake.table("metrics").inspect.commits()] == ["published"] * 2

    @pytest.mark.s3
    @pytest.mark.postgres
    def test_a_dataframe_goes_to_a_bucket(self, rows, s3_url, s3_options, postgres_url):
        with windrow.connect(s3_url, metastore=postgres_url, store_options=s3_options) as lake:
            lake.create_table("metrics", sort=SORT)
            store = {f"store.{name}": value for name, value in s3_options.items()}
            self.save(rows, lake, metastore=postgres_url, **store)
            assert values(lake) == list(range(20))

    def test_a_task_that_fails_leaves_the_table_as_it_was(self, lake, rows):
        with pytest.raises(PySparkException, match="metric_name"):
            self.save(rows.selectExpr("* except (metric_name)", "cast(null as string) as metric_name"), lake)
        table = lake.table("metrics")
        assert table.version() == 0
        assert [commit.state for commit in table.inspect.commits()] == ["aborted"]

    def test_an_unknown_table_is_refused_with_the_nearest_name(self, lake, rows):
        with pytest.raises(PySparkException, match="did you mean 'metrics'"):
            self.save(rows, lake, table="metrisc")

    def test_a_table_is_not_overwritten(self, lake, rows):
        with pytest.raises(PySparkException, match="never overwritten"):
            rows.write.format("windrow").option("table", "metrics").mode("overwrite").save(lake.url)


class TestStreams:
    @pytest.fixture
    def start(self, spark, lake, tmp_path):
        """Starts, or goes on with, a query over three files, one in each batch."""
        folder = tmp_path / "incoming"
        folder.mkdir()
        for number in range(3):
            rows = [("cpu", "h", NOON, float(value)) for value in range(10 * number, 10 * number + 10)]
            names = ("metric_name", "host", "timestamp", "value")
            pq.write_table(
                pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), folder / f"{number}.parquet"
            )

        def run(**options):
            rows = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))
            writer = rows.writeStream.format("windrow").option("lake", lake.url).option("table", "metrics")
            writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).options(**options)
            query = writer.trigger(availableNow=True).start()
            try:
                assert query.awaitTermination(120)
            finally:
                query.stop()

        return run

    def test_each_batch_is_a_commit_that_a_replay_leaves_alone(self, lake, start, tmp_path):
        start(drop_late="false")
        assert (lake.table("metrics").version(), values(lake)) == (3, list(range(30)))
        for name in ("2", ".2.crc"):
            (tmp_path / "checkpoint" / "commits" / name).unlink()
        start(drop_late="false")
        assert (lake.table("metrics").version(), values(lake)) == (3, list(range(30)))
        commits = [lake.context.metastore.commit(row.commit_id) for row in lake.table("metrics").inspect.commits()]
        assert [commit.summary["batch_id"] for commit in commits] == [2, 1, 0]

    def test_late_rows_stop_it_by_default_and_a_restart_that_takes_them_loses_none(self, lake, start):
        with pytest.raises(PySparkException, match="10 of 10 rows are late"):
            start()
        assert lake.table("metrics").version() == 0
        start(drop_late="false")
        assert values(lake) == list(range(30))

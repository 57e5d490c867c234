"""A lake from its making to an answer, and the ways in which it refuses."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.errors import (
    AlreadyExists,
    ConfigError,
    Incompatible,
    InvalidInput,
    NotFound,
    SortSchemaError,
    StorageError,
)
from windrow.lake import open_lake

SORT = "metric_name|host|timeseries_id|timestamp&region/V2"


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        yield opened


class TestConnecting:
    def test_a_new_folder_becomes_a_lake_that_can_be_opened_again(self, tmp_path):
        with windrow.connect(tmp_path / "lake") as lake:
            lake.create_table("metrics", sort=SORT)
        with windrow.connect(tmp_path / "lake", create=False) as lake:
            assert [table.name for table in lake.tables()] == ["metrics"]

    @pytest.mark.parametrize("name", ["100%", "what?", "a b", "ünï#1", "q&a=1"])
    def test_a_folder_may_have_any_name(self, tmp_path, name):
        windrow.connect(tmp_path / name).close()
        assert (tmp_path / name / "windrow.db").exists()
        windrow.connect(tmp_path / name, create=False).close()

    def test_without_create_a_missing_lake_is_not_found_and_nothing_is_made(self, tmp_path):
        with pytest.raises(NotFound, match="no lake"):
            windrow.connect(tmp_path / "lake", create=False)
        assert not (tmp_path / "lake").exists()

    def test_a_bucket_without_a_metastore_is_refused(self):
        with pytest.raises(ConfigError, match="postgresql://"):
            windrow.connect("s3://bucket/lake", store_options={"region": "eu-central-1"})

    def test_a_folder_that_cannot_be_made_is_refused(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StorageError, match="choose a folder"):
            windrow.connect(tmp_path / "file" / "lake")

    def test_a_database_that_is_not_ours_is_left_alone(self, tmp_path):
        (tmp_path / "windrow.db").write_text(
            "a shopping list, not a database at all, and longer than a header of SQLite"
        )
        before = (tmp_path / "windrow.db").read_bytes()
        with pytest.raises(Incompatible, match="not an SQLite database"):
            windrow.connect(tmp_path)
        assert (tmp_path / "windrow.db").read_bytes() == before


class TestTables:
    def test_a_table_is_described(self, lake):
        description = lake.create_table("metrics", sort=SORT, window="5m", retention="30d").describe()
        assert (description.version, description.splits, description.rows) == (0, 0, 0)
        assert description.settings["window"] == 300
        assert description.settings["retention"] == 30 * 86400

    def test_a_name_is_taken_once(self, lake):
        lake.create_table("metrics", sort=SORT)
        with pytest.raises(AlreadyExists, match="'metrics'"):
            lake.create_table("metrics", sort=SORT)

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"name": "../x", "sort": SORT}, InvalidInput, "not a table name"),
            ({"name": "x", "sort": "host|/V2"}, SortSchemaError, "position 5"),
            ({"name": "x", "sort": "host/V2"}, InvalidInput, "does not name the column 'timestamp'"),
            ({"name": "x", "sort": SORT, "window": "7m"}, InvalidInput, "divide an hour"),
            ({"name": "x", "sort": SORT, "windw": "5m"}, TypeError, "unexpected keyword argument 'windw'"),
        ],
    )
    def test_bad_settings_are_refused_and_nothing_is_made(self, lake, arguments, error, message):
        with pytest.raises(error, match=message):
            lake.create_table(**arguments)
        assert list(lake.tables()) == []

    def test_an_unknown_table_gives_the_nearest_name(self, lake):
        lake.create_table("metrics", sort=SORT)
        with pytest.raises(NotFound, match="did you mean 'metrics'"):
            lake.table("metrisc")

    def test_settings_change_but_the_timestamp_does_not(self, lake):
        table = lake.create_table("metrics", sort=SORT)
        table.change.run(window="1h")
        assert table.settings().window == 3600
        with pytest.raises(InvalidInput, match="living table"):
            table.change.run(timestamp="host")
        assert table.settings().timestamp == "timestamp"

    def test_a_table_without_points_answers_no_rows(self, lake):
        lake.create_table("metrics", sort=SORT)
        assert lake.sql("select * from metrics").to_dict() == []

    def test_at_takes_a_version_or_a_moment(self, lake):
        table = lake.create_table("metrics", sort=SORT)
        assert table.at(version=0).version() == table.at(timestamp=0).version() == 0
        with pytest.raises(InvalidInput, match="one of the two"):
            table.at()

    def test_at_takes_dates_and_iso_text_and_nothing_else(self, lake):
        table = lake.create_table("events", sort="host|timestamp/V2")
        table.ingest(pa.table({"host": ["a"], "timestamp": pa.array([0], pa.timestamp("us", "UTC"))}))
        for before in ("2000-01-01", "2000-01-01T00:00:00Z", date(2000, 1, 1), datetime(2000, 1, 1, tzinfo=UTC)):
            assert table.at(timestamp=before).version() == 0
        for after in ("2999-01-01", date(2999, 1, 1), 2**61):
            assert table.at(timestamp=after).version() == 1
        for wrong in ("rubbish", "", "1", 1.5, True):
            with pytest.raises(InvalidInput, match="^timestamp: .* is no moment"):
                table.at(timestamp=wrong)
        for wrong in ("1", -1, True, 1.0):
            with pytest.raises(InvalidInput, match="^version: .* is no version"):
                table.at(version=wrong)

    def test_a_run_can_be_repeated_with_the_same_ids(self, tmp_path):
        counter = itertools.count()
        with open_lake(tmp_path, now=lambda: 5, new_id=lambda: f"id{next(counter)}") as lake:
            assert lake.create_table("metrics", sort=SORT).record().table_id == "id1"


class TestSplits:
    """What a table is made of, without Spark."""

    def points(self, *minutes):
        times = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=minute) for minute in minutes]
        return pa.table({"host": ["b" if minute % 2 else "a" for minute in minutes], "timestamp": times})

    def splits(self, table):
        pages = table.context.metastore.splits(table.record().table_id, table.version())
        return [split for page in pages for split in page]

    def test_files_are_stored_before_the_commit_that_shows_them(self, lake, monkeypatch):
        events = lake.create_table("events", sort="host|timestamp/V2")
        kind, found = type(lake.context.metastore), []
        publish = kind.publish

        def look_first(metastore, *ids, add=(), **more):
            found.extend(lake.context.store.head(key).key for split in add for key in (split.key, split.sidecar.key))
            return publish(metastore, *ids, add=add, **more)

        monkeypatch.setattr(kind, "publish", look_first)
        assert events.ingest(self.points(0, 1, 20)).splits == 2
        assert sorted(found) == sorted(key for each in self.splits(events) for key in (each.key, each.sidecar.key))

    def test_after_a_change_of_the_window_new_splits_use_the_new_duration(self, lake):
        events = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        events.ingest(self.points(20))
        events.change.run(window="1h")
        events.ingest(self.points(20))
        midnight = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
        found = [(each.window.start - midnight, each.window.duration) for each in self.splits(events)]
        assert sorted(found) == [(0, 3600), (900, 900)]

    def test_points_from_before_the_compaction_start_time_are_written_sorted_in_their_window(self, lake):
        events = lake.create_table("events", sort="host|timestamp/V2", compaction_start_time=2_000_000_000)
        events.ingest(self.points(3, 2, 1))
        [split] = self.splits(events)
        rows = pq.read_table(pa.BufferReader(lake.context.store.get(split.key)))
        assert rows["host"].to_pylist() == ["a", "b", "b"]
        assert (split.window.start, split.scope.sort_schema) == (1704067200, "host|timestamp/V2")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
class TestIngest:
    @pytest.fixture
    def rows(self, spark):
        start = datetime(2024, 1, 1, tzinfo=UTC)
        points = [
            ("cpu", f"host-{i % 5}", "eu", None if i % 50 == 0 else start + timedelta(seconds=30 * i), float(i))
            for i in range(200)
        ]
        columns = "metric_name string, host string, region string, timestamp timestamp, value double"
        return spark.createDataFrame(points, columns).repartition(3)

    def test_rows_come_in_by_one_commit_and_are_answered(self, lake, rows):
        metrics = lake.create_table("metrics", sort=SORT)
        heard = []
        result = metrics.ingest(rows, on_split=heard.append)
        assert (result.rows, result.version, result.null_timestamps) == (200, 1, 4)
        assert len(heard) == result.splits == len(metrics.inspect.splits())
        assert result.windows == len(metrics.inspect.windows()) == 8  # seven quarters of an hour, and the overflow
        (answer,) = lake.sql(
            "select count(*) as n, sum(value) as total, count(timestamp) as timed from metrics"
        ).to_dict()
        assert answer == {"n": 200, "total": sum(range(200)), "timed": 196}

    def test_an_older_version_is_still_read(self, lake, rows):
        metrics = lake.create_table("metrics", sort=SORT)
        metrics.ingest(rows)
        metrics.ingest(rows)
        assert metrics.describe().rows == 400
        assert metrics.at(version=1).describe().rows == 200
        assert metrics.at(version=0).describe().rows == 0

    def test_every_file_equals_its_row_in_the_metastore(self, lake, rows):
        metrics = lake.create_table("metrics", sort=SORT)
        metrics.ingest(rows)
        record = metrics.record()
        splits = [split for page in lake.context.metastore.splits(record.table_id, 1) for split in page]
        for split in splits:
            file = pq.read_metadata(pa.BufferReader(lake.context.store.get(split.key)))
            pairs = {key.decode(): value.decode() for key, value in file.metadata.items()}
            told = type(split).from_key_value(
                pairs, key=split.key, size_bytes=split.size_bytes, etag=split.etag, digest=split.digest
            )
            assert told == replace(split, sidecar=None)

    def test_a_type_conflict_names_both_types_and_leaves_the_table_as_it_was(self, lake, rows):
        metrics = lake.create_table("metrics", sort=SORT)
        metrics.ingest(rows)
        with pytest.raises(InvalidInput, match="'host' is string in the table and double in the data"):
            metrics.ingest(rows.withColumn("host", rows.value))
        assert metrics.version() == 1

    def test_a_narrower_type_is_widened_to_the_tables_own(self, lake, rows):
        metrics = lake.create_table("metrics", sort=SORT)
        metrics.ingest(rows)
        metrics.ingest(rows.withColumn("value", rows.value.cast("float")))
        assert lake.sql("select distinct typeof(value) as t, count(*) as n from metrics group by all").to_dict() == [
            {"t": "DOUBLE", "n": 400}
        ]

    def test_a_task_that_fails_gives_its_own_error_and_the_commit_is_given_up(self, lake, rows):
        metrics = lake.create_table("metrics", sort=SORT)
        with pytest.raises(InvalidInput, match="metric_name"):
            metrics.ingest(rows.selectExpr("* except (metric_name)", "cast(null as string) as metric_name"))
        assert metrics.version() == 0
        assert metrics.inspect.commits()[0].state == "aborted"

    def test_no_rows_are_no_commit(self, lake, rows):
        metrics = lake.create_table("metrics", sort=SORT)
        assert metrics.ingest(rows.limit(0)).rows == 0
        assert metrics.version() == 0
        assert metrics.inspect.commits()[0].state == "aborted"

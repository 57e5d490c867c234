"""A stream comes in batch by batch, each exactly once: replays change nothing, late rows are dropped and counted."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from windrow.errors import CommitUnknown, InvalidInput, LeaseExpired, MetastoreError
from windrow.ingest.batch import StreamBatch
from windrow.ingest.checkpoints import QueryCheckpoint
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sources import source_of
from windrow.lake import open_lake
from windrow.metastore import CommitState, SqlMetastore
from windrow.storage import open_store

SORT = "metric_name|host|timeseries_id|timestamp/V2"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SCHEMA = pa.schema(
    [
        ("metric_name", pa.string()),
        ("host", pa.string()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
    ]
)
COLUMNS = "metric_name string, host string, timestamp timestamp, value double"


def micros(moment):
    return int(moment.timestamp()) * 1_000_000


def points(values, moment=NOON):
    """Points of one moment, told apart by their values."""
    rows = [("cpu", f"h{int(value) % 3}", moment, float(value)) for value in values]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


class Clock:
    """A clock that tests turn."""

    def __init__(self, moment):
        self.moment = moment

    def __call__(self):
        return micros(self.moment)


@pytest.fixture
def clock():
    return Clock(NOON)


@pytest.fixture
def lake(tmp_path, clock):
    with open_lake(tmp_path / "lake", now=clock) as opened:
        opened.create_table("metrics", sort=SORT)
        yield opened


def take(lake, batch, rows, **settings):
    """Take a batch as a stream does, on threads of this process."""
    run = Ingest.of(lake.context, "metrics", IngestSettings(**{"drop_late": True} | settings), batch)
    return run.run(source_of(rows))


def values(lake):
    return sorted(row["value"] for row in lake.sql("select value from metrics").to_dict())


class TestBatches:
    def test_a_batch_is_one_commit_with_the_checkpoint_of_its_query(self, lake):
        result = take(lake, StreamBatch("q", 0), points([1, 2]))
        table = lake.table("metrics").record().table_id
        assert (result.version, result.rows, result.replayed) == (1, 2, False)
        assert lake.context.metastore.checkpoint(table, "default@q") == "0"
        assert lake.context.metastore.commit(result.commit_id).summary["query_id"] == "q"

    def test_a_replay_is_a_no_op_that_says_what_the_first_run_did(self, lake):
        first = take(lake, StreamBatch("q", 0), points([1, 2]))
        take(lake, StreamBatch("q", 1), points([3]))
        assert take(lake, StreamBatch("q", 0), points([1, 2])) == replace(first, replayed=True)
        assert (lake.table("metrics").version(), values(lake)) == (2, [1, 2, 3])

    def test_queries_sources_and_tables_do_not_stand_for_each_other(self, lake):
        lake.create_table("events", sort="host|timestamp/V2")
        take(lake, StreamBatch("q", 0), points([1]))
        take(lake, StreamBatch("r", 0), points([2]))
        take(lake, StreamBatch("q", 0), points([3]), source="other")
        Ingest.of(lake.context, "events", IngestSettings(), StreamBatch("q", 0)).run(source_of(points([4])))
        assert values(lake) == [1, 2, 3]
        assert lake.table("events").describe().rows == 1

    def test_an_empty_batch_moves_the_checkpoint_alone(self, lake):
        take(lake, StreamBatch("q", 0), points([1]))
        result = take(lake, StreamBatch("q", 1), points([]))
        assert (result.rows, result.splits, result.version) == (0, 0, 2)
        assert lake.context.metastore.checkpoint(lake.table("metrics").record().table_id, "default@q") == "1"

    def test_a_stream_may_begin_with_an_empty_batch(self, lake):
        take(lake, StreamBatch("q", 0), points([]))
        assert len(lake.table("metrics").inspect.columns()) == 0
        take(lake, StreamBatch("q", 1), points([1]))
        assert values(lake) == [1]

    def test_a_batch_with_other_offsets_is_not_taken_for_the_published_one(self, lake):
        first = take(lake, StreamBatch("q", 0, "right"), points([1]))
        for offsets in ("right", None):
            assert take(lake, StreamBatch("q", 0, offsets), points([1])) == replace(first, replayed=True)
        with pytest.raises(InvalidInput, match="batch 0 of query q was published with other offsets"):
            take(lake, StreamBatch("q", 0, "wrong"), points([2]))
        assert values(lake) == [1]

    def test_a_batch_that_was_never_published_cannot_follow_a_later_one(self, lake):
        take(lake, StreamBatch("q", 7), points([1]))
        with pytest.raises(InvalidInput, match="stands at batch 7.*batch 5.*new checkpoint folder"):
            take(lake, StreamBatch("q", 5), points([2]))
        assert values(lake) == [1]


class TestAttempts:
    def opened(self, lake, batch, rows):
        run = Ingest.of(lake.context, "metrics", IngestSettings(drop_late=True), batch)
        return run, run.open(rows.schema)

    def test_a_driver_that_was_thought_dead_cannot_publish_after_its_successor(self, lake):
        rows = points([1])
        old, opened = self.opened(lake, StreamBatch("q", 0), rows)
        reports = list(opened.task.report(rows.to_batches(), 0))
        take(lake, StreamBatch("q", 0), rows)
        assert old.publish(opened.commit.attempt, reports).version == 1  # told of the one that counts
        assert values(lake) == [1]

    def test_a_driver_that_was_taken_over_hears_of_it(self, lake):
        rows = points([1])
        old, opened = self.opened(lake, StreamBatch("q", 0), rows)
        reports = list(opened.task.report(rows.to_batches(), 0))
        self.opened(lake, StreamBatch("q", 0), rows)
        with pytest.raises(LeaseExpired, match="taken over by attempt 2"):
            old.publish(opened.commit.attempt, reports)
        take(lake, StreamBatch("q", 0), rows)
        assert values(lake) == [1]

    @pytest.mark.parametrize("lost_at", ["committing", "committed"])
    def test_a_replay_after_an_unknown_outcome_publishes_once(self, lake, tmp_path, lost_at):
        """The metastore is lost before or after it commits, and does not come back while the driver lives."""

        class Lost(SqlMetastore):
            def commit(self, commit_id):
                raise MetastoreError("the metastore does not answer")

        def lose(step):
            if step == lost_at:
                raise MetastoreError("the connection broke")

        broken = Lost(f"sqlite:///{tmp_path}/lake/windrow.db", at_step=lose, sleep=lambda _: None)
        context = replace(lake.context, metastore=broken)
        run = Ingest.of(context, "metrics", IngestSettings(drop_late=True), StreamBatch("q", 0))
        with pytest.raises((CommitUnknown, MetastoreError)):
            run.run(source_of(points([1, 2])))
        broken.close()
        was_published = lake.context.metastore.commit(run.commit_id).state is CommitState.PUBLISHED
        assert was_published == (lost_at == "committed")
        assert take(lake, StreamBatch("q", 0), points([1, 2])).replayed == was_published
        assert values(lake) == [1, 2]


class TestLateRows:
    def test_a_stream_drops_and_counts_what_is_older_than_the_acceptance_window(self, lake):
        rows = pa.concat_tables([points([1, 2]), points([3], NOON - 2 * HOUR)])
        result = take(lake, StreamBatch("q", 0), rows)
        assert (result.rows, result.late) == (2, 1)

    def test_a_replay_judges_by_the_arrival_that_the_first_attempt_noted(self, lake, clock):
        """The driver dies over a batch and is restarted three hours later: the rows were not late when they came."""
        rows = points([1, 2], NOON - HOUR / 2)
        Ingest.of(lake.context, "metrics", IngestSettings(drop_late=True), StreamBatch("q", 0)).open(rows.schema)
        clock.moment = NOON + 3 * HOUR
        result = take(lake, StreamBatch("q", 0), rows)
        assert (result.rows, result.late) == (2, 0)
        assert lake.context.metastore.commit(result.commit_id).summary["arrived_at"] == micros(NOON)
        with pytest.raises(InvalidInput, match="2 of 2 rows are late"):
            take(lake, StreamBatch("q", 1), rows)

    def test_when_nearly_all_is_late_the_stream_stops_unless_it_is_told_to_go_on(self, lake):
        rows = points([1, 2], NOON - 2 * HOUR)
        with pytest.raises(InvalidInput, match="drop_late=False"):
            take(lake, StreamBatch("q", 0), rows)
        assert take(lake, StreamBatch("q", 0), rows, most_dropped=1.0).late == 2
        assert take(lake, StreamBatch("q", 1), rows, drop_late=False).rows == 2


class TestCheckpoints:
    @pytest.fixture
    def folder(self, tmp_path):
        store = open_store(str(tmp_path / "checkpoint"))
        store.put("metadata", b'{"id":"some-query"}')
        store.put("offsets/.9.crc", b"")
        for number in (8, 9, 10):
            store.put(f"offsets/{number}", b"v1\n%d" % number)
        return str(tmp_path / "checkpoint")

    @pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
    def test_it_tells_the_query_and_the_batch_that_runs(self, folder, form):
        checkpoint = QueryCheckpoint.at(form.format(folder), {"region": "x"})
        assert checkpoint.batch() == StreamBatch("some-query", 10, checkpoint.offsets(10))
        assert checkpoint.offsets(10) != checkpoint.offsets(9)

    def test_what_is_no_checkpoint_is_refused(self, tmp_path, folder):
        with pytest.raises(InvalidInput, match="no batch was started"):
            QueryCheckpoint.at(str(tmp_path / "elsewhere"), {}).batch()
        with pytest.raises(InvalidInput, match="does not name its query"):
            QueryCheckpoint.at(str(tmp_path / "elsewhere"), {}).query_id()
        with pytest.raises(InvalidInput, match="hdfs.*foreachBatch"):
            QueryCheckpoint.at("hdfs://host/folder", {})


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
class TestQueries:
    @pytest.fixture
    def incoming(self, spark, tmp_path):
        """Three files that come in as a stream, one in each batch."""
        for number in range(3):
            folder = tmp_path / "incoming"
            folder.mkdir(exist_ok=True)
            pq.write_table(points(range(10 * number, 10 * number + 10)), folder / f"{number}.parquet")
        return lambda: spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))

    def run(self, query):
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()

    def test_a_query_is_started_and_goes_on_where_it_ended(self, lake, incoming, tmp_path):
        stream = lake.table("metrics").stream
        for _ in range(2):
            self.run(stream.start(incoming(), str(tmp_path / "checkpoint"), trigger={"availableNow": True}))
        assert values(lake) == list(range(30))
        assert lake.table("metrics").version() == 3

    def test_a_batch_that_spark_repeats_is_taken_once(self, lake, incoming, tmp_path):
        """Spark notes a batch as done only after the sink; a driver that dies in between runs it again."""
        stream = lake.table("metrics").stream.using(source="kafka")
        self.run(stream.start(incoming(), str(tmp_path / "checkpoint"), trigger={"availableNow": True}, name="metrics"))
        for name in ("2", ".2.crc"):
            (tmp_path / "checkpoint" / "commits" / name).unlink()
        results = []

        def own(rows, batch_id):
            results.append(stream.publish(rows, batch_id))

        writer = incoming().writeStream.foreachBatch(own).option("checkpointLocation", str(tmp_path / "checkpoint"))
        self.run(writer.trigger(availableNow=True).start())
        assert [result.replayed for result in results] == [True]
        assert values(lake) == list(range(30))

    def test_an_old_copy_of_a_checkpoint_folder_is_refused(self, lake, incoming, tmp_path):
        """Spark plans a batch anew under a number that is taken."""
        stream = lake.table("metrics").stream
        self.run(stream.start(incoming(), str(tmp_path / "checkpoint"), trigger={"availableNow": True}))
        for name in ("commits/1", "commits/2", "offsets/1", "offsets/2"):
            (tmp_path / "checkpoint" / name).unlink()
            (tmp_path / "checkpoint" / name).with_name(f".{name[-1]}.crc").unlink()
        with pytest.raises(PySparkException, match="published with other offsets"):
            self.run(stream.start(incoming(), str(tmp_path / "checkpoint"), trigger={"availableNow": True}))
        assert values(lake) == list(range(30))

    def test_the_function_for_foreach_batch_travels(self, lake):
        write = pickle.loads(pickle.dumps(lake.table("metrics").stream.using(future="1h").write))
        assert write.__self__.settings == IngestSettings(drop_late=True, future="1h")
        assert write.__self__.context.metastore.table("metrics").version == 0
        write.__self__.context.metastore.close()

    def test_rows_that_are_no_stream_are_refused(self, lake, spark):
        rows = spark.createDataFrame([("cpu", "h", NOON, 1.0)], COLUMNS)
        with pytest.raises(InvalidInput, match="no stream"):
            lake.table("metrics").stream.start(rows, "checkpoint")
        with pytest.raises(InvalidInput, match="which query"):
            lake.table("metrics").stream.write(rows, 0)

"""A driver of Spark in a process of its own, for tests that kill it, or its tasks and executors.

It is called with a line of JSON: the name of a job, the address of the lake, and what the job needs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import windrow
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sources import FrameSource
from windrow.runners.session import spark_session
from windrow.runners.spark import run_on_partitions

COLUMNS = "metric_name string, host string, timestamp timestamp, value double"
ATTEMPTS = 3


def main():
    """Run a job, and print what it gives as the last line."""
    job, lake, more = json.loads(sys.argv[1])
    print(json.dumps(JOBS[job](lake, **more)))


def open_lake(lake):
    return windrow.connect(lake["url"], metastore=lake.get("metastore"), store_options=lake.get("store_options"))


def session(master, folder, **options):
    """Start Spark on a master; its words go to a file."""
    return spark_session(master, options=options, log=Path(folder) / f"spark-{os.getpid()}.log")


def stream(lake, *, folder, way):
    """Bring in what lies in the folder `incoming`, a file in each batch, and end when all is in."""
    spark = session("local[2]", folder)
    incoming = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(f"{folder}/incoming")
    with open_lake(lake) as opened:
        if way == "foreachBatch":
            table = opened.table("metrics")
            query = table.stream.start(incoming, f"{folder}/checkpoint", trigger={"availableNow": True})
        else:
            writer = incoming.writeStream.format("windrow").option("lake", lake["url"]).option("table", "metrics")
            writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
            query = writer.trigger(availableNow=True).start()
        print("running", flush=True)
        query.awaitTermination()
    spark.stop()


def points(spark, rows, partitions):
    """Some points, one a second, told apart by their values."""
    numbers = spark.range(0, rows, 1, partitions)
    return numbers.selectExpr(
        "'cpu' as metric_name",
        "concat('h', id % 3) as host",
        "timestamp_seconds(1700000000 + id) as timestamp",
        "cast(id as double) as value",
    )


class Disturbed(FrameSource):
    """Rows whose tasks do their work, and then come to harm."""

    def __init__(self, rows, harm):
        super().__init__(rows)
        object.__setattr__(self, "harm", harm)

    def run(self, work, on_report, threads=None):
        harm = self.harm

        def disturbed(batches, attempt):
            reports = list(work(batches, attempt))
            harm()
            yield from reports

        return run_on_partitions(self.rows, disturbed, on_report)


def fail_twice():
    """Fail in all attempts but the last."""
    from pyspark import TaskContext

    if TaskContext.get().attemptNumber() < ATTEMPTS - 1:
        raise RuntimeError("the task failed after it had written its files")


def lose_the_executor():
    """End the executor of the first task of the first attempt, as a machine ends."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context.attemptNumber() == 0 and context.partitionId() == 0:
        os.kill(parent_of(os.getppid()), signal.SIGKILL)


def parent_of(process):
    """A worker is forked by Spark's daemon, and that is a child of the executor."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


HARMS = {"fail twice": fail_twice, "lose the executor": lose_the_executor}


def ingest(lake, *, master, folder, rows, harms=(), **options):
    """Bring some points in, once undisturbed and once under each of the harms; return the attempts at tasks."""
    spark = session(master, folder, **options)
    done = []
    with open_lake(lake) as opened:
        done.append(opened.table("metrics").ingest(points(spark, rows, 4)).rows)
        for harm in harms:
            run = Ingest.of(opened.context, "metrics", IngestSettings())
            done.append(run.run(Disturbed(points(spark, rows, 4), HARMS[harm])).rows)
    spark.stop()
    return done


def serve(lake, *, folder, port):
    """Be a server of Spark Connect until the caller lets go."""
    plugin = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": port,
    }
    spark = session("local[2]", folder, **plugin)
    print("ready", flush=True)
    sys.stdin.read()
    spark.stop()


def connect(lake, *, folder, port, rows):
    """Through Spark Connect, bring in a DataFrame, files that tasks read by themselves, and a stream; use the sink."""
    spark = spark_session(f"sc://127.0.0.1:{port}")
    with open_lake(lake) as opened:
        table = opened.table("metrics")
        done = [table.ingest(points(spark, rows, 4)).rows]
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        points(spark, rows, 2).write.parquet(f"{folder}/files")
        done.append(table.ingest(f"{folder}/files", spark=spark).rows)
        sink = points(spark, rows, 2).write.format("windrow").option("table", "metrics")
        sink.option("metastore", lake["metastore"]).mode("append").save(lake["url"])
        files = spark.readStream.schema(COLUMNS).parquet(f"{folder}/files")
        stream = table.stream.using(drop_late=False)
        stream.start(files, f"{folder}/checkpoint", trigger={"availableNow": True}).awaitTermination()
    spark.stop()
    return done


JOBS = {job.__name__: job for job in (stream, ingest, serve, connect)}

if __name__ == "__main__":
    main()

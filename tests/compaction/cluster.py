"""A driver of its own: reads jobs as lines of JSON, answers each with a line.

`cluster` has a Spark cluster of two executors, `connect` is a client of Spark Connect.
"""

import json
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path


def executors():
    """The processes of the executors that this process started."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue  # it ended while we looked
    return [process for process in found if os.getpid() in ancestors(process, parents)]


def ancestors(process, parents):
    while process:
        process = parents.get(process, 0)
        yield process


def session(kind):
    from windrow.runners.session import spark_session

    if kind == "connect":
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        return SparkSession.builder.remote("local[2]").getOrCreate()

    options = {
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.executor.memory": "1g",
        "spark.task.maxFailures": "4",
    }
    log = Path(tempfile.mkdtemp()) / "spark.log"
    return spark_session("local-cluster[2,1,1024]", options=options, log=log)


def compact(spark, job):
    import windrow

    killed = []
    lock = threading.Lock()

    def kill_one(_):
        with lock:
            if job.get("kill") and not killed:
                running = executors()
                if len(running) == 2:
                    killed.append(running[0])
                    os.kill(running[0], signal.SIGKILL)

    with windrow.connect(job["lake"], metastore=job["metastore"], store_options=job["store_options"]) as lake:
        result = lake.table("metrics").compact.run(spark=spark, on_merge=kill_one, verify="full")
    return {**result.to_dict(), "killed": len(killed)}


def main():
    spark = session(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(compact(spark, json.loads(line))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()

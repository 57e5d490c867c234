"""A nursery of processes that ingest, compact and collect garbage until they are killed.

It loads everything once. For each line that it reads, it starts a process, prints its number, and prints `ended` when
the process was killed.
"""

import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

import windrow

NOON = datetime(2023, 11, 14, 12, tzinfo=UTC)


def rows(number):
    times = pa.array([NOON + timedelta(minutes=number % 20)], pa.timestamp("us", "UTC"))
    return pa.table({"host": ["a"], "timestamp": times, "value": pa.array([number], pa.int64())})


def work(round_, place, said, metastore):
    """Ingest numbers of one's own, each written down when it is in; merge and collect in between."""
    with windrow.connect(place, metastore=metastore or None, create=False) as lake:
        table = lake.table("events")
        number = round_ * 10_000
        while True:
            number += 1
            table.ingest(rows(number))
            with Path(said).open("a") as file:
                file.write(f"{number}\n")
            if number % 3 == 0:
                table.compact.run(threads=1)
            if number % 4 == 0:
                table.upkeep.gc.run(grace=0)


def warm_up():
    """Load what the processes need, so that they are killed at work and not while they load."""
    with tempfile.TemporaryDirectory() as folder, windrow.connect(folder) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", policy={"merge_factor": 2})
        for number in range(2):
            table.ingest(rows(number))
        table.compact.run(threads=1)
        table.upkeep.gc.run(grace=0)


def main():
    place, said, metastore = sys.argv[1:]
    warm_up()
    for line in sys.stdin:
        process = os.fork()
        if not process:
            try:
                work(int(line), place, said, metastore)
            finally:
                os._exit(1)
        print(process, flush=True)
        os.waitpid(process, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    main()

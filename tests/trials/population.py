"""A nursery of processes that work on one lake until they are killed: the program of the trial of kills.

It reads lines of `role round`, starts a process for each, and prints its number. A process loops over its role, writes
down what was acknowledged (one line an event), and reports every violation of what it was promised.
"""

import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow.errors import Conflict, SnapshotExpired

TABLES = ("events", "aging")
SORT = "host|timestamp/V2"
RETENTION = "30d"
BATCH = 100
"""Ids of a batch start at a multiple of this."""
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def size_of(batch):
    return 1 + batch * 7919 % 23


def is_old(table, batch):
    """Batches of `aging` lie within the retention, or long before it."""
    return table == "aging" and batch % 2 == 1


def row_of(table, number):
    """A row follows from its id alone, so that a reader can tell any change of it."""
    day = TODAY - timedelta(days=60 if is_old(table, number // BATCH) else 2)
    return {
        "id": number,
        "host": f"h{number % 3}",
        "timestamp": day + timedelta(seconds=number * 61 % 7200),
        "text": f"{table}-{number * 31 % 1009}",
        "value": number / 8,
    }


def rows_of(table, batch):
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("host", pa.string()),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("text", pa.string()),
            ("value", pa.float64()),
        ]
    )
    return pa.Table.from_pylist([row_of(table, batch * BATCH + n) for n in range(size_of(batch))], schema)


class Notebook:
    """Where processes write down what happened; a line is one write, so that a kill leaves no half of two."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def write(self, name, **event):
        with (self.folder / name).open("ab", buffering=0) as file:
            file.write(json.dumps(event).encode() + b"\n")

    def read(self, name):
        path = self.folder / name
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def acknowledged(self):
        return {(each["table"], each["batch"]) for each in self.read("acknowledged")}


def violations_of(table, rows, promised, expiring):
    """What is wrong with the rows that a reader saw, as sentences; empty when every promise holds."""
    ids = [row["id"] for row in rows]
    seen = set(ids)
    if len(seen) < len(ids):
        yield f"{len(ids) - len(seen)} rows twice"
    for row in rows:
        if row != row_of(table, row["id"]):
            yield f"row {row['id']} is another: {row}"
    batches = {number // BATCH for number in seen}
    for batch in sorted(batches):
        whole = {batch * BATCH + n for n in range(size_of(batch))}
        # The windows of an expired batch leave in one commit, but a merge may be between plan and commit.
        if not whole <= seen and not (expiring and is_old(table, batch)):
            yield f"{len(whole - seen)} of {len(whole)} rows of batch {batch} are missing"
    for batch in sorted(each for name, each in promised if name == table and each not in batches):
        if not (expiring and is_old(table, batch)):
            yield f"batch {batch} was acknowledged and is lost"


def read(lake, table, way):
    columns = ["id", "host", "timestamp", "text", "value"]
    if way % 2:
        found = lake.table(table).scan(columns=columns).to_arrow()
    else:
        found = lake.sql(f"select {', '.join(columns)} from {table}").to_arrow()
    return found.to_pylist()


class Process:
    """One process of the trial: a lake of its own, a role, and a draw of its own."""

    def __init__(self, role, round_, place):
        self.role, self.round = role, round_
        self.place = place
        self.notes = Notebook(place["notes"])
        self.draw = random.Random(f"{role} {round_}")

    def run(self):
        place = self.place
        lake = windrow.connect(
            place["lake"], metastore=place["metastore"], store_options=place["options"], create=False, cache=None
        )
        for turn in itertools.count():
            try:
                getattr(self, self.role)(lake, turn)
            except Exception as error:
                self.failed(error)
            else:
                self.notes.write("done", role=self.role)

    def failed(self, error):
        allowed = {"read": SnapshotExpired, "expire": Conflict, "register": Conflict}.get(self.role, ())
        kind = "retry" if isinstance(error, allowed) else "violations"
        self.notes.write(kind, role=self.role, what=f"{type(error).__name__}: {error}"[:2000])

    def ingest(self, lake, turn):
        batch = self.round * 1000 + turn
        table = TABLES[batch // 2 % 2]
        rows = rows_of(table, batch)
        if batch % 5 == 0:
            rows = str(self.outside(batch, rows))
        lake.table(table).ingest(rows)
        self.notes.write("acknowledged", table=table, batch=batch)

    def register(self, lake, turn):
        batch = self.round * 1000 + turn
        lake.table("events").register.run(str(self.landed(batch, rows_of("events", batch))))
        self.notes.write("acknowledged", table="events", batch=batch)
        time.sleep(0.3)

    def outside(self, batch, rows):
        path = Path(self.place["outside"]) / f"{self.role}-{batch}.parquet"
        pq.write_table(rows, path)
        return path

    def landed(self, batch, rows):
        """A file where the lake can reach it: beside a folder, or in the bucket of a remote lake."""
        path = self.outside(batch, rows)
        bucket = self.place["bucket"]
        if bucket is None:
            return path
        import boto3

        options = self.place["options"]
        client = boto3.client(
            "s3",
            endpoint_url=options["endpoint"],
            aws_access_key_id=options["access_key_id"],
            aws_secret_access_key=options["secret_access_key"],
            region_name=options["region"],
        )
        key = f"{self.place['prefix']}/{path.name}"
        client.upload_file(str(path), bucket, key)
        return f"s3://{bucket}/{key}"

    def compact(self, lake, turn):
        lake.table(TABLES[turn % 2]).compact.run(threads=1)
        time.sleep(self.draw.uniform(0, 0.2))

    def expire(self, lake, turn):
        lake.table("aging").upkeep.expire.run(retention=RETENTION)
        time.sleep(self.draw.uniform(0, 0.4))

    def collect(self, lake, turn):
        result = lake.table(TABLES[turn % 2]).upkeep.gc.run(grace=0)
        for problem in result.problems:
            self.notes.write("violations", role=self.role, what=problem)

    def read(self, lake, turn):
        table = TABLES[turn % 2]
        promised = self.notes.acknowledged()
        for what in violations_of(table, read(lake, table, turn // 2), promised, expiring=True):
            self.notes.write("violations", role=self.role, what=f"{table}: {what}")
        time.sleep(self.draw.uniform(0, 0.1))


def warm_up():
    """Load compiled code once, so that processes are killed at work. Nothing here may outlive a fork but code."""
    with tempfile.TemporaryDirectory() as folder, windrow.connect(folder, cache=None) as lake:
        table = lake.create_table("events", sort=SORT, policy={"merge_factor": 2})
        for batch in range(2):
            table.ingest(rows_of("events", batch))
        table.compact.run(threads=1)


def main():
    place = json.loads(sys.argv[1])
    warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        role, round_ = line.split()
        process = os.fork()
        if not process:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                Process(role, int(round_), place).run()
            finally:
                os._exit(1)
        print(process, flush=True)


if __name__ == "__main__":
    main()

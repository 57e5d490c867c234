"""Snapshots while QuestDB writes: each is one commit, whole.

The oracle is in the rows. A batch b is `SIZE` rows with the numbers 1 to `SIZE`, inserted by one statement, half of
them late, into days that are Parquet. So every committed state has, for each batch, either all of its rows or none.
"""

from __future__ import annotations

import os
import threading
import time

import pyarrow.compute as pc
import pytest

from windrow.databases import open_table
from windrow.engines.duckdb.questdb import scan_snapshot

pytestmark = pytest.mark.interop

SECONDS = float(os.environ.get("INTEROP_SECONDS", "60"))
SIZE = 200
DAYS = ("2024-03-01", "2024-03-02")


class Writer:
    """Inserts batches until it is stopped."""

    def __init__(self, questdb):
        self.questdb, self.batches, self.problem = questdb, 0, None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _run(self):
        try:
            while not self._stopped.is_set():
                self._insert(self.batches + 1)
                self.batches += 1
        except BaseException as error:
            self.problem = error

    def _insert(self, batch):
        day = DAYS[batch % len(DAYS)]
        start = f"{day}T{batch % 20:02}:{batch % 60:02}:00"
        self.questdb.ask(
            f"insert into torn select timestamp_sequence('{start}', 1700000L), {batch}, x, 'batch-{batch}' "
            f"from long_sequence({SIZE})"
        )


def test_no_snapshot_is_torn_while_questdb_writes(questdb):
    seeded = ", ".join(f"'{day}'" for day in DAYS)
    questdb.run(
        "create table torn (ts timestamp, series long, n long, text varchar) timestamp(ts) partition by day wal",
        *(f"insert into torn values ('{day}', 0, 0, 'seed')" for day in (*DAYS, "2024-03-09")),
        f"alter table torn convert partition to parquet list {seeded}",
        table="torn",
    )
    folder = questdb.table_folder("torn")
    snapshots, versions, most = 0, set(), 0
    end = time.monotonic() + SECONDS
    with Writer(questdb) as writer:
        while time.monotonic() < end:
            snapshot = open_table(folder, native="skip", deadline=30).snapshot()
            rows = scan_snapshot(snapshot).to_arrow()
            assert rows.num_rows == snapshot.rows
            versions.add(snapshot.txn.version)
            most = max(most, check(rows))
            snapshots += 1
    assert writer.problem is None
    questdb.wait_for("torn")
    print(f"{snapshots} snapshots, {len(versions)} versions, {writer.batches} batches, {most} in the largest snapshot")
    assert check(open_table(folder, native="skip").scan().to_arrow()) == writer.batches
    assert snapshots >= 5
    assert len(versions) >= 3


def check(rows):
    """Every batch is whole; the number of batches."""
    rows = rows.filter(pc.field("series") > 0)
    found = rows.group_by("series").aggregate([("n", "sum"), ("n", "count"), ("n", "min"), ("n", "max")]).to_pylist()
    for batch in found:
        whole = (batch["n_sum"], batch["n_count"], batch["n_min"], batch["n_max"])
        assert whole == (SIZE * (SIZE + 1) // 2, SIZE, 1, SIZE), batch
    batches = {batch["series"] for batch in found}
    assert batches == set(range(1, len(batches) + 1)), "QuestDB applies batches in their order"
    texts = pc.binary_join_element_wise("batch", pc.cast(rows.column("series"), "string"), "-")
    assert pc.all(pc.equal(texts, rows.column("text"))).as_py() in (True, None)
    return len(batches)

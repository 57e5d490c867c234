"""One writer and eight readers in processes of their own: every read is one committed state of the table.

Commit n adds `ROWS` rows that carry n and a value that follows from n and their place. So a reader can tell from the
version of `_txn` alone which rows there must be.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.questdb.tables import DAY, MONDAY

from windrow.questdb.readers import HeldSnapshot, hold_snapshot
from windrow.questdb.store import PartitionStore, StoreOptions, create_table

ROWS = 40
READERS, FEWEST = 8, 30
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("commit", pa.int64()), ("value", pa.int64())])
OPTIONS = StoreOptions(row_group_rows=256, join_rows=100)
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.questdb.test_readers"])


def rows_of(commit: int) -> pa.Table:
    """The rows of a commit: a few late ones, the rest after what there is; now and then of two partitions."""
    rng = np.random.default_rng(commit)
    late = rng.integers(0, 1000 * commit, ROWS // 4)
    times = np.concatenate([late, 1000 * commit + np.arange(ROWS - late.size)])
    days = (commit % 3 == 0) * rng.integers(0, 2, ROWS)
    stamps = pa.array(MONDAY + times + days * DAY).cast(SCHEMA.field("ts").type)
    return pa.table([stamps, np.full(ROWS, commit), commit * 1_000_003 + np.arange(ROWS)], schema=SCHEMA)


def check(snapshot: HeldSnapshot) -> None:
    """Hold all rows of all commits up to the version, whole, once each, in order of time; no other row."""
    found, version = snapshot.read(), snapshot.txn.version
    commits, values = found["commit"].to_numpy(), found["value"].to_numpy()
    assert len(commits) == version * ROWS == snapshot.txn.fixed_rows + snapshot.txn.transient_rows
    assert (np.bincount(commits, minlength=version + 1)[1:] == ROWS).all()
    assert (
        np.sort(values) == np.sort((np.arange(1, version + 1)[:, None] * 1_000_003 + np.arange(ROWS)).ravel())
    ).all()
    assert (values // 1_000_003 == commits).all()
    assert (np.diff(found["ts"].cast(pa.int64()).to_numpy()) >= 0).all()


def read(table: Path, number: int, ready: Any, stop: Any, results: Any) -> None:
    """Read until the end; half of the readers come back to an old snapshot later."""
    reads, versions, again = 0, set(), 0
    try:
        while not stop.is_set() or not reads:
            with hold_snapshot(table) as snapshot:
                check(snapshot)
                if number % 2:
                    time.sleep(0.02)
                    check(snapshot)
                    again += 1
                reads, _ = reads + 1, versions.add(snapshot.txn.version)
            ready.release()
        results.put((None, reads, versions, again))
    except BaseException as error:
        results.put((f"reader {number}: {type(error).__name__}: {error}", reads, versions, again))


def write(table: Path, seconds: float) -> Counter[str]:
    counts: Counter[str] = Counter()
    with PartitionStore(table, OPTIONS) as store:
        end = time.monotonic() + seconds
        while time.monotonic() < end or counts["commits"] < FEWEST:
            before = {each.timestamp: each.name_txn for each in store.txn.partitions}
            txn = store.append(rows_of(store.txn.version + 1))
            counts["commits"] += 1
            for each in txn.partitions:
                old = before.get(each.timestamp)
                counts["new" if old is None else "rewritten" if old != each.name_txn else "in place"] += 1
            # A long table would make reading the whole of it slow, not hard.
            time.sleep(0.002 * (1 + txn.version / 50))
        while store.purge():
            time.sleep(0.01)
        counts["folders left"] = sum(path.is_dir() for path in table.iterdir()) - len(store.txn.partitions)
    return counts


def run(table: Path, seconds: float) -> None:
    create_table(table, SCHEMA, timestamp="ts")
    with PartitionStore(table, OPTIONS) as store:
        store.append(rows_of(1))
    ready, stop, results = _CONTEXT.Semaphore(0), _CONTEXT.Event(), _CONTEXT.Queue()
    readers = [_CONTEXT.Process(target=read, args=(table, number, ready, stop, results)) for number in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        for _ in readers:
            assert ready.acquire(timeout=120)
        counts = write(table, seconds)
    finally:
        stop.set()
        reports = [results.get(timeout=120) for _ in readers]
        for reader in readers:
            reader.join()
    assert [problem for problem, *_ in reports if problem] == []
    reads, again = sum(reads for _, reads, _, _ in reports), sum(again for *_, again in reports)
    versions = set().union(*(versions for _, _, versions, _ in reports))
    print(f"{dict(counts)}; {reads} reads of {len(versions)} versions, {again} of them twice")
    assert counts["in place"]
    assert counts["rewritten"]
    assert counts["folders left"] == 0
    assert len(versions) > 3


def test_every_read_is_one_commit(tmp_path: Path) -> None:
    run(tmp_path / "t", 3)


@pytest.mark.long
def test_every_read_is_one_commit_for_a_minute(tmp_path: Path) -> None:
    run(tmp_path / "t", 60)

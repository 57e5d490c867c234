"""Sixteen threads on one lake object: scans, SQL, ingest and compaction, and each answer checked row by row.

Every row is computed from its id, so that an answer needs no second copy of the data to be judged. A batch is whole or
absent. A thread never sees less than it saw before, nor less than was published before it asked. A merge changes no
row. Meanwhile memory, threads and open files of the process are counted: none of them may grow as long as it runs.
`WINDROW_TRIAL_SECONDS` is how long the long size runs.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.cache import CacheSettings

THREADS = 16
BATCH = 240
WINDOWS = 6
HOSTS = 11
MINUTE = 60_000_000
START = 1_767_225_600_000_000
"""2026-01-01 in microseconds."""
LONG = int(os.environ.get("WINDROW_TRIAL_SECONDS", "600"))


def hosts_of(ids):
    return ids % HOSTS


def times_of(ids):
    """Each batch has points in all windows."""
    return START + (ids % WINDOWS) * 15 * MINUTE + (ids // WINDOWS) % (14 * MINUTE)


def values_of(ids):
    return (ids * 2_654_435_761 + 12_345) % 1_000_003 / 7.0


def labels_of(ids):
    return [f"label {number % 97}" for number in ids.tolist()]


def batch_of(number):
    ids = np.arange(number * BATCH, (number + 1) * BATCH, dtype=np.int64)
    return pa.table(
        {
            "host": [f"host-{each}" for each in hosts_of(ids).tolist()],
            "timestamp": pa.array(times_of(ids), pa.timestamp("us", "UTC")),
            "id": ids,
            "value": values_of(ids),
            "label": labels_of(ids),
        }
    )


def check_rows(rows, chosen=lambda ids: np.ones(len(ids), bool)):
    """Refuse rows other than those of whole batches, or than the chosen ids of them; gives the batches."""
    ids = rows["id"].to_numpy()
    order = np.argsort(ids)
    ids = ids[order]
    batches = np.unique(ids // BATCH)
    every = (batches[:, None] * BATCH + np.arange(BATCH)).ravel()
    expected = every[chosen(every)]
    assert len(ids) == len(expected), f"{len(ids)} rows instead of {len(expected)} of {len(batches)} batches"
    assert (ids == expected).all(), "a batch is there in part, or twice"
    names = set(rows.column_names)
    if "value" in names:
        assert (rows["value"].to_numpy()[order] == values_of(ids)).all()
    if "timestamp" in names:
        assert (rows["timestamp"].cast(pa.int64()).to_numpy()[order] == times_of(ids)).all()
    if "host" in names:
        assert rows["host"].take(order).to_pylist() == [f"host-{each}" for each in hosts_of(ids).tolist()]
    if "label" in names:
        assert rows["label"].take(order).to_pylist() == labels_of(ids)
    return set(batches.tolist())


@dataclass(frozen=True)
class Usage:
    """What the process holds at one moment."""

    mib: int
    threads: int
    files: int

    @classmethod
    def now(cls):
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
        files = sum(1 for _ in Path("/proc/self/fd").iterdir())
        return cls(int(status["VmRSS"].split()[0]) // 1024, int(status["Threads"]), files)

    @classmethod
    def most(cls, moments):
        return cls(*(max(getattr(each, name) for each in moments) for name in ("mib", "threads", "files")))


def start_runtimes(folder):
    """Start what libraries hold for as long as the process lives: deltalake, which makes checkpoints, has ten files."""
    deltalake.write_deltalake(str(folder), pa.table({"id": [1]}))
    deltalake.DeltaTable(str(folder)).create_checkpoint()


def check_growth(moments):
    """Refuse a process that holds more in the last quarter of its time than in the second one."""
    quarters = [Usage.most(part.tolist()) for part in np.array_split(np.array(moments, object), 4)]
    print("most held by quarters:", *quarters, sep="\n  ")
    second, last = quarters[1], quarters[3]
    # Queries that meet by chance hold threads and files at the same time.
    assert last.threads <= second.threads * 1.1 + 4
    assert last.files <= second.files * 1.2 + 20
    assert last.mib <= second.mib * 1.2 + 32


class Trial:
    """The lake, what was published so far, and what went wrong."""

    def __init__(self, lake, seconds):
        self.lake = lake
        self.table = lake.table("points")
        self.seconds = seconds
        self.published = set()
        self.problems = []
        self.moments = []
        self.done = {}
        self.merged = 0
        self._next = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def run(self):
        roles = [self.ingest] * 3 + [self.compact] * 2 + [self.scan] * 6 + [self.ask] * 5
        assert len(roles) == THREADS
        threads = [
            threading.Thread(target=self.repeat, args=(role, number), name=f"{role.__name__} {number}")
            for number, role in enumerate(roles)
        ]
        for each in threads:
            each.start()
        began = time.monotonic()
        # On a machine that does much else, there may be nothing to merge yet.
        while (lasted := time.monotonic() - began) < self.seconds or (not self.is_rich and lasted < 30 * self.seconds):
            if self._stop.wait(self.seconds / 400):
                break
            self.moments.append(Usage.now())
        self._stop.set()
        for each in threads:
            each.join(120)
        assert [each.name for each in threads if each.is_alive()] == []

    @property
    def is_rich(self):
        """Whether everybody did something, and splits were merged."""
        return self.merged and {"ingest", "compact", "scan", "ask"} <= self.done.keys()

    def repeat(self, role, number):
        random = np.random.default_rng(number)
        seen = set()
        while not self._stop.is_set():
            try:
                role(random, seen)
            except BaseException:
                self.problems.append(f"{threading.current_thread().name}:\n{traceback.format_exc()}")
                if len(self.problems) > 20:
                    self._stop.set()
            self.done[role.__name__] = self.done.get(role.__name__, 0) + 1

    def ingest(self, random, seen):
        with self._lock:
            number, self._next = self._next, self._next + 1
        self.table.ingest(batch_of(number))
        with self._lock:
            self.published.add(number)
        # The table must stay small enough to be read whole, over and over.
        self._stop.wait(max(0.05, self.seconds / 150))

    def compact(self, random, seen):
        done = self.table.compact.run(threads=1)
        assert done.failed == 0, done
        self.merged += done.done
        self._stop.wait(0.2)

    def scan(self, random, seen):
        before = self.before()
        kind = random.integers(5)
        if kind == 0:
            found = check_rows(self.table.scan().to_arrow())
        elif kind == 1:
            found = check_rows(pa.table(self.lake.table("points").scan(columns=["id", "label"]).to_reader()))
        elif kind == 2:
            host = int(random.integers(HOSTS))
            scan = self.table.scan(where=f"host = 'host-{host}'")
            found = check_rows(scan.to_arrow(), lambda ids: hosts_of(ids) == host)
        elif kind == 3:
            first = START + int(random.integers(WINDOWS)) * 15 * MINUTE
            where = f"timestamp >= make_timestamp({first}) and timestamp < make_timestamp({first + 15 * MINUTE})"
            scan = self.table.scan(where=where, columns=["id", "value"])
            chosen = lambda ids: (times_of(ids) >= first) & (times_of(ids) < first + 15 * MINUTE)  # noqa: E731
            found = check_rows(scan.to_arrow(), chosen)
        else:
            count, rest = divmod(self.table.scan().count(), BATCH)
            assert not rest
            assert count >= max(len(before), len(seen))
            return
        self.after(found, before, seen)

    def ask(self, random, seen):
        before = self.before()
        kind = random.integers(4)
        if kind == 0:
            found = check_rows(self.lake.sql("select * from points").to_arrow())
        elif kind == 1:
            host = int(random.integers(HOSTS))
            rows = self.lake.sql("select id, value, host from points where host = ?", [f"host-{host}"]).to_arrow()
            found = check_rows(rows, lambda ids: hosts_of(ids) == host)
        elif kind == 2:
            rows = streamed(self.lake, "select id, label from points")
            found = check_rows(rows)
        else:
            (row,) = self.lake.sql(
                "select count(*) as n, sum(id)::bigint as total, count(distinct id) as ids,"
                f" list(distinct id // {BATCH}) as batches from points"
            ).to_dict()
            found = set(row["batches"])
            assert row["n"] == row["ids"] == BATCH * len(found)
            assert row["total"] == sum(number * BATCH * BATCH + BATCH * (BATCH - 1) // 2 for number in found)
        self.after(found, before, seen)

    def before(self):
        with self._lock:
            return set(self.published)

    def after(self, found, before, seen):
        assert before <= found, f"batches {sorted(before - found)[:5]} were published and are not in the answer"
        assert seen <= found, f"batches {sorted(seen - found)[:5]} were seen before and are gone"
        seen |= found


@pytest.mark.parametrize("seconds", [10, pytest.param(LONG, marks=pytest.mark.long)])
def test_threads_of_one_lake_object_see_whole_batches_and_meet_no_error(tmp_path, seconds):
    start_runtimes(tmp_path / "delta")
    before = Usage.now()
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as lake:
        # Few batches come in a short time.
        policy = {} if seconds == LONG else {"merge_factor": 4}
        lake.create_table("points", sort="host|timestamp/V2", window="15m", policy=policy)
        lake.table("points").ingest(batch_of(10**6))  # a table without columns cannot be read
        trial = Trial(lake, seconds)
        trial.published.add(10**6)
        began = time.monotonic()
        trial.run()
        assert not trial.problems, f"{len(trial.problems)} problems, the first:\n{trial.problems[0]}"
        print(f"{time.monotonic() - began:.0f} s: {trial.done}, {len(trial.published)} batches")
        if seconds == LONG:
            check_growth(trial.moments)
        assert check_rows(lake.table("points").scan().to_arrow()) == trial.published
        assert check_rows(lake.sql("select * from points").to_arrow()) == trial.published
        assert all(trial.done[role] for role in ("ingest", "compact", "scan", "ask"))
        assert any(commit.kind == "compact" for commit in lake.table("points").inspect.commits())
    after = Usage.now()
    print("before:", before, "after the lake was closed:", after)
    assert after.files <= before.files + 8
    assert after.threads <= before.threads + 8

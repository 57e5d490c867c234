"""A trial from outside: processes work on one lake and are killed at random; what was acknowledged stays true.

It knows the lake by its public names alone. Its oracle are ids that the processes wrote down after an ingest returned,
and rows that follow from their ids.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.trials.population import RETENTION, SORT, TABLES, Notebook, is_old, read, rows_of, violations_of

import windrow

PROGRAM = Path(__file__).with_name("population.py")
ROLES = ("ingest", "ingest", "compact", "expire", "register", "collect", "read")
KILLS = [14, pytest.param(300, marks=pytest.mark.long)]
MOST_SECONDS = 1800


class Nursery:
    """The processes of a trial, one for each place in ROLES."""

    def __init__(self, place):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
        self._program = subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self._rounds = 0
        self._living = [self._start(role) for role in ROLES]

    def _start(self, role):
        self._rounds += 1
        self._program.stdin.write(f"{role} {self._rounds}\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())

    def kill(self, place):
        """Kill one process, wait until it is gone, and put another in its place."""
        os.kill(self._living[place], signal.SIGKILL)
        while Path(f"/proc/{self._living[place]}").exists():
            time.sleep(0.001)
        self._living[place] = self._start(ROLES[place])

    def end(self):
        os.killpg(self._program.pid, signal.SIGKILL)
        self._program.communicate()


def run_trial(place, notes, kills, pause):
    """Kill one process after the other, after a pause of up to so many seconds."""
    draw = random.Random(kills)
    nursery = Nursery(place)
    ends = time.monotonic() + MOST_SECONDS
    try:
        for kill in range(kills):
            while len(notes.read("done")) < kill:
                assert time.monotonic() < ends, f"only {len(notes.read('done'))} turns of work in {MOST_SECONDS} s"
                time.sleep(0.01)
            time.sleep(draw.uniform(0, pause))
            nursery.kill(draw.randrange(len(ROLES)))
        time.sleep(1)
    finally:
        nursery.end()


def judge(lake, notes):
    """Return everything that breaks a promise once all processes are gone; empty is what we want."""
    wrong = [f"{each['role']}: {each['what']}" for each in notes.read("violations")]
    promised = notes.acknowledged()
    for table in TABLES:
        wrong += violations_of(table, read(lake, table, 0), promised, expiring=True)
    return wrong


def finish(lake, notes):
    """Expire and collect once more: what should be gone is gone, all else is as it was."""
    promised = notes.acknowledged()
    lake.table("aging").upkeep.expire.run(retention=RETENTION)
    for table in TABLES:
        before = Counter(row["id"] for row in read(lake, table, 0))
        result = lake.table(table).upkeep.gc.run(grace=0)
        assert not result.problems
        rows = read(lake, table, 1)
        assert Counter(row["id"] for row in rows) == before
        kept = {(name, batch) for name, batch in promised if not is_old(name, batch)}
        assert list(violations_of(table, rows, kept, expiring=False)) == []
        checked = lake.table(table).upkeep.check(data=True, repair=True)
        assert checked.sound, checked.findings
    assert not any(is_old("aging", row["id"] // 100) for row in read(lake, "aging", 0))


def prepare(tmp_path, url, options, metastore, bucket=None, prefix=""):
    """Make the lake and its tables; return where everything is, and the notebook of the processes."""
    for name in ("notes", "outside"):
        (tmp_path / name).mkdir()
    place = {
        "lake": str(url),
        "options": options,
        "metastore": metastore,
        "notes": str(tmp_path / "notes"),
        "outside": str(tmp_path / "outside"),
        "bucket": bucket,
        "prefix": prefix,
    }
    with windrow.connect(url, metastore=metastore, store_options=options, cache=None) as lake:
        for table in TABLES:
            # A first batch, so that readers find the columns that they name.
            lake.create_table(table, sort=SORT, policy={"merge_factor": 2}).ingest(rows_of(table, 0))
    return place, Notebook(place["notes"])


def hold_trial(place, notes, kills, *, pause):
    run_trial(place, notes, kills, pause)
    with windrow.connect(
        place["lake"], metastore=place["metastore"], store_options=place["options"], create=False, cache=None
    ) as lake:
        assert judge(lake, notes) == []
        finish(lake, notes)
    turns = Counter(each["role"] for each in notes.read("done"))
    retries = Counter(each["role"] for each in notes.read("retry"))
    print(f"\n{kills} kills, {len(notes.acknowledged())} batches acknowledged")
    print(f"turns {dict(turns)}, retries {dict(retries)}")
    assert set(turns) == set(ROLES), "a role that did nothing proves nothing"


@pytest.mark.parametrize("kills", KILLS)
def test_killed_processes_break_no_promise_on_sqlite_and_a_folder(tmp_path, kills):
    place, notes = prepare(tmp_path, tmp_path / "lake", {}, None)
    hold_trial(place, notes, kills, pause=0.8)


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.s3
@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("kills", [300])
def test_killed_processes_break_no_promise_on_postgresql_and_s3(
    tmp_path, kills, postgres_url, s3_url, s3_options, s3_endpoint
):
    bucket, prefix = s3_url.removeprefix("s3://").split("/", 1)
    place, notes = prepare(tmp_path, s3_url, s3_options, postgres_url, bucket, f"raw-{prefix}")
    # Every request goes to a server of one thread, so that work takes longer.
    hold_trial(place, notes, kills, pause=2.0)

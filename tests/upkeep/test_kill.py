"""Processes that are killed under load: what they said was ingested is there, once, and nothing live was deleted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.proofs.worlds import rows_of, visible

import windrow

WORKER = Path(__file__).with_name("killed_worker.py")
POSTGRES = pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.long, pytest.mark.xdist_group("postgres")])
KILLS = [20, pytest.param(200, marks=pytest.mark.long)]


def acknowledged(path):
    """The numbers that the workers wrote down after their ingest had returned."""
    return {int(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")}


def wait_for(path, count):
    """Wait until so many numbers are written down."""
    ends = time.monotonic() + 120
    while len(acknowledged(path)) < count:
        assert time.monotonic() < ends, "the process does nothing"
        time.sleep(0.01)


def rows(table):
    store = table.context.store
    return rows_of(pq.read_table(store.path(split.key), partitioning=None) for split in visible(table))


def kill_children(nursery, said, draw, kills):
    """Let one process after the other ingest, and kill it in the middle."""
    for number in range(kills):
        nursery.stdin.write(f"{number}\n")
        nursery.stdin.flush()
        child = int(nursery.stdout.readline())
        wait_for(said, len(acknowledged(said)) + draw.randrange(1, 4))
        time.sleep(draw.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
        assert nursery.stdout.readline().strip() == "ended"
    nursery.stdin.close()


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("database", ["sqlite", POSTGRES])
def test_killed_processes_lose_nothing(tmp_path, request, database, kills):
    url = None if database == "sqlite" else request.getfixturevalue("postgres_url")
    place, said, draw = tmp_path / "lake", tmp_path / "said.txt", random.Random(kills)
    said.touch()
    with windrow.connect(place, metastore=url) as lake:
        lake.create_table("events", sort="host|timestamp/V2", policy={"merge_factor": 2})
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    program = [sys.executable, str(WORKER), str(place), str(said), url or ""]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, env=environment, start_new_session=True, **pipes) as nursery:
        try:
            kill_children(nursery, said, draw, kills)
        except BaseException:
            os.killpg(nursery.pid, signal.SIGKILL)
            raise
    with windrow.connect(place, metastore=url) as lake:
        table = lake.table("events")
        counted = Counter(dict(row)["value"] for row in rows(table).elements())
        assert len(acknowledged(said)) >= kills
        assert set(counted.values()) <= {1}, "nothing is there twice"
        assert acknowledged(said) <= set(counted), "what was said to be ingested is there"
        table.upkeep.gc.run(grace=0)
        result = table.upkeep.check(data=True, repair=True)
        assert result.sound, result.findings
        assert Counter(dict(row)["value"] for row in rows(table).elements()) == counted
        print(f"{kills} kills on {database}: {len(counted)} rows, {len(acknowledged(said))} acknowledged")

"""Statistics of one file that several processes collect, some of which die: consistent, and answers are as ever."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.learning.lakes import assert_alike, expected, learning_lake, learnt, settle, some_rows

ROWS, GROUP = 60_000, 5_000
NAMES = ["n", "few", "many", "text", "long", "part"]
QUERY = "select sum(n), sum(few), max(many), max(text), max(long), max(part) from '{}'"
LIMIT = 180

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

PROGRAM = """
import sys, time
from pathlib import Path
from tests.learning.lakes import learning_lake, settle
folder, query, ends = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "ends"
with learning_lake(folder) as lake:
    answer = lake.sql(query).to_dict()
    print(answer, flush=True)
    if not ends:
        time.sleep(600)
    settle(lake)
"""


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "x.parquet"
    pq.write_table(some_rows(ROWS), place, row_group_size=GROUP)
    return place


def started(folder, query, ends="ends"):
    arguments = [sys.executable, "-c", PROGRAM, str(folder), query, ends]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=Path.cwd())


def assert_all_is_known(tmp_path, path):
    with learning_lake(tmp_path, 0) as lake:
        found = learnt(lake, path, NAMES)
        oracle = expected(path, found["n"].layout.file, NAMES)
        for name in NAMES:
            assert_alike(found[name], oracle[name])


def test_processes_that_collect_at_once_know_together_what_one_would(tmp_path, path):
    queries = [QUERY.format(path), f"select sum(n), max(text) from '{path}' where n < {ROWS // 2}", QUERY.format(path)]
    processes = [started(tmp_path, query) for query in queries]
    answers = [process.communicate(timeout=LIMIT)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert answers[0] == answers[2]
    assert_all_is_known(tmp_path, path)


def test_a_process_that_is_killed_leaves_what_is_whole(tmp_path, path):
    expected_answer = None
    for moment in (0.0, 0.2):
        process = started(tmp_path, QUERY.format(path), "stays")
        answer = process.stdout.readline()
        expected_answer = expected_answer or answer
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT)
        assert answer == expected_answer
        with learning_lake(tmp_path, 0) as lake:
            for summary in learnt(lake, path, NAMES).values():
                assert summary.known_rows == summary.layout.row_counts[summary.covered].sum()
    process = started(tmp_path, QUERY.format(path))
    assert process.communicate(timeout=LIMIT)[0] == expected_answer
    assert_all_is_known(tmp_path, path)


def answered(lake, query, results):
    answer = lake.sql(query).to_dict()
    settle(lake)
    results.put(answer)


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_a_child_learns_by_itself(tmp_path, path, kind):
    with learning_lake(tmp_path) as lake:
        lake.sql(f"select sum(n) from '{path}'")
        context = multiprocessing.get_context(kind)
        results = context.SimpleQueue()
        child = context.Process(target=answered, args=(lake, QUERY.format(path), results), daemon=True)
        child.start()
        child.join(LIMIT)
        assert child.exitcode == 0
        assert results.get() == lake.sql(QUERY.format(path)).to_dict()
    assert_all_is_known(tmp_path, path)


def test_a_process_that_never_closes_its_lake_ends_as_it_should(tmp_path, path):
    program = (
        "import sys, windrow\n"
        "lake = windrow.connect(sys.argv[1])\n"
        "lake.sql(sys.argv[2])\n"
        "forgotten = windrow.connect(sys.argv[1])\n"
        "forgotten.sql(sys.argv[2])\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", program, str(tmp_path / "lake"), QUERY.format(path)],
        capture_output=True,
        timeout=LIMIT,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr.decode()

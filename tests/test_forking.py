"""A lake in other processes: a forked child reopens what it needs, and a spawned one gets the lake by its address."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.cache import CacheSettings
from windrow.errors import Closed, ConfigError
from windrow.lake import open_lake
from windrow.model.limits import Limits

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 600
LIMIT = 120

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def rows_from(first, count):
    numbers = range(first, first + count)
    times = pa.array([START + timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC"))
    return pa.table({"host": [f"h{n % 7}" for n in numbers], "timestamp": times, "n": numbers})


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as opened:
        table = opened.create_table("t", sort="host|timestamp/V2", window="15m", mirror=False)
        table.ingest(rows_from(0, ROWS))
        yield opened


def numbers_of(rows):
    return sorted(rows["n"].to_pylist())


def scan(lake):
    return numbers_of(lake.table("t").scan().to_arrow())


def ask(lake):
    return numbers_of(lake.sql("select n from t where n >= 0").to_arrow())


def ask_little(lake):
    """Asked often, rows are kept decoded."""
    return [lake.sql("select n from t where host = 'h1' and n < 50").to_dict() for _ in range(3)][-1]


def stream(lake):
    return numbers_of(streamed(lake, "select n from t"))


def count(lake):
    return [lake.sql("select count(*) as n from t").to_dict(), lake.table("t").scan().count()]


def foreign(lake):
    path = next(lake.context.store.root.glob("t/*/*/*.parquet"))
    return lake.sql(f"select count(*) > 0 as some from '{path}'").to_dict()


ASKING = [scan, ask, ask_little, stream, count, foreign]


def in_child(kind, work, *given):
    """What some work gives in another process, within a time limit."""
    context = multiprocessing.get_context(kind)
    results = context.SimpleQueue()
    child = context.Process(target=_answered, args=(results, work, given), daemon=True)
    child.start()
    child.join(LIMIT)
    if child.is_alive():
        child.kill()
        child.join()
        pytest.fail(f"{work.__name__} in a child by {kind} did not end within {LIMIT} s")
    assert child.exitcode == 0
    assert not results.empty(), "the child gave no answer"
    found = results.get()
    if isinstance(found, BaseException):
        raise found
    return found


def _answered(results, work, given):
    # A child that hangs says where.
    faulthandler.dump_traceback_later(LIMIT / 2, file=sys.__stderr__)
    try:
        results.put(work(*given))
    except BaseException as error:
        results.put(error)


@pytest.mark.parametrize("asking", ASKING, ids=lambda each: each.__name__)
def test_a_forked_child_answers_as_its_parent_did(lake, asking):
    for _ in range(2):
        expected = asking(lake)
        assert in_child("fork", asking, lake) == expected
    assert asking(lake) == expected


def everything(lake):
    return [each(lake) for each in ASKING]


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_a_child_answers_everything_that_its_parent_was_asked(lake, kind):
    expected = everything(lake)
    assert in_child(kind, everything, lake) == expected
    assert everything(lake) == expected


def test_a_child_of_a_child_answers_too(lake):
    expected = ask(lake)
    assert in_child("fork", grandchild, lake) == expected


def grandchild(lake):
    multiprocessing.current_process()._config["daemon"] = False
    faulthandler.cancel_dump_traceback_later()  # its thread does not survive a fork either
    return in_child("fork", ask, lake)


def ingest_and_merge(lake, first):
    table = lake.table("t")
    table.ingest(rows_from(first, 100))
    table.compact.run(threads=1)
    return scan(lake)


def test_a_forked_child_writes_and_its_parent_sees_it(lake):
    everything(lake)
    for number in range(3):
        first = ROWS + 200 * number
        lake.table("t").ingest(rows_from(first, 100))
        expected = list(range(first + 200))
        assert in_child("fork", ingest_and_merge, lake, first + 100) == expected
        assert scan(lake) == ask(lake) == expected


def test_children_forked_while_threads_ask_and_write_answer_too(lake):
    """Whatever a thread of the parent holds at that moment, a child does not wait for it."""
    stop, problems = threading.Event(), []

    def work(asking):
        while not stop.is_set():
            try:
                asking(lake)
            except BaseException as error:
                problems.append(error)
                return

    first = iter(range(ROWS, 10**6, 20))
    busy = [*ASKING, lambda lake: lake.table("t").ingest(rows_from(next(first), 20))]
    threads = [threading.Thread(target=work, args=(each,)) for each in busy]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            found = in_child("fork", ask, lake)
            assert found == list(range(len(found)))
            assert len(found) >= ROWS
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not problems


def half_read(lake):
    """A scan that is under way is the parent's."""
    reader = lake.table("t").scan().to_reader()
    child = os.fork()
    if child == 0:
        try:
            reader.read_all()
        except Closed as error:
            os._exit(7 if "forked" in str(error) else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), numbers_of(reader.read_all())


def test_a_scan_that_its_parent_began_is_closed_in_a_child(lake):
    assert in_child("fork", half_read, lake) == (7, list(range(ROWS)))


def half_streamed(lake):
    """A stream that is under way is the parent's, who reads on."""
    with lake.stream("select t.n from t, range(1000)") as batches:
        rows = len(next(batches))
        child = os.fork()
        if child == 0:
            with pytest.raises(Closed, match="forked"):
                batches.read_all()
        else:
            rows += sum(map(len, batches))
            _, status = os.waitpid(child, 0)
            return os.waitstatus_to_exitcode(status), rows
    # The child has left the block, and asks on.
    os._exit(7 if ask(lake) == list(range(ROWS)) else 1)


def test_a_stream_that_its_parent_began_is_closed_in_a_child(lake):
    assert in_child("fork", half_streamed, lake) == (7, ROWS * 1000)


ENDING = """
import os, sys, windrow
lake = windrow.connect(sys.argv[1], cache=None)
ask = lambda: (len(lake.sql("select * from t where n >= 0")), lake.table("t").scan().to_arrow().num_rows)
before = ask()
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
assert ask() == before
"""


def test_a_forked_child_that_ends_as_python_does_ends(lake):
    """What belongs to the parent is not waited for when the interpreter goes down."""
    place = str(lake.context.store.root)
    subprocess.run([sys.executable, "-c", ENDING, place], check=True, timeout=LIMIT)


def test_a_lake_that_was_used_pickles_as_its_address(lake):
    everything(lake)
    data = pickle.dumps(lake)
    with pickle.loads(data) as opened:
        assert opened.url == lake.url
        assert everything(opened) == everything(lake)
    assert len(data) < 2000


def test_a_lake_keeps_its_settings_when_it_is_pickled(tmp_path):
    settings = {"prune": False, "limits": Limits(1, 10**9), "beside": True}
    with open_lake(tmp_path / "lake", cache=None, **settings) as lake, pickle.loads(pickle.dumps(lake)) as opened:
        assert (opened.context.prune, opened.context.parsed) == (False, None)
        assert opened.sql("select current_setting('threads')::int as n").to_dict() == [{"n": 1}]
        assert opened._sidecars_beside


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_lake_on_postgresql_is_used_by_forked_children_and_their_parent_in_turn(tmp_path, postgres_url):
    with windrow.connect(tmp_path / "lake", metastore=postgres_url, cache=None) as lake:
        lake.create_table("t", sort="host|timestamp/V2", mirror=False).ingest(rows_from(0, ROWS))
        for number in range(3):
            first = ROWS + 100 * number
            assert in_child("fork", ingest_and_merge, lake, first) == list(range(first + 100))
            assert ask(lake) == scan(lake) == list(range(first + 100))


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
def test_a_forked_child_of_a_process_that_used_a_bucket_says_to_spawn(tmp_path, s3_url, s3_options):
    with windrow.connect(
        s3_url, metastore=f"sqlite:///{tmp_path / 'm.db'}", store_options=s3_options, cache=None
    ) as lake:
        lake.create_table("t", sort="host|timestamp/V2", mirror=False).ingest(rows_from(0, ROWS))
        expected = ask(lake)
        with pytest.raises(ConfigError, match="spawn"):
            in_child("fork", ask, lake)
        assert in_child("spawn", ask, lake) == expected
        assert ask(lake) == expected

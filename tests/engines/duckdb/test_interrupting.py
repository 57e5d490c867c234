"""A lake that is closed, dropped or interrupted under a query: the query ends with the right error, threads end too."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.cache import CacheSettings
from windrow.engines.arrow import scanning_engine
from windrow.engines.duckdb.interrupting import Worker, heeding_ctrl_c
from windrow.errors import Closed, InvalidInput

START = 1_767_225_600_000_000
ROWS = 60_000
ENDLESS = "select sum(hash(a.range * b.range) % 7) from range(1000000) a, range(2000000) b"
SLOW = "list_sum(list_transform(range(n, n + 20000), lambda x: x * n % 7)) >= 0"


def connect(folder):
    return windrow.connect(folder / "lake", cache=CacheSettings(folder=folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("interrupted")
    numbers = np.arange(ROWS)
    times = pa.array(START + numbers * 1000, pa.timestamp("us", "UTC"))
    rows = pa.table({"host": [f"h{n % 7}" for n in numbers.tolist()], "timestamp": times, "n": numbers})
    with connect(place) as opened:
        opened.create_table("t", sort="host|timestamp/V2", mirror=False).ingest(rows)
    return place


@pytest.fixture
def lake(folder):
    with connect(folder) as opened:
        yield opened


QUERIES = {
    "sql": lambda lake: lake.sql(ENDLESS),
    "sql over a table": lambda lake: lake.sql(f"select count(*) from t, range(10000) where {SLOW}"),
    "stream": lambda lake: streamed(lake, ENDLESS),
    "scan": lambda lake: lake.table("t").scan(where=SLOW).to_arrow(),
    "count": lambda lake: lake.table("t").scan(where=SLOW).count(),
}


def closed_under(lake, ask):
    """What a query of another thread ends with when the lake is closed under it."""
    ended = []

    def run():
        try:
            ended.append(ask(lake))
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.4)
    assert not ended
    lake.close()
    thread.join(20)
    assert not thread.is_alive()
    return ended[0]


@pytest.mark.parametrize("kind", QUERIES)
def test_a_query_under_which_the_lake_is_closed_says_so(lake, kind):
    error = closed_under(lake, QUERIES[kind])
    assert isinstance(error, Closed), repr(error)
    assert "closed" in str(error)
    with pytest.raises(Closed):
        QUERIES[kind](lake)


def test_a_query_of_the_main_thread_ends_when_another_closes_the_lake(lake):
    timer = threading.Timer(0.4, lake.close)
    timer.start()
    with pytest.raises(Closed, match="closed"):
        lake.sql(ENDLESS)
    timer.join()


def test_a_closed_lake_refuses_everything_by_name(lake):
    table = lake.table("t")
    scan = table.scan()
    lake.sql("select count(*) from t")
    lake.close()
    lake.close()
    for ask in (
        lambda: lake.sql("select 1"),
        lambda: streamed(lake, "select * from t"),
        lambda: lake.table("t"),
        lake.tables,
        lambda: lake.create_table("other", sort="host|timestamp/V2"),
        table.scan,
        lambda: table.ingest(
            pa.table({"host": ["h"], "timestamp": pa.array([START], pa.timestamp("us", "UTC")), "n": [1]})
        ),
        scan.to_arrow,
        scan.count,
    ):
        with pytest.raises(Closed, match="closed"):
            ask()


def test_who_reads_a_stream_may_close_the_lake(lake):
    with lake.stream("select * from t, range(1000)") as batches:
        assert next(batches).num_rows > 0
        began = time.monotonic()
        lake.close()
        assert time.monotonic() - began < 5
        with pytest.raises(Closed, match="closed"):
            batches.read_all()
    with pytest.raises(Closed, match="closed"):
        lake.sql("select 1")


def threads_of_windrow():
    return {each for each in threading.enumerate() if each.name.startswith("windrow")}


def use_and_drop(folder):
    lake, before = connect(folder), threads_of_windrow()
    assert len(lake.sql("select * from t")) == len(lake.table("t").scan().to_arrow()) == ROWS
    assert threads_of_windrow() - before


def test_a_lake_that_is_dropped_unclosed_leaves_no_thread(folder):
    with connect(folder) as lake:
        lake.table("t").scan().to_arrow()  # scans of the main thread share one that stays
    before = threads_of_windrow()
    for _ in range(5):
        use_and_drop(folder)
    gc.collect()
    deadline = time.monotonic() + 10
    # Threads of earlier lakes may end in the meantime.
    while threads_of_windrow() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threads_of_windrow() <= before


@pytest.mark.parametrize("kind", QUERIES)
def test_ctrl_c_ends_every_kind_of_query(lake, kind):
    # Scans of the process that others have not let go of are none of ours.
    before = set(scanning_engine().files.paths)
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        QUERIES[kind](lake)
    timer.join()
    assert lake.sql("select count(*) as n from t").to_dict() == [{"n": ROWS}]
    assert set(scanning_engine().files.paths) <= before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may come in a `__del__`
def test_ctrl_c_at_any_moment_is_nothing_else(lake):
    """Wherever Python happens to be: in a plan, in code that DuckDB calls, in what cleans up."""
    asking = [
        lambda number: lake.sql(f"select sum(n) as n from t where n >= {number % 7}"),
        lambda number: lake.sql(f"select n from t where host = 'h1' and n < {number % 50}"),
        lambda number: lake.table("t").scan(where=f"n >= {number % 7}").to_arrow(),
        lambda number: streamed(lake, f"select n + {number} as n from t"),
    ]
    for ask in asking:
        for number in range(3):
            ask(number)
    began = time.perf_counter()
    for ask in asking:
        ask(0)
    each = (time.perf_counter() - began) / len(asking)
    interrupted = sum(is_interrupted(asking[n % 4], n, 1.5 * each * (n // 4 + 1) / 30) for n in range(120))
    assert interrupted > 30
    for ask in asking:
        ask(0)
    assert lake.sql("select count(*) as n from t").to_dict() == [{"n": ROWS}]


def is_interrupted(ask, number, seconds):
    """Whether Ctrl-C after some seconds ended a query, or came when that had ended."""
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            ask(number)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(0.001)  # for one that is on its way
    except KeyboardInterrupt:
        return True
    return False


@pytest.fixture
def restored():
    """The handler of Ctrl-C is afterwards what it was."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _alarms_are_ctrl_c():
    """An alarm comes at a moment that is known to a fraction of a millisecond."""
    before = signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    yield
    signal.signal(signal.SIGALRM, before)


def interrupting(number, frame):
    """A handler as a session of Spark has it."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("handler", [signal.default_int_handler, interrupting])
def test_a_block_in_which_ctrl_c_came_gives_no_other_error(handler, restored):
    signal.signal(signal.SIGINT, handler)

    def swallowed():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise InvalidInput("as an engine tells it") from None

    with pytest.raises(KeyboardInterrupt), heeding_ctrl_c(), heeding_ctrl_c():
        swallowed()
    with pytest.raises(InvalidInput), heeding_ctrl_c():
        raise InvalidInput("without Ctrl-C")
    assert signal.getsignal(signal.SIGINT) is handler


def test_ctrl_c_that_a_handler_of_the_user_takes_ends_nothing(restored):
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    with heeding_ctrl_c():
        os.kill(os.getpid(), signal.SIGINT)
    assert heard


def test_work_that_nobody_has_begun_is_given_up_at_once(lake, monkeypatch):
    """Ctrl-C may come before the work is handed over; nobody waits for it then."""
    worker = Worker()

    class Full:
        def put(self, job):
            raise KeyboardInterrupt

    monkeypatch.setattr(worker, "_started", Full)
    with pytest.raises(KeyboardInterrupt):
        worker.run(None, lambda: 1)

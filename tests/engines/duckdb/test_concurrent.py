"""Threads that share one lake: each has its own answer, errors and end, and none waits for the query of another."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.cache import CacheSettings
from windrow.errors import Closed, InvalidInput, NotFound

START = 1_767_225_600_000_000
ROWS = 20_000
THREADS = 8
SLOW = "list_sum(list_transform(range(n, n + 60000), lambda x: x * n % 7)) >= 0"
ENDLESS = "select sum(hash(a.range * b.range) % 7) from range(1000000) a, range(2000000) b"
NUMBERS = np.arange(ROWS)


def rows_from(first, count):
    numbers = np.arange(first, first + count)
    times = pa.array(START + numbers * 1000, pa.timestamp("us", "UTC"))
    return pa.table({"host": [f"h{n % 7}" for n in numbers.tolist()], "timestamp": times, "n": numbers, "m": -numbers})


def connect(folder, **settings):
    return windrow.connect(folder / "lake", cache=CacheSettings(folder=folder), **settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("shared")
    with connect(place) as opened:
        opened.create_table("t", sort="host|timestamp/V2", mirror=False).ingest(rows_from(0, ROWS))
    return place


@pytest.fixture
def lake(folder):
    with connect(folder) as opened:
        yield opened


def at_once(*works):
    """What works give that begin together, each in a thread."""
    barrier = threading.Barrier(len(works))

    def run(work):
        barrier.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [each.result() for each in [pool.submit(run, work) for work in works]]


def left_open(lake):
    """Sessions that queries have, and virtual files that are served."""
    engine = lake._started()
    return [*engine._sessions._taken, *engine.files.paths]


class Background:
    """A query that runs in a thread of its own until it is ended."""

    def __init__(self, ask):
        self.ended = []
        self._thread = threading.Thread(target=self._run, args=(ask,))
        self._thread.start()
        time.sleep(0.3)

    def _run(self, ask):
        try:
            self.ended.append(ask())
        except BaseException as error:
            self.ended.append(error)

    def join(self):
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.ended[0]


class TestAnswers:
    @pytest.mark.parametrize("sandbox", [False, True])
    def test_each_thread_has_its_own(self, folder, sandbox):
        def ask(lake, seed):
            for number in range(seed, seed + 60, 3):
                kind, low = number % 5, number * 37
                if kind == 0:
                    found = lake.sql("select count(*) as n, sum(n) as s from t where n >= ?", [low]).to_dict()
                    assert found == [{"n": ROWS - low, "s": int(NUMBERS[low:].sum())}]
                elif kind == 1:
                    query = f"select n from t where host = 'h{number % 7}' and n < {low} order by n"
                    found = lake.sql(query).to_arrow()
                    assert found["n"].to_pylist() == NUMBERS[number % 7 == NUMBERS % 7][: len(found)].tolist()
                    assert len(found) == len(range(number % 7, low, 7))
                elif kind == 2:
                    with lake.stream(f"select n, m from t where n between {low} and {low + 500}") as batches:
                        found = batches.read_all()
                    assert sorted(found["n"].to_pylist()) == list(range(low, low + 501))
                elif kind == 3:
                    assert lake.sql(f"select max(n) as n from t where n < {low}").to_dict() == [{"n": low - 1}]
                else:
                    assert lake.explain("select n from t where n > 5", analyze=True).rows == ROWS - 6
            return True

        with connect(folder, sandbox=sandbox) as lake:
            assert all(at_once(*(lambda seed=seed: ask(lake, seed) for seed in range(1, THREADS + 1))))
            assert not left_open(lake)

    def test_one_table_at_different_columns(self, lake):
        def ask(column, sign):
            for number in range(30):
                found = lake.sql(f"select * from (select {column} from t where n = {number * 11})").to_arrow()
                assert found.column_names == [column]
                assert found[column].to_pylist() == [sign * number * 11]

        at_once(*(lambda column=column: ask(*column) for column in [("n", 1), ("m", -1)] * 3))

    def test_data_of_callers_under_one_name(self, lake):
        def ask(number):
            given = pd.DataFrame({"n": [number]})
            for _ in range(20):
                query = "select given.n from given join t using (n)"
                assert lake.sql(query).to_dict() == [{"n": number}]
                assert lake.sql(query, tables={"given": given}).to_dict() == [{"n": number}]

        at_once(*(lambda number=number: ask(number) for number in range(6)))

    def test_what_a_session_sets_stays_with_it(self, lake):
        def ask(number):
            name = f"create temp table mine as select {number} as n; select n from mine"
            for _ in range(10):
                assert lake.sql(name).to_dict() == [{"n": number}]

        at_once(*(lambda number=number: ask(number) for number in range(6)))

    def test_one_table_at_two_versions(self, tmp_path):
        with connect(tmp_path) as lake:
            table = lake.create_table("t", sort="host|timestamp/V2", mirror=False)
            versions = {table.ingest(rows_from(first, 100)).version: first + 100 for first in (0, 100, 200)}

            def ask(version, rows):
                for number in range(20):
                    query = f"select count(*) as n, sum(n) as s from t where n >= {number}"
                    expected = [{"n": rows - number, "s": sum(range(number, rows))}]
                    assert table.at(version=version).sql(query).to_dict() == expected

            at_once(*(lambda each=each: ask(*each) for each in versions.items()), lambda: ask(max(versions), 300))


class TestNobodyWaits:
    def test_for_a_query_that_runs(self, lake):
        running = Background(lambda: lake.sql(ENDLESS))
        assert lake.sql("select count(*) as n from t where n % 2 = 0").to_dict() == [{"n": ROWS // 2}]
        assert lake.table("t").sql("select min(m) as m from t").to_dict() == [{"m": 1 - ROWS}]
        assert not running.ended
        lake.close()
        assert isinstance(running.join(), Closed)

    def test_for_a_stream_that_is_open(self, tmp_path):
        with connect(tmp_path) as lake:
            table = lake.create_table("t", sort="host|timestamp/V2", mirror=False)
            for first in range(0, 400, 100):
                table.ingest(rows_from(first, 100))

            def others():
                table.ingest(rows_from(400, 100))
                assert table.compact.run(threads=1).failed == 0
                assert lake.sql("select count(*) as n from t").to_dict() == [{"n": 500}]
                return table.scan(where="n >= 250").to_arrow().num_rows

            with lake.stream("select t.n, range from t, range(2000)") as batches:
                first = next(batches).num_rows
                assert at_once(others) == [250]
                assert first + sum(map(len, batches)) == 400 * 2000


class TestWhatGoesWrong:
    def test_stays_with_its_thread(self, lake):
        def fail():
            for _ in range(20):
                with pytest.raises(NotFound, match="nope"):
                    lake.sql("select * from nope")
                with pytest.raises(InvalidInput, match="does not fit"):
                    lake.sql("select host::integer from t")
                with pytest.raises(InvalidInput, match="the end"):
                    lake.sql("select error('the end') from t where n > 3")

        def ask():
            for number in range(40):
                assert lake.sql(f"select count(*) as n from t where n < {number}").to_dict() == [{"n": number}]

        at_once(fail, ask, fail, ask)
        assert not left_open(lake)

    ASKING = (
        lambda lake: lake.sql(ENDLESS),
        lambda lake: streamed(lake, ENDLESS),
        lambda lake: lake.table("t").scan(where=SLOW).to_arrow(),
    )

    @pytest.mark.parametrize("ask", ASKING, ids=["sql", "stream", "scan"])
    def test_ctrl_c_ends_the_query_of_the_main_thread_alone(self, lake, ask):
        slow = "select sum(hash(range) % 7 + sleep) from range(60000000), (select 0 as sleep)"
        others = [Background(lambda: lake.sql(slow).to_dict()), Background(lambda: lake.sql(ENDLESS))]
        timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            ask(lake)
        timer.join()
        assert isinstance(others[0].join(), list)
        assert not others[1].ended
        lake.close()
        assert isinstance(others[1].join(), Closed)

    def test_ctrl_c_while_a_batch_is_worked_out_leaves_the_lake_usable(self, lake):
        query = f"select n, (select max(hash(range * n)) from range(if(n = {ROWS - 1}, 3000000000, 1))) as x from t"
        timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt), lake.stream(query) as batches:
            batches.read_all()
        timer.join()
        assert lake.sql("select count(*) as n from t").to_dict() == [{"n": ROWS}]
        assert not left_open(lake)


class TestClosing:
    def test_ends_what_runs_and_leaks_nothing(self, folder):
        before = set(threading.enumerate())
        lake = connect(folder)
        engine = lake._started()

        def read():
            with lake.stream("select a.range from range(1000000) a, range(1000000) b, t") as batches:
                return sum(map(len, batches))

        def idle():
            with lake.stream("select a.range from range(1000000) a, t") as batches:
                next(batches)
                until.wait(30)
                return next(batches)

        until = threading.Event()
        kinds = [lambda: lake.sql(ENDLESS), read, idle, lambda: lake.table("t").sql(ENDLESS)]
        running = [Background(ask) for ask in kinds * 2]
        began = time.monotonic()
        lake.close()
        assert time.monotonic() - began < 9
        until.set()
        for each in running:
            assert isinstance(each.join(), Closed)
        assert not [*engine._sessions._taken, *engine._sessions._idle, *engine.files.paths]
        assert {each for each in threading.enumerate() if each.name.startswith("windrow")} <= before
        with pytest.raises(Closed):
            lake.sql("select 1")
        with pytest.raises(Closed):
            lake.table("t")

    def test_many_threads_may_close_at_once(self, folder):
        lake = connect(folder)
        running = [Background(lambda: lake.sql(ENDLESS)) for _ in range(2)]
        at_once(*[lake.close] * 4)
        assert all(isinstance(each.join(), Closed) for each in running)

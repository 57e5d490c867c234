"""Scans that run at the same time: each reads through its own reader, and none through one that is closed."""

from __future__ import annotations

import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest
from tests.proofs.worlds import compact, visible

import windrow
from windrow.cache import CacheSettings
from windrow.engines.arrow import scanning_engine
from windrow.errors import Closed
from windrow.lake import open_lake
from windrow.model.sources import SourceKind
from windrow.reading.forcing import Forcing

START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 2000


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path)) as opened:
        table = opened.create_table("t", sort="host|timestamp/V2", window="1h", mirror=False)
        for part in range(2):
            numbers = range(part * ROWS // 2, (part + 1) * ROWS // 2)
            times = pa.array([START + timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC"))
            table.ingest(pa.table({"host": [f"h{n % 7}" for n in numbers], "timestamp": times, "n": numbers}))
        yield opened


@pytest.fixture
def eager_switches():
    """Threads take turns as often as Python lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_switches")
def test_scans_of_one_version_at_the_same_time_give_all_rows(lake):
    table = lake.table("t")
    expected = list(range(ROWS))

    def scan(_):
        return sorted(table.scan(columns=["n"]).to_arrow()["n"].to_pylist())

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(scan, range(100)):
            assert found == expected


def test_a_scan_that_ends_takes_nothing_from_another_of_the_same_rows(lake):
    table = lake.table("t")
    first = table.scan().to_reader()
    second = table.scan().to_reader()
    assert second.read_all().num_rows == ROWS
    assert first.read_all().num_rows == ROWS


def test_two_scans_of_the_same_rows_are_served_under_two_paths(lake):
    with open_lake(lake.url, cache=None, forcing=Forcing(SourceKind.VIRTUAL)) as other:
        first, second = (other.table("t").scan().to_reader() for _ in range(2))
        assert len(scanning_engine().files.paths) == 2
        first.read_all()
        assert len(scanning_engine().files.paths) == 1
        second.read_all()
        assert scanning_engine().files.paths == []


def test_relations_of_one_connection_are_served_for_the_lake_that_made_them(lake, tmp_path):
    """The same files are read for two lakes. One is closed, and its hold on the version ends; the other goes on."""
    with duckdb.connect() as connection:
        with windrow.connect(tmp_path / "lake", cache=None) as other:
            other.table("t").scan().to_duckdb(connection)
            mine = lake.table("t").scan().to_duckdb(connection)
        lake.context.pins.let_go()  # of what nobody reads
        with windrow.connect(tmp_path / "lake", cache=None) as other:
            compact(other.table("t"), visible(other.table("t")))
            other.table("t").upkeep.gc.run(grace=0)
        assert len(mine.fetchall()) == ROWS


def test_threads_that_ask_first_at_the_same_time_share_one_engine(lake):
    barrier = threading.Barrier(8)

    def ask(_):
        barrier.wait()
        return lake.sql("select count(*) as n from t where n >= 0").to_dict(), lake._started()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert [found for found, _ in answers] == [[{"n": ROWS}]] * 8
    assert len({id(engine) for _, engine in answers}) == 1


def test_a_scan_that_fails_lets_go_of_its_files_while_the_error_is_held(lake, tmp_path):
    for file in (tmp_path / "lake").rglob("*.parquet"):
        file.unlink()
    before = scanning_engine().files.paths
    with pytest.raises(windrow.errors.WindrowError) as held:
        lake.table("t").scan(where="n > 3").to_reader()
    assert held.value
    assert scanning_engine().files.paths == before


SLOW = "list_sum(list_transform(range(n, n + 100000), lambda x: x * n % 7)) >= 0"


def test_closing_a_lake_ends_its_scans_and_those_of_no_other(lake, tmp_path):
    """All scans of a process share an engine."""
    other = windrow.connect(tmp_path / "lake", cache=None)
    with ThreadPoolExecutor(2) as pool:
        ended = pool.submit(lambda: other.table("t").scan(where=SLOW).to_arrow())
        goes_on = pool.submit(lambda: lake.table("t").scan(where=SLOW.replace("100000", "10000")).count())
        time.sleep(0.5)
        other.close()
        assert isinstance(ended.exception(), Closed)
        assert goes_on.result() == ROWS
    assert not scanning_engine().files.paths


def test_a_scan_that_is_abandoned_in_the_middle_leaves_nothing(lake):
    sessions, pins = scanning_engine()._sessions, lake.context.pins
    before = len(sessions._taken)
    batches = iter(lake.table("t").scan(where="n >= 0").to_reader())
    next(batches)
    assert len(sessions._taken) == before + 1
    assert not pins._idle()
    del batches
    gc.collect()
    assert len(sessions._taken) == before
    assert not scanning_engine().files.paths
    assert pins._idle()

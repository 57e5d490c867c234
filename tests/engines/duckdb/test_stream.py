"""The block of a stream: what may be done inside, and what is left behind it."""

from __future__ import annotations

import gc
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import windrow
from windrow.cache import CacheSettings
from windrow.errors import Closed, InvalidInput

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path)) as opened:
        times = pa.array([START + timedelta(seconds=n) for n in range(5000)], pa.timestamp("us", "UTC"))
        rows = pa.table({"host": [f"h{n % 7}" for n in range(5000)], "timestamp": times, "n": range(5000)})
        opened.create_table("t", sort="host|timestamp/V2", mirror=False).ingest(rows)
        yield opened


MANY = "select range as n, repeat('x', 100) as x from range(2000000)"


def test_a_reader_is_of_no_use_behind_its_block(lake):
    with lake.stream(MANY) as batches:
        next(batches)
    with pytest.raises(Closed, match="inside of the block"):
        next(batches)
    with lake.stream("explain select n from t") as batches:
        pass
    with pytest.raises(Closed, match="inside of the block"):
        batches.read_all()


def test_a_stream_is_opened_once(lake):
    stream = lake.stream("select n from t")
    with stream as batches:
        assert batches.read_all().num_rows == 5000
    with pytest.raises(InvalidInput, match="again"), stream:
        pass


def test_other_queries_run_inside_of_the_block(lake):
    with lake.stream(MANY) as one, lake.stream("select n from t order by n") as other:
        first = next(one)
        assert first["n"][0].as_py() == 0
        assert lake.sql("select count(*) as n from t").to_dict() == [{"n": 5000}]
        assert lake.table("t").sql("select max(n) as n from t").to_dict() == [{"n": 4999}]
        assert other.read_all()["n"].to_pylist() == list(range(5000))
        assert sum(map(len, one)) == 2_000_000 - len(first)


def test_batches_can_be_data_of_another_query(lake):
    with lake.stream("select n as number from t where n < 10") as batches:
        joined = lake.sql("select count(*) as n from t join b on t.n = b.number", tables={"b": batches})
    assert joined.to_dict() == [{"n": 10}]


def test_an_error_that_another_library_passes_on_is_ours(lake):
    query = "select case when range = 3000000 then error('the end')::bigint else range end as n from range(3000001)"
    with pytest.raises(InvalidInput, match="the end"), lake.stream(query) as batches:
        pa.RecordBatchReader._import_from_c_capsule(batches.__arrow_c_stream__()).read_all()


def test_leaving_the_block_early_ends_the_query(lake):
    with lake.stream("select a.range from range(1000000) a, range(1000000) b") as batches:
        next(batches)
    assert not lake._started()._sessions._taken
    assert not lake._started().files.paths


def test_a_stream_that_nobody_leaves_leaks_nothing(lake):
    batches = lake.stream("select * from t, range(1000)").__enter__()
    next(batches)
    assert lake._started()._sessions._taken
    assert lake._started().files.paths
    del batches
    gc.collect()
    assert not lake._started()._sessions._taken
    assert not lake._started().files.paths

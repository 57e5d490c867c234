"""Answers in batches: the same rows as all at once, in bounded memory, with the same errors."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.cache import CacheSettings
from windrow.errors import InvalidInput, NotFound

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path)) as opened:
        times = pa.array([START + timedelta(seconds=n) for n in range(5000)], pa.timestamp("us", "UTC"))
        rows = pa.table({"host": [f"h{n % 7}" for n in range(5000)], "timestamp": times, "n": range(5000)})
        opened.create_table("t", sort="host|timestamp/V2").ingest(rows)
        yield opened


def test_batches_hold_the_same_rows(lake):
    query = "select host, n from t where n % 3 = 0 order by n"
    assert streamed(lake, query).equals(lake.sql(query).to_arrow())


def test_an_answer_without_rows_has_columns(lake):
    rows = streamed(lake, "select host as h, n as h from t where n < 0")
    assert (rows.column_names, len(rows)) == (["h", "h_1"], 0)


def test_what_is_left_unread_does_no_harm(lake):
    with lake.stream("select * from t, range(1000)") as batches:
        assert len(next(batches)) > 0
    assert lake.sql("select count(*) as n from t").to_dict() == [{"n": 5000}]


def test_rows_come_before_the_last_is_known(lake):
    """The last row cannot be had; those before it can."""
    query = "select case when range = 3000000 then error('the end')::bigint else range end as n from range(3000001)"
    seen = []
    with lake.stream(query) as batches, pytest.raises(InvalidInput, match="the end"):
        seen.extend(map(len, batches))
    assert sum(seen) > 0


def test_batches_of_a_stream_are_small(lake):
    """DuckDB has several of them at once: they are what a stream takes."""
    with lake.stream("select n, repeat(host, 100) as text from t, range(40)") as batches:
        sizes = [each.num_rows for each in batches]
    assert sum(sizes) == 200_000
    assert max(sizes) <= 16 * 1024


def test_errors_are_the_same(lake):
    for query, kind, words in (
        ("select * from nope", NotFound, "nope"),
        ("select host::integer from t", InvalidInput, "does not fit"),
        (" ", InvalidInput, "empty"),
    ):
        with pytest.raises(kind, match=words), lake.stream(query):
            pytest.fail("the block was entered")


def test_errors_of_the_block_are_its_own(lake):
    with pytest.raises(BrokenPipeError, match="nobody reads"), lake.stream("select * from t"):
        raise BrokenPipeError("nobody reads")


def test_a_file_that_goes_away_is_an_error_not_an_end(lake, tmp_path):
    for path in (tmp_path / "lake" / "t").glob("*/*/*.parquet"):
        path.unlink()
    with pytest.raises(NotFound, match="parquet"):
        streamed(lake, "select sum(n) from t")


@pytest.mark.parametrize("where", ["n < 9", "n < 4500"])
def test_ctrl_c_while_few_rows_are_looked_at_is_no_answer(lake, where):
    """Rows that come in one piece are looked at to the end; the question is given up all the same."""
    question = (
        f"select sum(list_sum(list_transform(range(n, n + {{}}), lambda x: x * n % 7))) as s from t where {where}"
    )
    for _ in range(3):
        lake.sql(question.format(10))  # asked about again, the rows are kept decoded
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        lake.sql(question.format(1_500_000 if where == "n < 9" else 30_000))
    timer.join()
    assert lake.sql("select count(*) as n from t").to_dict() == [{"n": 5000}]


@pytest.mark.parametrize("ask", ["sql", "stream"])
def test_ctrl_c_ends_the_query_and_nothing_else(lake, ask):
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    long = "select sum(hash(a.range * b.range) % 7) from range(100000) a, range(200000) b"
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        lake.sql(long) if ask == "sql" else streamed(lake, long)
    timer.join()
    assert lake.sql("select count(*) as n from t").to_dict() == [{"n": 5000}]

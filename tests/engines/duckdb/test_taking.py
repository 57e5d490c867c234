"""Answers in batches: the same rows as all at once, in bounded memory, with the same errors."""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

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
    assert lake.stream(query, lambda batches: batches.read_all()).equals(lake.sql(query).to_arrow())


def test_an_answer_without_rows_has_columns(lake):
    found = lake.stream("select host as h, n as h from t where n < 0", lambda batches: batches.read_all())
    assert (found.column_names, len(found)) == (["h", "h_1"], 0)


def test_what_is_left_unread_does_no_harm(lake):
    assert len(lake.stream("select * from t, range(1000)", next)) > 0
    assert lake.sql("select count(*) as n from t").to_dict() == [{"n": 5000}]


def test_rows_come_before_the_last_is_known(lake):
    """The last row cannot be had; those before it can."""
    query = "select case when range = 3000000 then error('the end')::bigint else range end as n from range(3000001)"
    seen = []

    def count(batches):
        seen.extend(len(batch) for batch in batches)

    with pytest.raises(InvalidInput, match="the end"):
        lake.stream(query, count)
    assert sum(seen) > 0


def test_errors_are_the_same(lake):
    taken = []
    with pytest.raises(NotFound, match="nope"):
        lake.stream("select * from nope", taken.append)
    with pytest.raises(InvalidInput, match="does not fit"):
        lake.stream("select host::integer from t", taken.append)
    with pytest.raises(InvalidInput, match="empty"):
        lake.stream(" ", taken.append)
    assert taken == []


def test_errors_of_the_taker_are_its_own(lake):
    def fail(batches):
        raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError, match="nobody reads"):
        lake.stream("select * from t", fail)


def test_a_file_that_goes_away_is_an_error_not_an_end(lake, tmp_path):
    for path in (tmp_path / "lake" / "t").glob("*/*/*.parquet"):
        path.unlink()
    with pytest.raises(NotFound, match="parquet"):
        lake.stream("select sum(n) from t", lambda batches: batches.read_all())


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
        lake.sql(long) if ask == "sql" else lake.stream(long, lambda batches: batches.read_all())
    timer.join()
    assert lake.sql("select count(*) as n from t").to_dict() == [{"n": 5000}]

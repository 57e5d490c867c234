"""Queries about the newest rows of series, and about the newest buckets: like DuckDB on the same rows, read any way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.forced import WAYS, Way

import windrow
from windrow.cache import CacheSettings
from windrow.errors import InvalidInput
from windrow.questions.naming import Naming
from windrow.questions.newest import newest_shape
from windrow.questions.newest_buckets import bucket_shape

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
SORTS = (
    "host|timestamp/V2",
    "host|region|timestamp+/V2",
    "region|timestamp/V2",
    "timestamp/V2",
    "device|host|timestamp/V2",
)
WHERES = (
    "",
    "where host in ('h1', 'h2', 'h7')",
    "where host <> 'h1' and timestamp < timestamptz '2024-05-01 13:10:00+00'",
    "where timestamp >= timestamptz '2024-05-01 12:40:00+00' and region = 'r1'",
    "where device between 1 and 2",
    "where value > 0",
    "where host is null or region = 'r0'",
    "where host = 'nobody'",
)
ALL_TIED = (
    "select * from t {where} qualify rank() over (partition by {by} order by timestamp desc) = 1",
    (
        "select * exclude (n) from "
        "(select *, dense_rank() over (partition by {by} order by timestamp desc) as n from t {where}) where n = 1"
    ),
    "select {by}, max(timestamp) as newest from t {where} group by {by}",
    "select distinct on ({by}) {by}, timestamp from t {where} order by {by}, timestamp desc",
)
ONE_OF_TIED = (
    "select distinct on ({by}) * from t {where} order by {by}, timestamp desc",
    "select {by}, arg_max(value, timestamp) as value, max_by(device, timestamp) as d from t {where} group by {by}",
    "select * from t {where} qualify row_number() over (partition by {by} order by timestamp desc) = 1",
    (
        "with s as (select *, row_number() over (partition by {by} order by timestamp desc) as n from t {where}) "
        "select * exclude (n) from s where n = 1 and value > -1"
    ),
)
BUCKETS = (
    (
        "select time_bucket(interval '5 minutes', timestamp) as b, count(*), max(value) from t {where} "
        "group by b order by b desc limit 3"
    ),
    "select date_trunc('minute', timestamp) b, count(*) from t {where} group by all order by b desc limit 2 offset 1",
    "select date_trunc('hour', timestamp) as b, host, count(*) from t {where} group by 1, 2 order by 1 desc, 2 limit 4",
)
SEMI = "select * from t where (host, timestamp) in (select (host, max(timestamp)) from t {where} group by host)"


def points(random, rows, *, ties, nulls):
    minutes = random.integers(0, 200, rows) if ties else np.sort(random.choice(12_000, rows, replace=False)) / 60
    times = [NOON + timedelta(minutes=float(at)) for at in random.permutation(minutes)]
    values = random.normal(size=rows).round(2)
    values[random.random(rows) < 0.1] = float("nan")

    def texts(letter, count, share):
        return pa.array([f"{letter}{n}" for n in random.integers(0, count, rows)], mask=random.random(rows) < share)

    return pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("us", "UTC"), mask=random.random(rows) < (0.05 if nulls else 0)),
            "host": texts("h", random.integers(1, 12), 0.1),
            "region": texts("r", 3, 0.1),
            "device": pa.array(random.integers(0, 4, rows), pa.int64(), mask=random.random(rows) < 0.1),
            "value": pa.array(values, mask=random.random(rows) < 0.1),
        }
    )


def fill(folder, seed):
    """A lake of some batches, of which late ones reach back, perhaps compacted; and its rows, and whether times tie."""
    random = np.random.default_rng(seed)
    ties, nulls = bool(random.integers(2)), bool(random.integers(2))
    sort = SORTS[random.integers(len(SORTS))]
    given = []
    with windrow.connect(folder) as lake:
        table = lake.create_table("t", sort=sort, window="15m", mirror=False)
        for number in range(random.integers(1, 4)):
            given.append(points(random, int(random.integers(5, 150)), ties=ties, nulls=nulls))
            if not ties:  # no two batches share a time
                shift = pa.scalar(timedelta(milliseconds=number + 1), pa.duration("us"))
                moved = pa.compute.add(given[-1]["timestamp"], shift)
                given[-1] = given[-1].set_column(0, "timestamp", moved)
            table.ingest(given[-1])
            if random.random() < 0.3:
                table.compact.run()
        if random.random() < 0.2:
            given.append(points(random, 20, ties=ties, nulls=nulls).slice(0, 20 if ties else 0))
            pq.write_table(given[-1], folder.parent / f"{folder.name}-foreign.parquet")
            table.register.run(folder.parent / f"{folder.name}-foreign.parquet")
    return pa.concat_tables(given), ties


def sorted_rows(table):
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def questions(ties):
    for by in ("host", "region", "host, device", "device, region"):
        for where in WHERES:
            for query in ALL_TIED + (() if ties else ONE_OF_TIED):
                yield query.format(by=by, where=where)
    for where in WHERES:
        yield from (query.format(where=where) for query in (*BUCKETS, SEMI))


def oracle(rows):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.from_arrow(rows).create("t")
    return connection


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_are_those_of_all_rows_whichever_way_they_are_read(seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    rows, ties = fill(folder, seed)
    random, native = np.random.default_rng(seed), oracle(rows)
    asked = random.permutation([*questions(ties)])[:16].tolist()
    for name in WAYS:
        way = Way.open(name, folder, CacheSettings(disk_bytes=0))
        with way.lake:
            for query in asked:
                expected = native.sql(query).to_arrow_table()
                assert sorted_rows(way.ask(query)) == sorted_rows(expected), (name, query)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Four hours of ten hosts, and one that ended in the first of them."""
    folder = tmp_path_factory.mktemp("hosts")
    seconds = np.arange(0, 4 * 3600, 10)
    tables = [
        pa.table(
            {
                "timestamp": pa.array((seconds + NOON.timestamp()).astype(np.int64) * 10**6, pa.timestamp("us", "UTC")),
                "host": [f"h{host}"] * len(seconds),
                "value": np.arange(len(seconds)) + host / 10,
            }
        )
        for host in range(10)
    ]
    gone = tables[0].slice(0, 100).set_column(1, "host", pa.array(["gone"] * 100))
    with windrow.connect(folder) as lake:
        lake.create_table("cpu", sort="host|timestamp/V2", window="1h", mirror=False).ingest(
            pa.concat_tables([*tables, gone])
        )
        yield lake


def pairs(answer):
    return [tuple(row.values()) for row in answer.table.to_pylist()]


LAST = {f"h{host}": 1439 + host / 10 for host in range(10)}


@pytest.mark.parametrize(
    "query",
    [
        "select distinct on (host) host, value from cpu order by host, timestamp desc",
        "select host, arg_max(value, timestamp) from cpu group by host",
        "select host, value from cpu qualify row_number() over (partition by host order by timestamp desc) = 1",
        "select host, value from cpu where (host, timestamp) in (select (host, max(timestamp)) from cpu group by host)",
    ],
)
def test_only_windows_that_have_a_newest_row_are_read(hosts, query):
    plan = hosts.plan(query)["cpu"]
    assert plan.steps[0].step == "newest of series"
    assert (plan.steps[0].asked, plan.steps[0].kept) == (4, 2)
    assert dict(pairs(hosts.sql(query))) == {**LAST, "gone": 99.0}


def test_a_condition_on_series_leaves_out_those_that_ended(hosts):
    query = "select distinct on (host) * from cpu where host <> 'gone' order by host, timestamp desc"
    assert hosts.plan(query)["cpu"].steps[0].kept == 1


def test_the_newest_buckets_are_read_from_the_newest_windows(hosts):
    query = "select date_trunc('minute', timestamp) as m, max(value) from cpu {} group by m order by m desc limit 5"
    assert hosts.plan(query.format(""))["cpu"].rows < hosts.plan("select * from cpu")["cpu"].rows / 3
    before = query.format("where timestamp < timestamptz '2024-05-01 14:10:00+00'")
    moments = [minute for minute, _ in pairs(hosts.sql(before))]
    assert moments == [NOON + timedelta(minutes=130 - n) for n in range(1, 6)]
    assert "newest" not in str(hosts.plan(query.format("") + " offset 300"))


def test_a_bucket_of_a_month_has_all_of_its_days(tmp_path):
    days = [datetime(2024, *day, tzinfo=UTC) for day in ((1, 1), (1, 31), (2, 1), (12, 31))]
    with windrow.connect(tmp_path) as lake:
        lake.create_table("t", sort="host|timestamp/V2", window="1h", mirror=False).ingest(
            pa.table({"timestamp": pa.array(days, pa.timestamp("us", "UTC")), "host": ["a"] * 4})
        )
        for interval, start, count in (("1 month", "2024-01-01", 2), ("1 year", "2024-01-01", 4)):
            bucket = f"time_bucket(interval '{interval}', timestamp)"
            query = f"select count(*) from t where {bucket} = timestamptz '{start} 00:00:00+00'"
            assert pairs(lake.sql(query)) == [(count,)]
        newest = (
            "select time_bucket(interval '1 month', timestamp) as b, count(*) from t group by b order by b desc limit 3"
        )
        assert [count for _, count in pairs(lake.sql(newest))] == [1, 1, 2]


def test_ties_nulls_and_late_points_of_several_files_count(tmp_path):
    batches = [[(9, "a", 1.0)], [(9, "a", 2.0)], [(9, "a", 3.0)], [(8, "b", 5.0)], [(7, "b", 6.0), (9, "b", None)]]
    batches += [[(200, "c", 1.0)], [(1, "d", 4.0), (None, "e", 7.0)]]
    with windrow.connect(tmp_path) as lake:
        table = lake.create_table("t", sort="host|timestamp/V2", window="15m", mirror=False)
        for batch in batches:
            minutes, hosts, values = zip(*batch, strict=True)
            times = [None if at is None else NOON + timedelta(minutes=at) for at in minutes]
            times = pa.array(times, pa.timestamp("us", "UTC"))
            table.ingest(pa.table({"timestamp": times, "host": hosts, "value": pa.array(values, pa.float64())}))
        ranked = "select host, value from t qualify rank() over (partition by host order by timestamp desc) = 1"
        newest = [("a", 1.0), ("a", 2.0), ("a", 3.0), ("b", None), ("c", 1.0), ("d", 4.0), ("e", 7.0)]
        assert sorted(pairs(lake.sql(ranked)), key=repr) == newest
        assert lake.plan(ranked)["t"].steps[0].step == "newest of series"
        filled = "select host, arg_max(value, timestamp) from t where host = 'b' group by host"
        assert pairs(lake.sql(filled)) == [("b", 5.0)]


SCHEMA = pa.schema(
    [("timestamp", pa.timestamp("us", "UTC")), ("host", pa.string()), ("region", pa.string()), ("value", pa.float64())]
)


@pytest.mark.parametrize(
    "query",
    [
        "select distinct on (host) * from t order by host, timestamp",
        "select distinct on (host) * from t order by host, value desc, timestamp desc",
        "select distinct on (host) host, value as timestamp from t order by host, timestamp desc",
        "select distinct on (host) * replace (value as timestamp) from t order by host, timestamp desc",
        "select distinct on (host) *, count(*) over () from t order by host, timestamp desc",
        "select distinct on (timestamp) * from t order by timestamp desc",
        "select host, arg_max(value, timestamp), min(value) from t group by host",
        "select host, arg_max(value, timestamp, 2) from t group by host",
        "select host, arg_max(value, timestamp) from t group by rollup (host)",
        "select host, arg_max(value, timestamp) filter (value > 1) from t group by host",
        "select host, arg_max(value, timestamp) from t group by host having count(*) > 1",
        "select * from t qualify row_number() over (partition by host order by timestamp desc) = 2",
        "select * from t qualify row_number() over (partition by host order by timestamp desc) = 1 or value > 1",
        "select *, sum(value) over () from t qualify row_number() over (partition by host order by timestamp desc) = 1",
        "select * from (select *, row_number() over (partition by host order by timestamp desc) as n from t) where n<3",
        (
            "select * from (select *, row_number() over (partition by host order by timestamp desc) as value from t) "
            "where value = 1"
        ),
        "select * from t where (host, timestamp) not in (select (host, max(timestamp)) from t group by host)",
        "select * from t where (region, timestamp) in (select (host, max(timestamp)) from t group by host)",
        "select * from t where (host, timestamp) in (select (host, max(timestamp)) from t group by host) or value > 1",
        "select * from t a, t b where a.host = b.host",
    ],
)
def test_queries_that_need_other_rows_are_told_apart(query):
    assert newest_shape(Naming.of(query), "t", SCHEMA, "timestamp") is None


@pytest.mark.parametrize(
    "query",
    [
        "select date_trunc('minute', timestamp) b, max(value) from t group by b order by b limit 5",
        "select date_trunc('minute', timestamp) b, max(value) from t group by b order by 2 desc, b desc limit 5",
        "select date_trunc('minute', timestamp) b from t group by b having max(value) > 1 order by b desc limit 5",
        "select date_trunc('minute', timestamp) b, sum(max(value)) over () from t group by b order by b desc limit 5",
        "select date_trunc('minute', timestamp) b, max(value) from t group by b order by b desc",
        "select date_trunc('minute', timestamp) b, max(value) from t group by b order by b desc nulls first limit 1",
        "select date_trunc('minute', timestamp) b, host from t group by host, timestamp order by b desc limit 5",
        "select date_trunc('minute', timestamp) b, max(value) from t group by b order by b desc limit 5%",
        "select date_trunc('minute', timestamp) as timestamp from t group by timestamp order by timestamp desc limit 5",
    ],
)
def test_queries_about_other_buckets_are_told_apart(query):
    assert bucket_shape(Naming.of(query), "t", SCHEMA, "timestamp") is None


def test_latest_has_one_row_of_each_series(hosts):
    cpu = hosts.table("cpu")
    assert dict(pairs(cpu.latest(by="HOST", columns=["host", "value"]))) == {**LAST, "gone": 99.0}
    before = cpu.latest(by=["host"], where="timestamp < timestamp '2024-05-01 12:00:10' -- first", columns=["value"])
    assert sorted(row["value"] for row in before.to_dict()) == [0.0, *(n / 10 for n in range(10))]
    assert [row["host"] for row in cpu.latest(by=[], where="host < 'h1'").to_dict()] == ["h0"]
    assert len(cpu.latest(by="host", where="value > 1e9")) == 0


def test_latest_is_of_the_version_of_the_table(tmp_path):
    with windrow.connect(tmp_path) as lake:
        table = lake.create_table("t", sort="host|timestamp/V2", window="15m", mirror=False)
        for minute in (5, 3, 9):
            table.ingest(pa.table({"timestamp": [NOON + timedelta(minutes=minute)], "host": ["a"], "value": [minute]}))
        assert [table.at(version=n + 1).latest(by="host").to_dict()[0]["value"] for n in range(3)] == [5, 5, 9]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": "hots"}, "did you mean 'host'"),
        ({"by": "host", "where": "count(*) > 1"}, "cannot be asked"),
        ({"by": "host", "where": "true) or (true"}, "condition"),
        ({"by": "host", "columns": "value"}, "list of names"),
    ],
)
def test_latest_refuses_what_it_does_not_understand(hosts, given, message):
    with pytest.raises(InvalidInput, match=message):
        hosts.table("cpu").latest(**given)

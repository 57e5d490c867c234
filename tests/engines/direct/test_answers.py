"""Answers of a fresh process are those of the engine: the same rows, names and types, or none at all."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from windrow.engines.answer import Answer
from windrow.engines.direct.answers import DirectAnswers
from windrow.engines.direct.catalog import REVISION, Catalog
from windrow.metastore.migrate import revisions

SORT = "metric_name|host|timestamp/V2"
START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = 3


def points(hour, rows=200):
    """Rows of an hour: floats that are no numbers among them, and nulls."""
    values = [math.nan if n % 7 == 0 else float(n) for n in range(rows)]
    return pa.table(
        {
            "metric_name": [f"m{n % 5}" for n in range(rows)],
            "host": [None if n % 13 == 0 else f"h{n % 3}" for n in range(rows)],
            "timestamp": [START + timedelta(hours=hour, seconds=18 * n) for n in range(rows)],
            "value": pa.array(values, pa.float64()),
            "count": pa.array([n * hour for n in range(rows)], pa.int64()),
            "is_up": pa.array([None if n % 11 == 0 else n % 2 == 0 for n in range(rows)]),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("direct") / "lake"
    with windrow.connect(place) as lake:
        table = lake.create_table("Metrics", sort=SORT, window="15m")
        for hour in range(HOURS):
            table.ingest(points(hour))
        # A column that came later, and rows without a time.
        extra = points(HOURS, 20).append_column("late", pa.array(range(20), pa.int32()))
        table.ingest(extra)
        lake.create_table("empty", sort=SORT)
    return place


def test_tables_with_longer_windows_are_left_to_the_engine(tmp_path):
    place = tmp_path / "lake"
    with windrow.connect(place) as opened:
        table = opened.create_table("metrics", sort=SORT, window="15m", cold_window="2h")
        table.ingest(points(1))
        table.ingest(points(2))
    question = f"select count(*) as n from metrics where timestamp >= '{START + timedelta(hours=1, minutes=30)}'"
    with windrow.connect(place) as opened:
        assert opened.sql(question).fetchall() == [(300,)]
        opened.table("metrics").compact.run()
        assert any(row.seconds == 7200 for row in opened.table("metrics").inspect.windows())
    with windrow.connect(place) as opened:
        assert opened.sql(question).fetchall() == [(300,)]


@pytest.fixture(scope="module")
def lake(folder):
    with windrow.connect(folder) as opened:
        yield opened


def directly(folder, query):
    """The answer without the engine; None where there is none."""
    found = DirectAnswers.of(folder)
    assert found is not None
    rows = found.answer(query)
    return None if rows is None else Answer(rows)


def spelled(table):
    """Rows in an order of their own, in which a value that is no number is equal to itself."""
    return sorted(map(repr, table.to_pylist()))


def assert_same(folder, lake, query):
    answer, oracle = directly(folder, query), lake.sql(query)
    assert answer is not None, "it is left to the engine"
    assert answer.table.schema == oracle.table.schema
    assert spelled(answer.table) == spelled(oracle.table)
    assert len(answer) == len(oracle)


PLAIN = [
    "select count(*), sum(value) as total, max(value) as top from metrics",
    "select count(*) from metrics where timestamp >= timestamptz '2026-01-01 01:00:00+00' and metric_name = 'm1'",
    "select * from metrics where timestamp < '2026-01-01 00:20:00'",
    "from Metrics select host, count(*) as n where host in ('h0', 'h1') group by host order by n desc limit 2;",
    "select host, avg(value) a from metrics m where m.timestamp between '2026-01-01 00:30:00' and now() group by all",
    "select is_up from metrics m where timestamp between '2026-01-01 00:30:00' and timestamp '2026-01-01 01:30:00'",
    "select max(value), min(value) from metrics",
    "select sum(case when value > 5000 then 1 else 0 end) s, count(distinct host) from metrics",
    "select metric_name, value from metrics where count > 100 and is_up and not host like '%2'",
    "select distinct host from metrics where timestamp > date '2026-01-01' or host is null",
    "select late, count(*) from metrics group by late",
    "select * exclude (value) from metrics where late = 3 or count = 7",
    "select count(*) from metrics where '2026-01-01 02:00:00+00' <= timestamp",
    "select count(*) from metrics where timestamp = timestamptz '2026-01-01 01:00:18+00'",
    "select count(*) from metrics where timestamp > 'infinity'::timestamptz",
    "select timestamp, row_number() over (partition by host order by timestamp) from metrics where host = 'h1'",
    "select host from metrics order by host nulls first, count limit 700",
]


@pytest.mark.parametrize("query", PLAIN)
def test_an_answer_is_that_of_the_engine(folder, lake, query):
    assert_same(folder, lake, query)


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from metrics where value > 5",
        "select host from metrics group by host having max(value) > 5",
        "select count(*) filter (where value > 5) from metrics",
        "select host, value v from metrics where v > 5",
        "select host as count, count as host from metrics where host = '3'",
        "select value from metrics order by value desc limit 1",
        "select a.host from metrics a join metrics b using (host)",
        "select * from (select * from metrics)",
        "with metrics as (select 1) select * from metrics",
        "select * from metrics where timestamp > (select max(timestamp) from metrics)",
        "select * from metrics where host = $1",
        "select 1",
        "select * from empty",
        "select * from nothing",
        "select nothing from metrics",
        "select count(*), count(*) from metrics",
        "select * from metrics; select 1",
        "select * from metrics using sample 5 rows",
        "select * from read_csv('x.csv')",
        "select * from main.metrics",
        "selec",
        "",
        "explain select * from metrics",
        "create table t as select * from metrics",
        "select count(*) from metrics where timestamp > '2100-01-01'",
    ],
)
def test_all_else_is_left_to_the_engine(folder, query):
    assert directly(folder, query) is None


COLUMNS = ["metric_name", "host", "count", "is_up", "late", "timestamp"]
MOMENTS = st.integers(-30, 60 * (HOURS + 1)).map(lambda m: f"'{START + timedelta(minutes=m):%Y-%m-%d %H:%M:%S}'")
KINDS = st.sampled_from(["", "timestamp ", "timestamptz ", "date "])
CONDITIONS = st.one_of(
    st.builds("timestamp {} {}{}".format, st.sampled_from(["<", "<=", ">", ">=", "="]), KINDS, MOMENTS),
    st.builds("{}{} {} timestamp".format, KINDS, MOMENTS, st.sampled_from(["<", "<=", ">", ">=", "="])),
    st.builds("timestamp between {}{} and {}{}".format, KINDS, MOMENTS, KINDS, MOMENTS),
    st.builds("timestamp not between {} and {}".format, MOMENTS, MOMENTS),
    st.builds("host = 'h{}'".format, st.integers(0, 4)),
    st.builds("count > {}".format, st.integers(-1, 600)),
    st.sampled_from(["host is null", "is_up", "late > 3", "metric_name like 'm%' and host <> 'h1'"]),
)
WHERE = st.recursive(
    CONDITIONS,
    lambda some: st.one_of(
        st.builds("({} and {})".format, some, some),
        st.builds("({} or {})".format, some, some),
        st.builds("not ({})".format, some),
    ),
    max_leaves=4,
)
SELECTED = st.sampled_from(
    [
        "count(*) as n, sum(count) as s, max(value) as v",
        "*",
        "host, is_up, avg(value) as a",
        "metric_name, min(timestamp) as t, count(late) as l",
        "value, count + 1 as c",
    ]
)


@settings(max_examples=60, deadline=None)
@given(selected=SELECTED, where=WHERE)
def test_any_plain_query_has_the_answer_of_the_engine(folder, lake, selected, where):
    grouped = {"host": " group by host, is_up", "metr": " group by metric_name"}.get(selected[:4], "")
    query = f"select {selected} from metrics where {where}{grouped}"
    answer = directly(folder, query)
    if answer is not None:
        oracle = lake.sql(query)
        assert answer.table.schema == oracle.table.schema
        rounded = [each.replace("-0.0", "0.0") for each in spelled(answer.table)]
        assert rounded == [each.replace("-0.0", "0.0") for each in spelled(oracle.table)]


def test_statements_are_written_for_the_newest_schema():
    assert revisions()[-1] == REVISION


def test_windows_are_counted_as_the_metastore_counts_them(folder, tmp_path):
    places = [tmp_path / name for name in ("direct", "engine")]
    query = "select count(*) as n from metrics where timestamp < '2026-01-01 00:40:00' and host = 'h1'"
    counts = []
    for place in places:
        shutil.copytree(folder, place)
        if place.name == "direct":
            assert directly(place, query) is not None
            assert directly(place, query) is not None
        else:
            for _ in range(2):
                with windrow.connect(place) as lake:
                    lake.sql(query)
        with windrow.connect(place) as lake:
            heat = lake.context.metastore.heat(lake.table("Metrics").record().table_id)
            counts.append({window: round(count, 1) for window, count in heat.items()})
    assert counts[0] == counts[1] != {}


def test_a_table_is_pinned_while_it_is_read_and_no_longer(folder, lake):
    table = lake.table("Metrics").record()
    before = set(lake.context.metastore.pins(table.table_id))
    with Catalog(folder).opened() as catalog, catalog.pinned("metrics") as pinned:
        [pin] = set(lake.context.metastore.pins(table.table_id)) - before
        assert (pin.version, str(os.getpid()) in pin.owner) == (table.version, True)
        assert pinned.version == table.version
        assert list(pinned.columns) == [each.name for each in lake.context.metastore.columns(table.table_id)]
        assert {file.path for file in catalog.files(pinned, (None, None), 100)} == {
            str(folder / split.key)
            for page in lake.context.metastore.splits(table.table_id, table.version)
            for split in page
        }
    assert set(lake.context.metastore.pins(table.table_id)) == before


@pytest.mark.parametrize(
    "change",
    [
        "update windrow_tables set settings = replace(settings, 'timestamp', 'timestamq')",
        "update windrow_migrations set version_num = '9999'",
        "update windrow_lakes set address = 'file:///elsewhere'",
        "update windrow_tables set schema_epoch = 1",
        "update windrow_splits set size_bytes = size_bytes + 1",
        "update windrow_splits set window_kind = 0, window_start = 0",
        "insert into windrow_attributes select table_key, 'a', 1 from windrow_tables",
        "update windrow_columns set type = 'timestamp[ns]' where name = 'count'",
        "pragma journal_mode = delete",
        "drop table windrow_pins",
    ],
)
def test_a_lake_that_is_not_as_usual_is_left_to_the_engine(folder, tmp_path, change):
    shutil.copytree(folder, tmp_path / "lake")
    query = "select count(*) as n from metrics"
    assert directly(tmp_path / "lake", query) is not None
    with sqlite3.connect(tmp_path / "lake" / "windrow.db", isolation_level=None) as database:
        database.execute(change)
    database.close()
    found = DirectAnswers.of(tmp_path / "lake")
    assert found is None or found.answer(query) is None


def test_what_is_no_plain_lake_has_no_direct_answers(folder, tmp_path):
    assert DirectAnswers.of(tmp_path) is None
    for name in ("_windrow.json", "windrow.db"):
        shutil.copytree(folder, tmp_path / name)
        (tmp_path / name / name).unlink()
        assert DirectAnswers.of(tmp_path / name) is None
        assert not (tmp_path / name / name).exists()


def test_after_some_answers_the_engine_takes_over(folder):
    found = DirectAnswers.of(folder)
    answers = [found.answer("select count(*) as n from metrics") for _ in range(6)]
    assert [each is None for each in answers] == [False] * 4 + [True] * 2


def test_a_closed_lake_answers_nothing(folder):
    found = DirectAnswers.of(folder)
    found.close()
    assert found.answer("select count(*) as n from metrics") is None

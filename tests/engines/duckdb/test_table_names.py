"""Which tables a query names: found by parsing, whatever else has the name; nothing that SQL does hides a table."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.engines.duckdb.statements import named_tables
from windrow.engines.table_relation import TableVersion
from windrow.errors import InvalidInput, NotFound
from windrow.questions.naming import Naming

SORT = "host|timestamp/V2"
AT = datetime(2026, 1, 1, tzinfo=UTC)
CATALOG = ("pg_type", "duckdb_columns", "pragma_database_list", "sqlite_master", "information_schema", "tables", "temp")


def points(*hosts):
    times = pa.array([AT] * len(hosts), pa.timestamp("us", "UTC"))
    return pa.table({"host": pa.array(hosts, pa.string()), "timestamp": times})


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=None) as opened:
        opened.create_table("metrics", sort=SORT, mirror=False).ingest(points("a", "b"))
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A lake that no test changes."""
    with windrow.connect(tmp_path_factory.mktemp("named") / "lake", cache=None) as opened:
        opened.create_table("metrics", sort=SORT, mirror=False).ingest(points("a", "b"))
        yield opened


def hosts(lake, name="metrics"):
    return [row["host"] for row in lake.sql(f'select host from "{name}" order by host').to_dict()]


class TestNamesOfTheCatalog:
    def test_a_table_wins_over_the_catalog_and_so_does_one_that_is_new(self, lake):
        assert hosts(lake) == ["a", "b"]
        for name in CATALOG:
            lake.create_table(name, sort=SORT, mirror=False).ingest(points(name))
            assert hosts(lake, name) == [name]
            assert lake.sql(f'select count(*) as n from "{name}"').to_dict() == [{"n": 1}]
            described = [row["column_name"] for row in lake.sql(f'describe "{name}"').to_dict()]
            assert described == ["host", "timestamp"]
            assert streamed(lake, f'select * from "{name}"').num_rows == 1

    def test_a_table_that_another_process_makes_wins_from_then_on(self, lake):
        pg_type = points("variable")
        assert lake.sql("select host from pg_type").to_dict() == [{"host": "variable"}]
        with windrow.connect(lake.url, cache=None) as other:
            other.create_table("pg_type", sort=SORT, mirror=False).ingest(points("stored"))
        assert lake.sql("select host from pg_type").to_dict() == [{"host": "stored"}]
        assert pg_type.num_rows == 1

    def test_what_is_no_table_of_the_lake_is_still_the_catalog(self, shared):
        assert shared.sql("select count(*) > 10 as many from pg_type").to_dict() == [{"many": True}]


class TestWordsOfAQuery:
    def test_a_table_whose_name_is_a_word_of_sql_blocks_nothing(self, lake, monkeypatch):
        lake.create_table("Select", sort=SORT, mirror=False)
        planned = []
        relation = TableVersion.relation
        monkeypatch.setattr(TableVersion, "relation", lambda self: planned.append(self.record.name) or relation(self))
        assert hosts(lake) == ["a", "b"]
        assert planned == ["metrics"]
        assert hosts(lake, "Select") == []

    @pytest.mark.parametrize(
        ("query", "tables"),
        [
            ("select metrics from other", {"other"}),
            ("select 'metrics' as metrics -- from metrics", set()),
            ("select * from METRICS m, other", {"METRICS", "other"}),
            ("with metrics as (select 1) select * from metrics", set()),
            ("with metrics as (select * from metrics) select * from metrics", {"metrics"}),
            (
                "with recursive metrics as (select 1 x union all select x + 1 from metrics where x < 3) from metrics",
                set(),
            ),
            ("select * from (with m as (select 1) select * from m) q, m", {"m"}),
            ("select (select max(n) from metrics) in (from other)", {"metrics", "other"}),
            ("from query_table('metrics')", {"metrics"}),
            ("from query('select * from metrics')", {"metrics"}),
            ("select * from main.metrics", {"metrics"}),
            ("select * from temp.main.metrics", {"metrics"}),
            ("select * from memory.main.metrics, other.metrics", set()),
            ("select * from '/data/metrics/x.parquet'", {"/data/metrics/x.parquet"}),
            ("describe metrics", {"metrics"}),
            ("show metrics", {"metrics"}),
            ("summarize metrics", {"metrics"}),
            ("show tables", set()),
            ("explain select * from metrics", {"metrics"}),
            ("create table x as select * from metrics", {"x", "metrics"}),
            ("copy (select * from metrics) to 'metrics.csv'", {"metrics"}),
            ("pivot metrics on host using count(*)", {"metrics"}),
            ("set threads = 1; select * from metrics", {"metrics"}),
        ],
    )
    def test_the_tables_of_a_query_are_those_in_place_of_tables(self, query, tables):
        with duckdb.connect() as connection:
            assert named_tables(connection, Naming.of(query), query) == tables

    def test_a_table_may_be_named_with_its_schema(self, shared):
        for _ in range(2):
            assert len(shared.sql("select * from main.metrics where host = 'a'").to_dict()) == 1
            assert hosts(shared) == ["a", "b"]

    def test_a_path_with_the_name_of_a_table_in_it_does_not_touch_the_table(self, lake, tmp_path):
        folder = tmp_path / "metrics"
        folder.mkdir()
        path = folder / "x.parquet"
        pq.write_table(points("a"), path)
        lake.table("metrics").register.run(str(path))
        pq.write_table(points("a", "b", "c"), path)
        with pytest.raises(Exception, match=r"x\.parquet"):
            hosts(lake)
        assert lake.sql(f"select count(*) as n from '{path}'").to_dict() == [{"n": 3}]


class TestWhatTheLakeIs:
    def test_an_empty_table_answers_no_rows(self, lake):
        lake.create_table("empty", sort="metric_name|host|timestamp/V2", tags=["env"], mirror=False)
        assert lake.sql("select * from empty").to_dict() == []
        assert lake.sql("select count(*) as n, max(value) as v from empty").to_dict() == [{"n": 0, "v": None}]
        found = lake.sql("select metric_name, env from empty where value > 1 and timestamp >= '2026-01-01'")
        assert found.to_dict() == []
        assert lake.table("empty").scan(where="host = 'a'").to_arrow().num_rows == 0
        assert lake.table("empty").scan().count() == 0
        assert lake.explain("select * from empty").tables[0].rows == 0
        assert lake.sql("select m.host from metrics m join empty using (host)").to_dict() == []

    def test_an_ingest_without_rows_changes_nothing_and_says_so(self, lake):
        table = lake.table("metrics")
        before = table.version()
        result = table.ingest(points())
        assert (result.rows, result.splits, result.version) == (0, 0, before)
        assert table.version() == before
        assert hosts(lake) == ["a", "b"]
        empty = lake.create_table("empty", sort=SORT, mirror=False)
        assert empty.ingest(points()).rows == 0
        assert empty.version() == 0

    def test_show_tables_lists_the_tables_of_the_lake(self, lake):
        lake.create_table("another", sort=SORT, mirror=False)
        hosts(lake)
        assert lake.sql("show tables").to_dict() == [{"name": "another"}, {"name": "metrics"}]
        assert lake.sql("SHOW TABLES;").to_dict() == [{"name": "another"}, {"name": "metrics"}]
        [_, listed] = lake.sql("show all tables").to_dict()
        assert (listed["name"], listed["column_names"]) == ("metrics", ["host", "timestamp"])
        assert listed["column_types"] == ["VARCHAR", "TIMESTAMP WITH TIME ZONE"]
        assert streamed(lake, "show tables").num_rows == 2

    def test_describe_and_summarize_read_the_table(self, shared):
        described = shared.sql("describe metrics").to_dict()
        assert [(row["column_name"], row["column_type"]) for row in described] == [
            ("host", "VARCHAR"),
            ("timestamp", "TIMESTAMP WITH TIME ZONE"),
        ]
        [host, _] = shared.sql("summarize metrics").to_dict()
        assert (host["min"], host["max"], host["count"]) == ("a", "b", 2)
        with pytest.raises(NotFound, match="metrics"):
            shared.sql("describe metrix")

    @pytest.mark.parametrize(
        ("statement", "words"),
        [
            ("drop table metrics", "retention"),
            ("drop view if exists METRICS", "retention"),
            ("truncate metrics", "retention"),
            ("alter table metrics rename to other", "change"),
            ("insert into metrics select 1", "ingest"),
            ("update metrics set host = 'x'", "ingest"),
            ("delete from metrics", "ingest"),
            ("copy metrics from 'x.csv'", "ingest"),
            ("create table metrics (host varchar)", "another name"),
            ("create or replace temp view metrics as select 'x' as host", "another name"),
            ("create temp table metrics as select 'x' as host", "another name"),
            ("create view v as select * from metrics", "WITH"),
            ("create macro m() as table select * from metrics", "WITH"),
            ("prepare p as select * from metrics", "params"),
            ("select 1; drop table metrics", "retention"),
        ],
    )
    def test_statements_that_would_change_a_table_are_refused(self, shared, statement, words):
        with pytest.raises(InvalidInput, match=words):
            shared.sql(statement)
        assert hosts(shared) == ["a", "b"]


@pytest.mark.parametrize(
    "statement",
    [
        "create table memory.main.metrics as select 'x' as host",
        "create temp table temp.main.metrics as select 'x' as host",
        "create or replace temp view temp.main.metrics as select 'x' as host",
        "create schema s; create table s.metrics as select 'x' as host; use s",
        "create schema s; create table s.metrics as select 'x' as host; set schema = 's'",
        "create schema s; create table s.metrics as select 'x' as host; set search_path = 's'",
        "attach ':memory:' as other; create table other.metrics as select 'x' as host; use other",
        "create macro metrics() as table select 'x' as host",
        "create macro read_parquet(a, union_by_name := true, hive_partitioning := true) as table select 'x' as host",
        "set python_enable_replacements = true; select 1",
        "begin",
        "set threads = 1; pragma disable_optimizer",
    ],
)
def test_no_statement_hides_a_table_from_the_next_query(lake, statement):
    hosts(lake)
    with suppress(InvalidInput):
        lake.sql(statement)
    for query in ("select host from metrics order by host", "select host from metrics where host >= 'a' order by 1"):
        assert lake.sql(query).to_dict() == [{"host": "a"}, {"host": "b"}]
        assert streamed(lake, query).num_rows == 2
    assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 2}]


def test_a_view_of_another_schema_may_have_the_name_of_a_table(lake):
    lake.sql("create schema s; create table s.metrics as select 'x' as host; create view v as select * from s.metrics")
    assert hosts(lake, "v") == ["x"]
    assert hosts(lake) == ["a", "b"]


def test_what_a_statement_makes_in_the_database_lasts_and_what_is_temporary_does_not(lake):
    lake.sql("create table hot as select * from metrics where host = 'a'")
    assert hosts(lake, "hot") == ["a"]
    lake.sql("create temp table brief as select * from metrics")
    with pytest.raises(NotFound, match="brief"):
        hosts(lake, "brief")
    assert lake.sql("create temp table brief as select * from metrics; select count(*) as n from brief").to_dict() == [
        {"n": 2}
    ]

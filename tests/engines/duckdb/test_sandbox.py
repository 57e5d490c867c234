"""A lake that is opened with `sandbox` lets SQL read its tables, and nothing else."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.duckdb.test_table_names import SORT, points
from tests.engines.streams import streamed

import windrow
from windrow.cache import CacheSettings
from windrow.engines.duckdb.sandbox import Guard
from windrow.errors import InvalidInput, NotFound
from windrow.model.predicate import Comparison, Op
from windrow.reading import plain_paths

ATTACKS = [
    line
    for line in Path(__file__).with_name("attacks.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
CONDITIONS = [
    "host in (select content from read_text('{secret}'))",
    "exists (from '{parquet}')",
    "host = 'a') union all select content, null from read_text('{secret}') where (true",
    "true); copy (select 1) to '{folder}/out.csv'; select (1",
    "host = current_setting('temp_directory')",
    "host = getenv('HOME')",
    "host = (select 'a')",
    "true) order by (select content from read_text('{secret}')",
    "sleep_ms(1) is null",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("attacked")
    (made / "secret.txt").write_text("the secret")
    pq.write_table(pa.table({"x": ["the secret"]}), made / "x.parquet")
    duckdb.connect(made / "x.db").close()
    return made


@pytest.fixture(scope="module", params=["warm", "cold"])
def lake(folder, request):
    """A lake in a sandbox, with decoded rows cached or nothing cached at all."""
    path = folder / request.param
    with windrow.connect(path, cache=None) as writer:
        writer.create_table("metrics", sort=SORT, mirror=False).ingest(points("a", "b"))
        writer.create_table("pg_class", sort=SORT, mirror=False).ingest(points("p"))
    cache = CacheSettings(folder=folder / "cache") if request.param == "warm" else None
    with windrow.connect(path, sandbox=True, cache=cache) as opened:
        yield opened


def filled(text, folder):
    places = {"{secret}": folder / "secret.txt", "{parquet}": folder / "x.parquet", "{folder}": folder}
    return reduce(lambda found, place: found.replace(place, str(places[place])), places, text)


def hosts(lake):
    return [row["host"] for row in lake.sql("select host from metrics order by host").to_dict()]


class TestAttacks:
    @pytest.mark.parametrize("attack", ATTACKS)
    def test_is_refused_by_every_way_in(self, lake, folder, attack):
        frame = pa.table({"x": ["the secret"]})
        query, before = filled(attack, folder), sorted(folder.iterdir())
        ways = (
            lake.sql,
            lambda text: streamed(lake, text),
            lake.explain,
            lambda text: lake.explain(text, analyze=True),
            lake.plan,
        )
        for way in ways:
            with pytest.raises((InvalidInput, NotFound), match=r"sandbox") as raised:
                way(query)
            assert "the secret" not in str(raised.value)
        assert sorted(folder.iterdir()) == before
        assert frame.num_rows == 1

    def test_is_refused_by_a_table_too(self, lake, folder):
        for attack in ATTACKS[::9]:
            with pytest.raises((InvalidInput, NotFound), match="sandbox"):
                lake.table("metrics").sql(filled(attack, folder))

    @pytest.mark.parametrize("condition", CONDITIONS)
    def test_is_refused_in_the_condition_of_a_scan(self, lake, folder, condition):
        before = sorted(folder.iterdir())
        with pytest.raises(InvalidInput):
            lake.table("metrics").scan(where=filled(condition, folder)).to_arrow()
        assert sorted(folder.iterdir()) == before

    @pytest.mark.parametrize(
        "attack", [each for each in ATTACKS if "{secret}" in each or "{parquet}" in each or "{folder}" in each]
    )
    def test_would_fail_behind_the_first_wall_as_well(self, lake, folder, attack):
        """The database itself reaches no file: what a parser let through would still find nothing."""
        connection = lake._started()._connection.cursor()
        before = sorted(folder.iterdir())
        try:
            found = str(connection.execute(filled(attack, folder)).fetchall())
        except duckdb.Error:
            found = ""
        assert "the secret" not in found
        assert sorted(folder.iterdir()) == before

    @pytest.mark.parametrize("setting", ["threads = 1", "enable_external_access = true", "lock_configuration = false"])
    def test_settings_are_locked_behind_the_first_wall(self, lake, setting):
        with pytest.raises(duckdb.Error, match="lock"):
            lake._started()._connection.cursor().execute(f"set {setting}")

    def test_functions_of_duckdb_that_do_more_than_compute_were_looked_at(self):
        """A new version of DuckDB may bring functions that depend on more than their arguments: look at each."""
        found = duckdb.sql(
            "select distinct function_name from duckdb_functions() where function_type = 'scalar' "
            "and (has_side_effects or stability <> 'CONSISTENT')"
        ).fetchall()
        harmless = {
            *("current_date", "get_current_time", "get_current_timestamp", "now", "today", "transaction_timestamp"),
            *("gen_random_uuid", "random", "uuid", "uuidv4", "uuidv7", "error"),
            *("current_database", "current_schema", "current_schemas"),
        }
        with duckdb.connect() as connection:
            guard = Guard()
            for (name,) in found:
                if name not in harmless:
                    with pytest.raises(InvalidInput, match="not allowed"):
                        guard.names(connection, f"select {name}()")


class TestWhatIsAllowed:
    @pytest.mark.parametrize(
        ("query", "rows"),
        [
            ("select * from metrics", 2),
            ("select * from METRICS as m where m.host = 'a'", 1),
            ("from metrics", 2),
            ("select count(*) from metrics", 1),
            ("with x as (select * from metrics), y as (select * from x) select * from y", 2),
            ("with recursive r as (select 1 as x union all select x + 1 from r where x < 5) select * from r", 5),
            ("select a.host from metrics a join metrics b using (host)", 2),
            ("select host, row_number() over (order by host) from metrics", 2),
            ("select * from range(3)", 3),
            ("select unnest([1, 2])", 2),
            ("select * from metrics, unnest([1, 2])", 4),
            ("select * from metrics pivot (count(*) for host in ('a', 'b'))", 1),
            ("values (1), (2)", 2),
            ("describe metrics", 2),
            ("summarize metrics", 2),
            ("show tables", 2),
            ("select * from pg_class", 1),
            ("select pg_typeof(host), now(), upper(host), date_trunc('hour', timestamp) from metrics", 2),
            ("explain select * from metrics", 2),
            ("select * from metrics where timestamp >= now() - interval 1000 year", 2),
            ("select * from metrics order by host limit 1 -- ; drop table metrics", 1),
        ],
    )
    def test_a_query_over_tables_of_the_lake(self, lake, query, rows):
        for _ in range(2):
            assert len(lake.sql(query).to_dict()) == rows
        if not query.startswith("explain"):
            assert streamed(lake, query).num_rows == rows

    def test_parameters_and_data_that_the_program_hands_over(self, lake):
        assert lake.sql("select host from metrics where host = ?", ["a"]).to_dict() == [{"host": "a"}]
        owners = pa.table({"host": ["b"]})
        query = "select * from metrics join owners using (host)"
        assert len(lake.sql(query, tables={"owners": owners}).to_dict()) == 1
        with pytest.raises(NotFound, match="owners"):
            lake.sql(query)

    def test_explaining_and_planning(self, lake):
        assert lake.explain("select * from metrics where host = 'a'").tables[0].name == "metrics"
        for _ in range(2):
            assert lake.explain("select * from metrics", analyze=True).rows == 2
            assert lake.explain("describe metrics", analyze=True).rows == 2
        assert list(lake.plan("select * from metrics")) == ["metrics"]

    def test_scans_and_older_versions(self, lake):
        table = lake.table("metrics")
        assert table.scan(where="upper(host) = 'A' and timestamp < now()").to_arrow().num_rows == 1
        assert table.scan(where=Comparison("host", Op.EQUAL, "a")).count() == 1
        assert table.at(version=1).sql("select count(*) as n from metrics").to_dict() == [{"n": 2}]

    def test_large_local_files_are_read_as_virtual_files(self, folder, monkeypatch):
        """Outside of a sandbox DuckDB may be given the paths of such files."""
        monkeypatch.setattr(plain_paths, "_LARGE", 0)
        with windrow.connect(folder / "cold", sandbox=True, cache=None) as lake:
            assert hosts(lake) == ["a", "b"]

    def test_rows_beyond_the_memory_are_put_on_disk(self, folder):
        with windrow.connect(folder / "cold", sandbox=True, cache=None, memory_limit="60MB", threads=1) as lake:
            query = "select count(*) as n from (select range || 'abcdefghijklmnop' as s from range(1500000) order by s)"
            assert lake.sql(query).to_dict() == [{"n": 1500000}]


def test_without_a_sandbox_sql_is_duckdb_with_all_it_can_do(folder):
    with windrow.connect(folder / "cold", cache=None) as lake:
        assert lake.sql(f"select content from read_text('{folder}/secret.txt')").to_dict() == [
            {"content": "the secret"}
        ]


def test_a_condition_is_a_condition_without_a_sandbox_too(folder):
    with windrow.connect(folder / "cold", cache=None) as lake:
        for condition in CONDITIONS[:4]:
            with pytest.raises(InvalidInput):
                lake.table("metrics").scan(where=filled(condition, folder))

"""The rows of QuestDB's own tables are QuestDB's own answers, by every way in and at every saved commit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import windrow
from windrow.databases import open_database, open_table
from windrow.errors import Damaged, Incompatible, InvalidInput, NotFound
from windrow.questions.spelling import sql_name

from .read_tables import CASES, GOLDEN, WITH_ROWS, as_json, copy_case, golden_rows

STEPS = ["o3-0", "o3-1-merge", "o3-2-tail", "o3-3-nulls"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with windrow.connect(tmp_path_factory.mktemp("rows") / "lake") as opened:
        yield opened


def call(folder: Path, *more: str) -> str:
    given = ", ".join([f"'{folder}'", *(f"'{each}'" for each in more), "native := 'skip'"])
    return f"questdb({given})"


@pytest.mark.parametrize("case", WITH_ROWS)
def test_a_scan_gives_the_rows_that_questdb_gives(case, tmp_path):
    columns, rows = golden_rows(case)
    scan = open_table(copy_case(case, tmp_path), native="skip").scan()
    assert as_json(scan.to_arrow(), columns) == rows
    assert scan.count() == len(rows)


@pytest.mark.parametrize("case", WITH_ROWS)
def test_sql_gives_the_rows_that_questdb_gives(case, tmp_path, lake):
    columns, rows = golden_rows(case)
    table = copy_case(case, tmp_path)
    # DuckDB has no decimals of 76 digits.
    places = [place for place, name in enumerate(columns) if name != "d256"]
    names = [columns[place] for place in places]
    found = lake.sql(f"select {', '.join(map(sql_name, names))} from {call(table)}").to_arrow()
    schema = open_table(table, native="skip").scan(columns=names).schema
    assert as_json(found.cast(schema), names) == [[row[place] for place in places] for row in rows]


@pytest.mark.parametrize("case", ["types", "migrated-alltypes"])
def test_polars_and_duckdb_get_the_same_values(case, tmp_path):
    table = open_table(copy_case(case, tmp_path), native="skip")
    names = [name for name in table.scan().schema.names if name != "d256"]
    scan = table.scan(columns=names)
    wanted = scan.to_arrow()
    assert scan.to_polars().collect().to_arrow().cast(wanted.schema).equals(wanted)
    assert scan.to_duckdb().to_arrow_table().cast(wanted.schema).equals(wanted)


@pytest.mark.parametrize(("step", "newest"), [(old, new) for at, old in enumerate(STEPS) for new in STEPS[at:]])
def test_an_older_commit_reads_its_rows_from_files_that_grew_since(step, newest, tmp_path):
    table = copy_case(newest, tmp_path)
    for name in ("_txn", "_meta"):
        shutil.copy(GOLDEN / step / name, table)
    columns, rows = golden_rows(step)
    assert as_json(open_table(table, native="skip").scan().to_arrow(), columns) == rows


def test_a_scan_reads_the_commit_it_was_made_at(tmp_path):
    table = copy_case("o3-0", tmp_path)
    scan = open_table(table, native="skip").scan()
    for step in STEPS[1:]:
        # QuestDB appends in place.
        for partition in ("2024-02-01.1", "2024-02-02.2"):
            for name in ("data.parquet", "_pm"):
                (table / partition / name).write_bytes((GOLDEN / step / partition / name).read_bytes())
        shutil.copy(GOLDEN / step / "_txn", table)
        columns, rows = golden_rows("o3-0")
        assert as_json(scan.to_arrow(), columns) == rows


def test_a_scan_outlives_the_folders_that_it_reads(tmp_path):
    table = copy_case("o3-3-nulls", tmp_path)
    scan = open_table(table, native="skip").scan()
    shutil.rmtree(table)
    columns, rows = golden_rows("o3-3-nulls")
    assert as_json(scan.to_arrow(), columns) == rows
    assert as_json(scan.to_arrow(), columns) == rows


def test_bytes_beyond_the_committed_size_are_never_looked_at(tmp_path):
    table = copy_case("o3-1-merge", tmp_path)
    data = table / "2024-02-02.2/data.parquet"
    data.write_bytes(data.read_bytes() + b"an append that was never committed" * 100)
    columns, rows = golden_rows("o3-1-merge")
    assert as_json(open_table(table, native="skip").scan().to_arrow(), columns) == rows


class TestPruning:
    def test_only_row_groups_and_columns_that_can_matter_are_read(self, tmp_path):
        table = open_table(copy_case("o3-3-nulls", tmp_path), native="skip")
        plan = table.scan("ts >= '2024-02-02T20:00:00' and n > 0", ["n"]).plan()
        assert [(each.step, each.kept) for each in plan.steps][:2] == [
            ("Parquet partitions", 2),
            ("statistics and nulls", 1),
        ]
        assert plan.bytes < 1000

    @pytest.mark.parametrize(
        "condition", ["i = 70", "sy = 's3'", "v = 'v77'", "v is null", "d > 14.0", "u is not null"]
    )
    def test_conditions_select_what_they_select_of_all_rows(self, tmp_path, lake, condition):
        table = copy_case("blooms-0", tmp_path)
        everything = open_table(table, native="skip").scan().to_arrow()
        found = open_table(table, native="skip").scan(condition).to_arrow()
        assert found.equals(lake.sql(f"select * from plain where {condition}", tables={"plain": everything}).to_arrow())

    def test_a_bloom_filter_of_questdb_leaves_row_groups_out(self, tmp_path):
        table = open_table(copy_case("blooms-0", tmp_path), native="skip")
        assert table.scan("i > 70 and i < 72").plan().rows == 100
        assert table.scan("i = 71").plan().rows == 0
        assert table.scan("i = 70").count() == 1

    @pytest.mark.parametrize("condition", ['"by" = 0', "sh <> 0", "not b", "ch = ''", "ip is null", "l256 = ''"])
    def test_zeros_in_place_of_nulls_are_not_pruned_away(self, tmp_path, condition):
        table = open_table(copy_case("nulls", tmp_path), native="skip")
        assert table.scan(condition).count() == (0 if "<>" in condition else 12)


class TestSql:
    def test_a_table_is_named_by_its_database_or_by_its_folder(self, tmp_path, lake):
        table = copy_case("by-week", tmp_path)
        shutil.copy(GOLDEN / "tables.d.0", tmp_path)
        for source in (call(tmp_path, "weeks"), call(tmp_path, "WEEKS"), call(table)):
            assert lake.sql(f"select count(*) from {source}").to_arrow().to_pydict() == {"count_star()": [4]}

    def test_it_joins_and_nests_like_any_table(self, tmp_path, lake):
        table = call(copy_case("format-parquet", tmp_path))
        query = f"with a as (select * from {table}) select count(*) n from a join {table} b using (ts) where b.sy = 'a'"
        assert lake.sql(query).to_arrow().to_pydict() == {"n": [55]}

    def test_without_an_alias_it_has_the_name_of_the_table(self, tmp_path, lake):
        copy_case("format-parquet", tmp_path)
        found = lake.sql(f"select max(fmt.v) m from questdb('{tmp_path}', 'fmt') where fmt.sy = 'a'").to_arrow()
        assert found.to_pydict() == {"m": [27.5]}

    def test_explain_shows_the_plan(self, tmp_path, lake):
        text = str(lake.explain(f"select v from {call(copy_case('format-parquet', tmp_path))} where ts < '2024-01-02'"))
        assert "3 of 3 partitions" in text
        assert "1 of 3 row groups" in text

    def test_a_sandbox_refuses_it_as_it_refuses_files(self, tmp_path):
        table = copy_case("format-parquet", tmp_path)
        with windrow.connect(tmp_path / "lake", sandbox=True) as lake, pytest.raises(InvalidInput, match="questdb"):
            lake.sql(f"select * from questdb('{table}')")

    def test_decimals_that_duckdb_lacks_are_an_error_where_they_are_read(self, tmp_path, lake):
        table = call(copy_case("types", tmp_path))
        with pytest.raises(InvalidInput, match="d256.*DuckDB cannot hold"):
            lake.sql(f"select * from {table}")
        assert len(lake.sql(f"select * exclude (d256) from {table}").to_arrow()) == 12

    def test_queries_hold_no_files_when_they_are_done(self, tmp_path, lake):
        table = call(copy_case("format-parquet", tmp_path))
        lake.sql(f"select count(v) from {table}")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(20):
            lake.sql(f"select count(v) from {table} where v > {number}")
        assert len(list(Path("/proc/self/fd").iterdir())) <= before

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ("", "0 texts"),
            ("'a', 'b', 'c'", "3 texts"),
            ("?", "is no text"),
            ("'a', natve := 'skip'", "'natve' is unknown"),
            ("'a', recover := 'yes'", "is no value"),
            ("'/nowhere', 't'", "no such folder"),
            ("'/nowhere'", "no folder of a QuestDB table"),
        ],
    )
    def test_a_call_that_cannot_be_meant_says_why(self, lake, arguments, problem):
        with pytest.raises((InvalidInput, NotFound), match=problem):
            lake.sql(f"select * from questdb({arguments})")


class TestWideDecimals:
    def test_arrow_has_them_exactly(self, tmp_path):
        found = open_table(copy_case("types", tmp_path), native="skip").scan(columns=["d256"]).to_arrow()
        assert found.schema.field("d256").type == pa.decimal256(76, 10)
        columns, rows = golden_rows("types")
        assert as_json(found, ["d256"]) == [[row[columns.index("d256")]] for row in rows]

    @pytest.mark.parametrize("engine", ["to_polars", "to_duckdb"])
    def test_engines_without_such_a_type_refuse_them_by_name(self, tmp_path, engine):
        scan = open_table(copy_case("types", tmp_path), native="skip").scan(columns=["i", "d256"])
        with pytest.raises(InvalidInput, match="'d256' is decimal256"):
            getattr(scan, engine)()

    def test_a_condition_on_them_is_refused(self, tmp_path):
        with pytest.raises(InvalidInput, match="condition names 'd256'"):
            open_table(copy_case("types", tmp_path), native="skip").scan("d256 = '1'", ["i"])


class TestDatabases:
    def test_tables_are_those_of_the_registry_and_of_folders(self, tmp_path):
        for case in ("types", "by-week", "crash-stale-tail"):
            copy_case(case, tmp_path)
        shutil.copy(GOLDEN / "tables.d.0", tmp_path)
        (tmp_path / "dropped~99").mkdir()
        database = open_database(tmp_path)
        assert {each.name: each.folder for each in database.tables()} == {
            "types": "types~7",
            "weeks": "by_week~16",
            "cn": "cn",
        }
        with pytest.raises(NotFound, match="did you mean 'weeks'"):
            database.table("week")

    def test_the_root_of_a_server_will_do(self, tmp_path):
        (tmp_path / "db").mkdir()
        copy_case("by-week", tmp_path / "db")
        shutil.copy(GOLDEN / "tables.d.0", tmp_path / "db")
        assert open_database(tmp_path).table("weeks").name == "weeks"

    def test_native_partitions_are_refused_by_name(self, tmp_path):
        with pytest.raises(Incompatible, match=r"2024-01-02.*native.*CONVERT PARTITION TO PARQUET LIST '2024-01-02'"):
            open_table(copy_case("types", tmp_path)).scan()
        with pytest.raises(InvalidInput, match="native='keep'"):
            open_table(copy_case("types", tmp_path), native="keep").snapshot()

    def test_a_snapshot_says_what_it_is_made_of(self, tmp_path):
        snapshot = open_table(copy_case("o3-1-merge", tmp_path), native="skip").snapshot()
        assert [(each.folder, each.rows, each.identity.size) for each in snapshot.partitions] == [
            (each["folder"], each["rows"], each["value"])
            for each in CASES["o3-1-merge"]["partitions"]
            if each["parquet"]
        ]
        assert (snapshot.skipped, snapshot.rows, snapshot.txn.version) == (
            ("2024-02-03",),
            579,
            CASES["o3-1-merge"]["txn"]["version"],
        )


def test_a_table_that_a_killed_questdb_left_says_what_to_do(tmp_path):
    table = copy_case("crash-stale-tail", tmp_path)
    for partition in CASES["crash-stale-tail"]["partitions"]:
        folder = table / partition["folder"]
        tail = (folder / "data.parquet.last-8192-bytes").read_bytes()
        (folder / "data.parquet").write_bytes(bytes(partition["data_parquet_length"] - len(tail)) + tail)
    with pytest.raises(Damaged, match=r"795641 bytes.*795555 bytes and has all 8836 rows.*killed.*recover=True"):
        open_table(table, native="skip").scan()
    recovered = open_table(table, native="skip", recover=True).snapshot()
    assert [(each.rows, each.identity.size) for each in recovered.partitions] == [
        (each["rows"], each["pm_newest_parquet_size"]) for each in CASES["crash-stale-tail"]["partitions"]
    ]

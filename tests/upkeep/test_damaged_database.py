"""A damaged metastore never passes as sound, and the way to make it again is named."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.proofs.worlds import compact, points, visible

import windrow
from windrow.errors import Damaged, Incompatible, WindrowError


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A lake that is closed."""
    folder = tmp_path_factory.mktemp("made")
    with windrow.connect(folder) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        for number in range(4):
            table.ingest(points(number, host="abcd"[number]))
        compact(table, visible(table)[:2])
    return folder


@pytest.fixture
def path(made, tmp_path):
    """The database of a copy of it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True, copy_function=shutil.copy2)
    return tmp_path / "windrow.db"


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as database, database:
        assert database.execute(statement, values).rowcount > 0


def checked(path, **options):
    with windrow.connect(path.parent, create=False) as lake:
        return lake.table("events").upkeep.check(**options)


def problems(path, **options):
    """Return what a check reports, or the error that names the damage before the check can begin."""
    try:
        return [finding.problem for finding in checked(path, **options).findings]
    except (Damaged, Incompatible) as error:
        return [str(error)]


@pytest.mark.parametrize("left", [0.25, 0.5, 0.75, 0.95])
def test_a_truncated_database_is_damaged(path, left):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * left)])
    found = problems(path, repair=True)
    assert found
    assert all("windrow check --repair" in problem for problem in found)


def test_a_file_that_is_no_database_any_more_names_the_way_back(path):
    path.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:])
    with pytest.raises(WindrowError, match="windrow check --repair"):
        checked(path)


def test_a_damaged_database_can_be_moved_away_and_made_again(path):
    path.write_bytes(path.read_bytes()[:20000])
    with pytest.raises(WindrowError):
        checked(path)
    path.rename(path.with_suffix(".damaged"))
    with windrow.connect(path.parent, accept="repair") as lake:
        assert lake.rebuild_table("events").rows == 4
        assert lake.table("events").upkeep.check(data=True).sound
        assert len(lake.sql("select * from events")) == 4
    assert DeltaTable(path.parent / "events").to_pyarrow_table().num_rows == 4


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("windrow_tables", "settings", "{"),
        ("windrow_tables", "settings", "{}"),
        ("windrow_tables", "settings", "[1]"),
        ("windrow_splits", "zones", '[["string"'),
        ("windrow_splits", "zones", '[["text","a","string","a",0,null],["i64",1,"i64",1,0,null]]'),
        ("windrow_splits", "zones", "7"),
        ("windrow_splits", "replaces", "{"),
        ("windrow_columns", "arrow", "AAAA"),
        ("windrow_columns", "arrow", "?"),
        ("windrow_commits", "kind", "ingesu"),
        ("windrow_commits", "state", "publishes"),
        ("windrow_commits", "summary", "{"),
        ("windrow_scopes", "window_duration", 7),
        ("windrow_scopes", "sort_schema", "host"),
    ],
)
def test_a_value_that_cannot_be_read_is_damage_with_a_place(path, table, column, value):
    change(path, f"update {table} set {column} = ?", value)
    found = problems(path, data=True, repair=True)
    assert any(table in problem and column in problem for problem in found) or problems(path, data=True)
    # Whatever else reads it raises nothing but errors of Windrow's.
    with suppress(WindrowError), windrow.connect(path.parent, create=False) as lake:
        lake.sql("select * from events where host = 'a'")
    with suppress(WindrowError), windrow.connect(path.parent, create=False) as lake:
        list(lake.table("events").inspect.commits())


@pytest.mark.parametrize(
    "statement",
    [
        "update windrow_tables set version = version - 1",
        "update windrow_tables set version = version + 3",
        "update windrow_tables set oldest_version = version + 1",
        "update windrow_tables set oldest_version = oldest_version + 1",
        "update windrow_tables set settings = replace(settings, '900', '300')",
        "update windrow_tables set checksum = 'x'",
        "update windrow_tables set schema_epoch = 3",
        "update windrow_tables set created_at = created_at + 1000000",
        "update windrow_splits set row_count = row_count + 1 where removed_version is null",
        "update windrow_splits set size_bytes = size_bytes + 1 where removed_version is null",
        "update windrow_splits set added_version = added_version + 1 where removed_version is null",
        "update windrow_splits set removed_version = null",
        "update windrow_splits set removed_version = 3 where removed_version is null",
        "update windrow_splits set table_key = 77",
        "update windrow_splits set scope_key = 77",
        "update windrow_splits set data_key = replace(data_key, 'partition_id=0', 'partition_id=1')",
        "update windrow_splits set data_key = cast(data_key as blob)",
        "update windrow_splits set time_max = time_max + 1 where removed_version is null",
        "update windrow_splits set window_start = window_start + 900 where removed_version is null",
        "update windrow_splits set generation = 9",
        "update windrow_splits set etag = 'x'",
        "update windrow_splits set sidecar_key = replace(sidecar_key, '=1', '=\x02') where removed_version is not null",
        "update windrow_splits set zones = replace(zones, '\"c\"', '\"z\"')",
        "update windrow_splits set commit_id = 'x'",
        "delete from windrow_splits where removed_version is null",
        "delete from windrow_commits where version = 3",
        "update windrow_commits set version = version + 20",
        "update windrow_commits set published_at = published_at + 1000000",
        "update windrow_commits set added = added + 1",
        "update windrow_commits set rows_added = 99",
        "update windrow_columns set type = 'string' where name = 'value'",
        "update windrow_columns set since_version = 99",
        "update windrow_columns set since_version = null where name = 'value'",
        "update windrow_columns set name = 'valuf' where name = 'value'",
        "update windrow_columns set field_id = field_id + 100",
        "update windrow_scopes set partition_id = 7",
        "update windrow_scopes set source_id = 'x'",
        "insert into windrow_attributes select table_key, 'x', 1 from windrow_tables",
    ],
)
def test_a_value_that_was_changed_contradicts_another(path, statement):
    change(path, statement)
    contents = {entry: entry.read_bytes() for entry in (path.parent / "events/_delta_log").iterdir()}
    assert problems(path, data=True, repair=True)
    # What the log knows is the way back; a damaged metastore must not be written into it.
    assert {entry: entry.read_bytes() for entry in (path.parent / "events/_delta_log").iterdir()} == contents


def test_an_index_that_lacks_a_row_is_found(path):
    """A listing goes by the index, and would leave the split out."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("pragma writable_schema = on")
        (sql,) = database.execute("select sql from sqlite_master where name = 'windrow_splits_by_window'").fetchone()
        database.execute("delete from sqlite_master where name = 'windrow_splits_by_window'")
    change(path, "update windrow_splits set window_start = window_start + 900")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("pragma writable_schema = on")
        root = database.execute("select max(rootpage) from sqlite_master").fetchone()[0]
        values = ("index", "windrow_splits_by_window", "windrow_splits", root, sql)
        database.execute("insert into sqlite_master values (?, ?, ?, ?, ?)", values)
    assert "windrow check --repair" in problems(path)[0]


def test_nothing_is_collected_by_a_row_that_was_changed(path):
    change(path, "update windrow_tables set oldest_version = version")
    with windrow.connect(path.parent, create=False) as lake, pytest.raises(Damaged, match="windrow_tables"):
        lake.table("events").upkeep.gc.run(grace=0)


def test_settings_that_are_changed_on_purpose_are_sound(path):
    with windrow.connect(path.parent, create=False) as lake:
        lake.table("events").change.run(window="5m")
        assert lake.table("events").upkeep.check().sound
        lake.table("events").upkeep.gc.run(grace=0)
        assert lake.table("events").upkeep.check().sound


def test_a_row_that_was_written_without_a_checksum_is_sound(path):
    change(path, "update windrow_tables set checksum = null")
    assert checked(path).sound


def test_a_schema_whose_keys_fit_no_table_any_more_names_the_way_back(path):
    old, new = "REFERENCES windrow_tables (table_key)", "REFERENCES windrow_tables (table_kex)"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = 'windrow_runs' AND sql LIKE ?"
        assert connection.execute(changed, (old, new, f"%{old}%")).rowcount == 1
    with pytest.raises(Damaged, match=r"foreign key mismatch.*windrow check --repair"):
        checked(path)


def test_a_map_whose_entries_have_names_of_their_own_is_sound(tmp_path):
    kind = pa.map_(pa.string(), pa.field("tag", pa.string()))
    rows = {"host": ["a"], "timestamp": pa.array([0], pa.timestamp("us")), "tags": pa.array([[("a", "b")]], kind)}
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        table.ingest(pa.table(rows))
        assert table.upkeep.check().findings == ()

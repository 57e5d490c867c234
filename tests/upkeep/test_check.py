"""A check finds whatever was damaged, says where, and puts right what can be."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.proofs.worlds import compact, points, visible

import windrow
from windrow.upkeep.check_split import check_split


@pytest.fixture
def table(lake):
    table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
    table.ingest(points(0, 1, None))
    table.ingest(points(2, 20))
    return table


def kinds(result):
    return [finding.kind for finding in result.findings]


@pytest.mark.parametrize("data", [False, True])
def test_a_table_as_it_was_written_is_sound(world, table, data):
    compact(table, [split for split in visible(table) if split.time_min == visible(table)[1].time_min][:1])
    result = table.upkeep.check(data=data)
    assert result.sound, result.findings
    assert (result.splits, result.rows, result.version) == (4, 5, 3)
    assert table.context.metastore.pins(table.record().table_id) == []


def test_a_table_of_which_statistics_were_learnt_is_sound(table):
    assert table.upkeep.analyze().columns
    result = table.upkeep.check(data=True)
    assert result.sound, result.findings


def test_a_missing_file_is_found_and_cannot_be_repaired(world, table):
    gone = visible(table)[0].key
    world.store.delete(gone)
    result = table.upkeep.check(repair=True)
    assert [(each.kind, each.place, each.repairable) for each in result.findings] == [("file", gone, False)]
    assert "its rows are lost unless a backup has it" in result.findings[0].problem


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "another's"])
def test_a_sidecar_is_made_again(world, table, damage):
    one, other = visible(table)[:2]
    stored = world.store.get(one.sidecar.key)
    if damage == "gone":
        world.store.delete(one.sidecar.key)
    else:
        broken = {
            "cut": stored[:-9],
            "flipped": stored[:200] + bytes([stored[200] ^ 255]) + stored[201:],
            "another's": world.store.get(other.sidecar.key).ljust(len(stored), b"\0")[: len(stored)],
        }
        world.store.put(one.sidecar.key, broken[damage])
    looked = table.upkeep.check()
    assert set(kinds(looked)) == {"sidecar"}
    mended = table.upkeep.check(repair=True)
    assert mended.sound
    assert mended.repaired
    assert table.upkeep.check(data=True).sound


def test_a_file_that_is_another_splits_is_found(world, table):
    one, other = visible(table)[:2]
    world.store.put(one.key, world.store.get(other.key))
    said = [finding.problem for finding in table.upkeep.check().findings if finding.kind == "footer"]
    assert f"says split_id {other.split_id!r}, the metastore {one.split_id!r}" in said
    assert any(problem.startswith("says schema_column_max_values") for problem in said)


def test_rows_that_were_changed_are_found_by_data_alone(world, table):
    split = next(each for each in visible(table) if each.row_count == 2)
    rows = pq.ParquetFile(pa.BufferReader(world.store.get(split.key))).read()
    turned = rows.take([1, 0]).replace_schema_metadata(rows.schema.metadata)
    sink = pa.BufferOutputStream()
    sorting = [pq.SortingColumn(0), pq.SortingColumn(1, descending=True, nulls_first=True)]
    pq.write_table(turned, sink, sorting_columns=sorting)
    world.store.put(split.key, sink.getvalue().to_pybytes())
    found = check_split(world.store, replace(split, sidecar=None), table.settings(), data=True)
    assert "SS-1" in [each.kind for each in found]


def test_a_mirror_that_is_behind_or_torn_catches_up(world, table):
    key = "events/_delta_log/00000000000000000002.json"
    for broken in (b"", b'{"commitInfo": {"wind'):
        world.store.put(key, broken)
        assert kinds(table.upkeep.check()) == ["mirror"]
        assert table.upkeep.check(repair=True).sound
        assert table.upkeep.check().sound
    world.store.delete(key)
    assert "shows version 1, not 2" in table.upkeep.check().findings[0].problem
    assert table.upkeep.check(repair=True).sound
    assert table.upkeep.check().sound


def test_a_mirror_that_shows_other_files_is_found(world, table):
    key = "events/_delta_log/00000000000000000002.json"
    lines = world.store.get(key).splitlines(keepends=True)
    world.store.put(key, b"".join(line for line in lines if b'"add"' not in line))
    assert set(kinds(table.upkeep.check())) == {"mirror"}


def test_registered_files_are_checked_where_they_lie(tmp_path):
    pq.write_table(points(0, 1), tmp_path / "raw.parquet")
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        table.register.run(tmp_path / "raw.parquet")
        assert table.upkeep.check(data=True).sound
        pq.write_table(points(0, 1, 2), tmp_path / "raw.parquet")
        assert {"file", "footer"} <= set(kinds(table.upkeep.check()))
        (tmp_path / "raw.parquet").unlink()
        assert kinds(table.upkeep.check()) == ["file"]


def test_columns_of_an_older_table_that_differ_by_case_alone_are_found(tmp_path):
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", mirror=False)
        table.ingest(points(0, 1))
    with sqlite3.connect(tmp_path / "lake" / "windrow.db") as database:
        copied = "table_key, schema_epoch, 'HOST', 99, type, arrow, since_version"
        names = "table_key, schema_epoch, name, field_id, type, arrow, since_version"
        database.execute(
            f"insert into windrow_columns ({names}) select {copied} from windrow_columns where name = 'host'"
        )
    database.close()
    with windrow.connect(tmp_path / "lake") as lake:
        found = lake.table("events").upkeep.check().findings
    assert [each.problem for each in found] == ["columns 'host' and 'HOST' differ by case alone, rename one of them"]


@pytest.mark.parametrize("data", [False, True])
def test_points_without_a_value_that_an_older_version_wrote_are_found(tmp_path, monkeypatch, data):
    monkeypatch.setattr("windrow.ingest.write_task.required_columns", lambda _: ())
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("metrics", sort="metric_name|timestamp/V2")
        rows = points(0, 1, 2).drop_columns(["value"])
        table.ingest(rows.append_column("metric_name", [["m"] * 3]).append_column("value", [[1.0, None, None]]))
        (found,) = table.upkeep.check(data=data).findings
    assert (found.kind, found.problem) == ("DM-1", "column 'value' is null in 2 of 3 rows")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_finds_the_same(tmp_path, spark):
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        table.ingest(points(*range(0, 200, 10)))
        assert table.upkeep.check(data=True, spark=spark).sound
        gone = [split.key for split in visible(table)][::3]
        for key in gone:
            lake.context.store.delete(key)
        result = table.upkeep.check(spark=spark)
        assert sorted(each.place for each in result.findings) == sorted(gone)
        assert set(result.findings) == set(table.upkeep.check().findings)

"""What others read of a table through Delta is what Windrow reads, at every version."""

from __future__ import annotations

import itertools
import json
import operator
import random
from datetime import UTC, datetime

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from tests.proofs.worlds import compact, points, rows_of, visible

from windrow.mirror.follow import CHECKPOINT_EVERY
from windrow.mirror.log import Log

FOLDERS = ("partition_id", "window_start")


def folder(lake, table):
    return str(lake.context.store.root / table.name)


def delta_rows(lake, table, version):
    found = DeltaTable(folder(lake, table), version=version).to_pyarrow_table()
    return rows_of([found.drop_columns([name for name in FOLDERS if name in found.column_names])])


def windrow_rows(lake, table, version):
    keys = [split.key for split in visible(table.at(version=version))]
    return rows_of(pq.read_table(lake.context.store.path(key), partitioning=None) for key in keys)


def test_every_version_is_a_delta_version_of_the_same_number(lake, table):
    table.ingest(points(0, 1, None))
    table.ingest(points(2, 20))
    compact(
        table, [split for split in visible(table) if split.time_min and split.time_min % 3600_000_000 < 900_000_000]
    )
    table.upkeep.expire.run(retention=60)
    assert DeltaTable(folder(lake, table)).version() == table.version() == 4
    for version in range(5):
        delta = DeltaTable(folder(lake, table), version=version)
        assert delta.transaction_version(f"windrow.{table.record().table_id}") == version
        shown = {str(lake.context.store.path(split.key)) for split in visible(table.at(version=version))}
        assert set(delta.file_uris()) == shown
        assert delta_rows(lake, table, version) == windrow_rows(lake, table, version)


def test_other_readers_equal_ours_at_a_hundred_versions_of_ingest_and_compaction(lake, table):
    """deltalake (two ways), Polars, and pyarrow over the mirror's own list of files."""
    draw = random.Random(7)
    while table.version() < CHECKPOINT_EVERY + 5:
        splits = [split for split in visible(table) if not split.window.overflow]
        if len(splits) > 4 and draw.random() < 0.3:
            first = draw.choice(splits)
            same = [split for split in splits if split.window == first.window and split.scope == first.scope]
            compact(table, same[:4])
        else:
            minutes = [draw.choice((None, draw.randrange(45))) for _ in range(draw.randrange(1, 4))]
            table.ingest(points(*minutes, host=draw.choice("abc")))
    place, newest = folder(lake, table), table.version()
    assert (lake.context.store.root / "events/_delta_log/_last_checkpoint").exists()
    for version in draw.sample(range(1, newest + 1), 100):
        expected = windrow_rows(lake, table, version)
        delta = DeltaTable(place, version=version)
        assert rows_of(pq.read_table(uri, partitioning=None) for uri in delta.file_uris()) == expected
        if version % 5 == 0:
            assert delta_rows(lake, table, version) == expected
            found = pl.read_delta(place, version=version).drop(FOLDERS)
            assert rows_of([found.to_arrow()]) == expected
            answer = QueryBuilder().register("t", delta).execute("select host, timestamp, value from t").read_all()
            assert rows_of([pa.table(answer)]) == expected


def test_bounds_of_files_lose_no_row(lake, table):
    """Readers pass files by because of our statistics; the rows that are left are those of a whole read."""
    draw, names = random.Random(3), ["a", "b", "ü" * 90, "z\U0001f600"]
    for _ in range(6):
        table.ingest(points(*(draw.randrange(60) for _ in range(5)), host=draw.choice(names)))
    everything, delta = pl.read_delta(folder(lake, table)), DeltaTable(folder(lake, table))
    operators = {"=": operator.eq, ">=": operator.ge, "<": operator.lt}
    for _ in range(8):
        for name, (sign, holds) in itertools.product(("host", "timestamp"), operators.items()):
            value = draw.choice(everything[name].to_list())
            kept = everything.filter(holds(everything[name], value))
            assert delta.to_pyarrow_table(filters=[(name, sign, value)]).num_rows == kept.height


def test_statistics_are_written(lake, table):
    table.ingest(points(0, 1))
    (row,) = pl.from_arrow(pa.table(DeltaTable(folder(lake, table)).get_add_actions(flatten=True))).to_dicts()
    assert (row["num_records"], row["min.host"], row["max.host"], row["null_count.host"]) == (2, "a", "a", 0)
    assert row["min.timestamp"] == datetime(2023, 11, 14, 12, tzinfo=UTC)
    assert row["max.timestamp"] == datetime(2023, 11, 14, 12, 1, tzinfo=UTC)


def test_columns_come_and_widen(lake, table):
    table.ingest(points(0).append_column("n", pa.array([1], pa.int32())))
    table.ingest(points(1).append_column("n", pa.array([2**40], pa.int64())))
    table.ingest(points(2).append_column("tags", pa.array([{"k": "v"}], pa.map_(pa.string(), pa.string()))))
    for version in (2, 3):
        assert delta_rows(lake, table, version) == windrow_rows(lake, table, version)
    assert "tags" not in pl.read_delta(folder(lake, table), version=2).columns


def test_a_column_may_be_named_like_a_folder(lake, table):
    table.ingest(points(0))
    table.ingest(points(1).append_column("window_start", pa.array(["mine"])))
    # Polars takes the names of folders for columns whatever Delta says, so it cannot read such a table.
    found = DeltaTable(folder(lake, table)).to_pyarrow_table().sort_by("timestamp")
    assert found["window_start"].to_pylist() == [None, "mine"]
    assert DeltaTable(folder(lake, table)).metadata().partition_columns == ["partition_id"]


def test_types_that_delta_has_not_are_left_out(lake, table):
    table.ingest(points(0).append_column("took", pa.array([1], pa.duration("us"))))
    assert "took" not in pl.read_delta(folder(lake, table)).columns
    assert len(pl.read_delta(folder(lake, table))) == 1


def test_a_registered_file_is_read_where_it_lies(lake, table, tmp_path):
    pq.write_table(points(0, 1), tmp_path / "raw.parquet")
    table.register.run(tmp_path / "raw.parquet")
    (added,) = Log(lake.context.store, "events").entry(1).of("add")
    assert (added["path"], added["partitionValues"]["window_start"]) == ((tmp_path / "raw.parquet").as_uri(), None)


def test_without_the_setting_there_is_no_mirror(lake):
    table = lake.create_table("plain", sort="host|timestamp/V2", mirror=False)
    table.ingest(points(0))
    assert not (lake.context.store.root / "plain/_delta_log").exists()
    table.change.run(mirror=True)
    table.ingest(points(1))
    assert delta_rows(lake, table, 2) == windrow_rows(lake, table, 2)


def test_the_log_says_enough_to_make_the_table_again(lake, table):
    table.ingest(points(0))
    said = DeltaTable(folder(lake, table)).metadata().configuration
    assert json.loads(said["windrow.settings"]) == table.settings().to_dict()
    assert said["windrow.table_id"] == table.record().table_id
    assert {name for name, _, _ in json.loads(said["windrow.columns"])} == {"host", "timestamp", "value"}


@pytest.mark.parametrize("value", ["maybe", 1, None])
def test_the_setting_is_true_or_false(lake, value):
    with pytest.raises(ValueError, match="mirror: expected true or false"):
        lake.create_table("plain", sort="host|timestamp/V2", mirror=value)

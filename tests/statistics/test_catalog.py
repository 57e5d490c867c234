"""Catalogs unite what processes learn, and nothing that is damaged, stale or torn is ever read."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.statistics.files import layout_of, learnt

from windrow.errors import NotFound, StorageError
from windrow.metastore import SqlMetastore
from windrow.statistics.catalog import FolderCatalog, TableCatalog
from windrow.statistics.encoding import encode
from windrow.testing.metastore_cases.samples import TABLE, a_split, a_table, add

ROWS = [10] * 8
LAYOUT = layout_of(ROWS)
COLUMN = pa.array(range(80))


def table_catalog(folder: Path) -> TableCatalog:
    metastore = SqlMetastore(f"sqlite:///{folder}/windrow.db")
    if not metastore.tables():
        a_table(metastore)
        add(metastore, "c1", a_split("split-1", "c1"))
    return TableCatalog(metastore, TABLE)


def folder_catalog(folder: Path) -> FolderCatalog:
    return FolderCatalog(folder / "statistics")


@pytest.fixture(params=[table_catalog, folder_catalog], ids=["table", "folder"])
def open_catalog(request, tmp_path):
    return lambda: request.param(tmp_path)


def known(catalog, layout=LAYOUT, name: str = "x"):
    return catalog.load([layout.file], [name]).get(layout.key, {}).get(name)


class TestWhatIsStored:
    def test_it_is_found_by_file_and_column(self, open_catalog):
        x, y = learnt(COLUMN, ROWS), learnt(COLUMN.cast(pa.string()), ROWS)
        open_catalog().store({"x": x, "y": y})
        found = open_catalog().load([LAYOUT.file, layout_of([5], "another").file], ["x", "y", "z"])
        assert {name: encode(summary) for name, summary in found["split-1"].items()} == {"x": encode(x), "y": encode(y)}
        assert list(found) == ["split-1"]
        assert open_catalog().load([LAYOUT.file], []) == {}

    def test_it_grows_query_by_query(self, open_catalog):
        for row_group in (3, 0, 5):
            catalog = open_catalog()
            before = known(catalog)
            grown = learnt(COLUMN, ROWS, only={row_group}, known=None if before is None else {"x": before})
            catalog.store({"x": grown})
        assert np.flatnonzero(known(open_catalog()).covered).tolist() == [0, 3, 5]
        assert round(known(open_catalog()).sketch.estimate) == 30

    def test_what_others_learnt_meanwhile_is_united(self, open_catalog):
        open_catalog().store({"x": learnt(COLUMN, ROWS, only={1, 2})})
        open_catalog().store({"x": learnt(COLUMN, ROWS, only={2, 6})})
        assert np.flatnonzero(known(open_catalog()).covered).tolist() == [1, 2, 6]

    def test_a_column_that_changed_its_type_begins_anew(self, open_catalog):
        open_catalog().store({"x": learnt(COLUMN, ROWS)})
        open_catalog().store({"x": learnt(COLUMN.cast(pa.string()), ROWS, only={0})})
        assert known(open_catalog()).type == pa.string()
        assert known(open_catalog()).covered.sum() == 1

    def test_another_content_of_the_file_has_no_statistics(self, open_catalog):
        open_catalog().store({"x": learnt(COLUMN, ROWS)})
        changed = layout_of(ROWS, identity="1001 bytes")
        assert known(open_catalog(), changed) is None
        open_catalog().store({"x": learnt(COLUMN, ROWS, layout=changed, only={0})})
        assert known(open_catalog(), changed).covered.sum() == 1

    def test_other_row_groups_begin_anew(self, open_catalog):
        open_catalog().store({"x": learnt(COLUMN, ROWS)})
        halves = layout_of([40, 40])
        open_catalog().store(
            {"x": learnt(COLUMN, [40, 40], layout=halves, only={0}, known={"x": known(open_catalog())})}
        )
        assert known(open_catalog()).layout == halves
        assert known(open_catalog()).covered.tolist() == [True, False]

    def test_nothing_to_store_is_fine(self, open_catalog):
        open_catalog().store({})
        assert known(open_catalog()) is None


def learn(open_one, folder, row_groups, rounds):
    """A process that learns row groups one by one."""
    catalog = open_one(folder)
    for at in range(rounds):
        for row_group in row_groups:
            catalog.store({f"x{at}": learnt(COLUMN, ROWS, name=f"x{at}", only={row_group})})


@pytest.mark.parametrize("open_one", [table_catalog, folder_catalog], ids=["table", "folder"])
class TestProcesses:
    def test_what_they_learn_at_once_is_united(self, open_one, tmp_path):
        open_one(tmp_path)
        spawn = multiprocessing.get_context("spawn")
        shares = ([0, 2, 4, 6], [1, 3, 4, 5, 7])
        processes = [spawn.Process(target=learn, args=(open_one, tmp_path, share, 2)) for share in shares]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode == 0
        found = open_one(tmp_path).load([LAYOUT.file], [f"x{at}" for at in range(2)])["split-1"]
        assert all(summary.is_complete and round(summary.sketch.estimate) == 80 for summary in found.values())
        assert len(found) == 2

    def test_one_that_is_killed_leaves_the_old_or_the_new(self, open_one, tmp_path):
        open_one(tmp_path).store({"x0": learnt(COLUMN, ROWS, name="x0", only={7})})
        process = multiprocessing.get_context("spawn").Process(target=learn, args=(open_one, tmp_path, range(7), 1000))
        process.start()
        ends = time.monotonic() + 60
        while "x3" not in open_one(tmp_path).load([LAYOUT.file], ["x3"]).get("split-1", {}) and time.monotonic() < ends:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.join(60)
        found = open_one(tmp_path).load([LAYOUT.file], ["x0", "x1"])["split-1"]
        assert found["x0"].is_complete
        assert found["x1"].covered.tolist() == [True] * 7 + [False]
        open_one(tmp_path).store({"x1": learnt(COLUMN, ROWS, only={7})})
        assert known(open_one(tmp_path), name="x1").is_complete


class TestDamage:
    def test_a_damaged_row_counts_as_nothing_and_is_replaced(self, tmp_path):
        table_catalog(tmp_path).store({"x": learnt(COLUMN, ROWS)})
        with sqlite3.connect(tmp_path / "windrow.db") as connection:
            connection.execute("update windrow_statistics set data = x'00'")
        assert known(table_catalog(tmp_path)) is None
        table_catalog(tmp_path).store({"x": learnt(COLUMN, ROWS, only={0})})
        assert known(table_catalog(tmp_path)).covered.sum() == 1

    def test_a_damaged_file_counts_as_nothing_and_is_replaced(self, tmp_path):
        folder_catalog(tmp_path).store({"x": learnt(COLUMN, ROWS)})
        for path in (tmp_path / "statistics").glob("*.cache"):
            path.write_bytes(path.read_bytes()[:-3] + b"\0\0\0")
        assert known(folder_catalog(tmp_path)) is None
        folder_catalog(tmp_path).store({"x": learnt(COLUMN, ROWS, only={0})})
        assert known(folder_catalog(tmp_path)).covered.sum() == 1

    def test_a_table_that_is_gone_has_no_statistics(self, tmp_path):
        catalog = TableCatalog(SqlMetastore(f"sqlite:///{tmp_path}/windrow.db"), "no such table")
        assert known(catalog) is None
        with pytest.raises(NotFound):
            catalog.store({"x": learnt(COLUMN, ROWS)})

    def test_a_folder_that_cannot_be_written_has_no_statistics(self, tmp_path):
        (tmp_path / "file").write_text("")
        catalog = FolderCatalog(tmp_path / "file" / "statistics")
        with pytest.raises(StorageError, match="name of a file"):
            catalog.store({"x": learnt(COLUMN, ROWS)})
        assert known(catalog) is None

    def test_what_is_not_there_leaves_no_file(self, tmp_path):
        assert known(folder_catalog(tmp_path)) is None
        assert not (tmp_path / "statistics").exists()

    def test_statistics_of_splits_that_are_gone_are_not_stored(self, tmp_path):
        catalog = table_catalog(tmp_path)
        catalog.store({"x": learnt(COLUMN, ROWS, layout=layout_of(ROWS, "gone"))})
        assert known(catalog, layout_of(ROWS, "gone")) is None


def test_the_folder_stays_within_its_budget(tmp_path):
    catalog = FolderCatalog(tmp_path, 20_000)
    for number in range(50):
        column = pa.array(np.random.default_rng(number).random(80))
        catalog.store({"x": learnt(column, ROWS, layout=layout_of(ROWS, f"file {number}"))})
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 24_000

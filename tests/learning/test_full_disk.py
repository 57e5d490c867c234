"""Statistics for which the disk has no room: queries answer as before, and nothing that was half written is believed.

The disk is a small file system in memory, for which the tests have to be root on Linux.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.learning.lakes import PLENTY, assert_alike, expected, learning_lake, learnt, settle, some_rows

import windrow
from windrow.cache import CacheSettings
from windrow.cli.main import run
from windrow.errors import MetastoreError, StorageError

ROWS, GROUP = 30_000, 6_000
NAMES = ["n", "few", "many", "text", "long", "part"]
QUERIES = [
    "select sum(n) as n, max(text) as t, count(long) as l, sum(many) as m, min(part) as p from {} where few <> 3",
    "select few, count(*) as n, max(long) as l from {} group by few order by few",
    "select count(distinct text) as t from {}",
]


@pytest.fixture
def disk(tmp_path):
    """A file system of 24 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if not mount or subprocess.run([mount, "-t", "tmpfs", "-o", "size=24m", "windrow", folder], check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def filled_up(disk, left=0):
    """All but so many bytes of a disk are taken, while the block lasts."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (2**16, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    os.truncate(ballast, ballast.stat().st_size - left)
    try:
        yield
    finally:
        ballast.unlink()


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "x.parquet"
    pq.write_table(some_rows(ROWS), place, row_group_size=GROUP)
    return place


@pytest.fixture
def table(disk):
    """A lake on the disk, with a table of which nothing is learnt yet."""
    times = pa.array(np.arange(ROWS) * 100_000, pa.timestamp("us", "UTC"))
    with learning_lake(disk, statistics=0) as lake:
        rows = some_rows(ROWS).append_column("timestamp", times)
        lake.create_table("t", sort="few|timestamp/V2", window="60m").ingest(rows)
    return "t"


def answers(lake, name):
    return [lake.sql(query.format(name)).to_dict() for query in QUERIES]


def cached_on(disk, folder, statistics=PLENTY):
    """A lake in a folder, whose cache is on the disk."""
    return windrow.connect(folder / "lake", cache=CacheSettings(folder=disk / "cache"), statistics=statistics)


def learnt_rows(lake):
    return {row.column: row.learnt_rows for row in lake.table("t").inspect.statistics()}


# So little that nothing fits, that a part of what is written fits, and that some columns fit and others do not.
LEFT = [0, 8 * 2**10, 64 * 2**10]


@pytest.mark.parametrize("left", LEFT)
def test_a_metastore_without_room_for_statistics_answers_as_before(disk, table, left):
    with learning_lake(disk, statistics=0) as lake:
        before = answers(lake, table)
    with learning_lake(disk) as lake:
        with filled_up(disk, left):
            for _ in range(2):
                assert answers(lake, table) == before
                settle(lake)
            assert set(learnt_rows(lake).values()) <= {0, ROWS}
        # What was learnt meanwhile waited for room.
        assert answers(lake, table) == before
        settle(lake)
        assert {learnt_rows(lake)[name] for name in NAMES} == {ROWS}
        assert answers(lake, table) == before
        assert lake.table(table).upkeep.check(data=True).sound


@pytest.mark.parametrize("left", LEFT)
def test_a_cache_folder_without_room_for_statistics_answers_as_before(disk, path, left, tmp_path):
    place = f"'{path}'"
    with learning_lake(tmp_path, statistics=0) as lake:
        before = answers(lake, place)
    with filled_up(disk, left), cached_on(disk, tmp_path) as lake:
        for _ in range(2):
            assert answers(lake, place) == before
            settle(lake)
    with cached_on(disk, tmp_path, statistics=0) as lake:
        assert answers(lake, place) == before
        for name, summary in learnt(lake, path, NAMES).items():
            assert_alike(summary, expected(path, summary.layout.file, [name])[name])
    with cached_on(disk, tmp_path) as lake:
        assert answers(lake, place) == before
        settle(lake)
        assert sorted(learnt(lake, path, NAMES)) == sorted(NAMES)
        assert answers(lake, place) == before


def test_an_analysis_of_a_table_says_that_there_is_no_room(disk, table, capsys):
    with learning_lake(disk, statistics=0) as lake, filled_up(disk):
        with pytest.raises(MetastoreError, match="disk is full"):
            lake.table(table).upkeep.analyze()
        with pytest.raises(MetastoreError, match="disk is full"):
            lake.table(table).upkeep.analyze(["few"])
        assert set(learnt_rows(lake).values()) == {0}
        assert run(["analyze", table, "--lake", str(disk / "lake")]) != 0
        assert "disk is full" in capsys.readouterr().err


def test_an_analysis_of_files_says_that_there_is_no_room(disk, path):
    with learning_lake(disk, statistics=0) as lake:
        with filled_up(disk), pytest.raises(StorageError, match="disk is full"):
            lake.files(str(path)).analyze()
        assert lake.files(str(path)).analyze().columns == len(NAMES)


def test_a_merge_does_not_need_room_for_statistics(tmp_path):
    times = pa.array(np.arange(200) * 1_000_000, pa.timestamp("us", "UTC"))
    with windrow.connect(tmp_path / "lake", statistics=0) as lake:
        table = lake.create_table("t", sort="few|timestamp/V2", window="60m", policy={"merge_factor": 2})
        for number in range(2):
            table.ingest(some_rows(200, number).append_column("timestamp", times))
        table.upkeep.analyze()
        before = lake.sql("select * from t order by all").to_arrow()
        with closing(sqlite3.connect(tmp_path / "lake" / "windrow.db")) as database, database:
            full = "begin select raise(fail, 'database or disk is full'); end"
            database.execute(f"create trigger no_room before insert on windrow_statistics {full}")
        done = table.compact.run()
        assert (done.done, done.failed) == (1, 0)
        assert lake.sql("select * from t order by all").to_arrow() == before
        assert table.upkeep.check(data=True).sound

"""Statistics of files in no table: learnt at once, listed without reading data, and bound to what the files are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.cache import CacheSettings
from windrow.errors import Damaged, InvalidInput, NotFound, Replaced
from windrow.upkeep import file_analysis


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache"), statistics=0) as opened:
        yield opened


@pytest.fixture
def raw(tmp_path):
    for number in range(2):
        numbers = np.arange(number * 500, number * 500 + 500)
        columns = {"n": numbers, "host": [f"h{each % 7}" for each in numbers], "tags": [[1]] * 500}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", row_group_size=100)
    return tmp_path


def test_files_are_analyzed_once(lake, raw):
    done = []
    first = lake.files(f"{raw}/*.parquet").analyze(on_files=lambda *file: done.append(file))
    assert (first.files, first.rows, first.columns) == (2, 1000, 4)
    assert [rows for rows, _ in done] == [500, 500]
    assert lake.files(f"{raw}/*.parquet").analyze().columns == 0


def test_what_is_known_of_files_is_listed(lake, raw):
    files = lake.files(f"{raw}/*.parquet")
    files.analyze(["host"])
    rows = {row["column"]: row for row in files.statistics().to_dict()}
    assert list(rows) == ["n", "host", "tags"]
    host = rows["host"]
    assert (host["rows"], host["learnt_rows"], host["distinct"], host["nulls"]) == (1000, 1000, 7, 0)
    assert (host["minimum"], host["maximum"]) == ("h0", "h6")
    assert (rows["n"]["learnt_rows"], rows["n"]["distinct"]) == (0, None)


def test_files_and_columns_that_are_not_there_are_named(lake, raw):
    with pytest.raises(NotFound, match="there is no column 'hots'; there are n, host, tags"):
        lake.files(f"{raw}/*.parquet").analyze(["hots"])
    with pytest.raises(NotFound, match="no such file"):
        lake.files(f"{raw}/none.parquet").statistics()


def test_a_lake_without_room_for_statistics_says_so(tmp_path, raw):
    with (
        windrow.connect(tmp_path / "lake", cache=None, statistics=0) as lake,
        pytest.raises(InvalidInput, match="without one; give connect a cache"),
    ):
        lake.files(f"{raw}/*.parquet").analyze()


def test_a_file_that_cannot_be_read_is_named(lake, raw):
    path = raw / "0.parquet"
    data = bytearray(path.read_bytes())
    data[4:2000] = b"\xff" * 1996
    path.write_bytes(data)
    with pytest.raises(Damaged, match=r"0\.parquet: it cannot be read for statistics"):
        lake.files(str(path)).analyze()


def test_a_file_that_is_replaced_meanwhile_leaves_nothing(lake, raw, monkeypatch):
    path, opened = raw / "0.parquet", file_analysis.opened_file

    def replaced(stored):
        pq.write_table(pa.table({"n": np.arange(500), "host": ["x"] * 500, "tags": [[1]] * 500}), path)
        return opened(stored)

    monkeypatch.setattr(file_analysis, "opened_file", replaced)
    with pytest.raises(Replaced):
        lake.files(str(path)).analyze()
    assert lake.files(str(path)).statistics().to_dict()[0]["learnt_rows"] == 0


def test_they_are_there_for_the_next_lake(tmp_path, lake, raw):
    lake.files(f"{raw}/*.parquet").analyze()
    with windrow.connect(tmp_path / "other", cache=CacheSettings(folder=tmp_path / "cache"), statistics=0) as other:
        assert other.files(f"{raw}/*.parquet").analyze().columns == 0

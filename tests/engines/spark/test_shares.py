"""Files are dealt out to tasks: every part of every file to one of them, evenly, and not to more than pays."""

from __future__ import annotations

import pickle
from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.worlds import SORT, connect, points, told

from windrow.engines.duckdb.relations import Relation
from windrow.engines.selection import Selection
from windrow.engines.spark.shares import Task, deal_out
from windrow.planning.data_files import DataFile
from windrow.storage import Identity, LocalStore

MIB = 2**20


def files(sizes):
    store = LocalStore("/nowhere")
    return [DataFile(store, f"{number}.parquet", Identity(size)) for number, size in enumerate(sizes)]


@given(sizes=st.lists(st.integers(1, 300 * MIB), max_size=30), tasks=st.integers(1, 16))
def test_every_part_of_every_file_is_read_once(sizes, tasks):
    shares = deal_out(files(sizes), tasks)
    found = Counter((file.key, share.part, share.parts) for share in shares for file in share.files)
    assert set(found.values()) <= {1}
    for number in range(len(sizes)):
        parts = sorted((part, count) for key, part, count in found if key == f"{number}.parquet")
        assert parts == [(part, len(parts)) for part in range(len(parts))]


def test_small_files_go_together_and_large_ones_are_cut():
    assert len(deal_out(files([1000] * 200), 8)) == 1
    assert len(deal_out(files([MIB] * 32), 8)) == 8
    assert [share.parts for share in deal_out(files([200 * MIB]), 2)] == [4] * 4
    assert deal_out([], 8) == []


def test_a_task_travels_and_its_shares_together_are_all_rows(tmp_path):
    with connect({"url": str(tmp_path / "lake")}) as lake:
        table = lake.create_table("metrics", sort=SORT, timestamp_precision="ns")
        table.ingest(points(1, 3000))
        scan = table.scan("value * 2 > 1 or value is null")
        splits = [file for virtual in scan.plan().virtual for file in virtual.files]
        shares = [share for file in splits for share in _cut(file, 3)]
        task = pickle.loads(pickle.dumps(Task.of(scan.selection, lake.url, {})))
        found = pa.Table.from_batches([batch for share in shares for batch in task.rows(share)])
        assert told(found, scan.schema.names) == told(scan.to_arrow(), scan.schema.names)


def _cut(file, parts):
    from windrow.engines.spark.shares import _parts

    return _parts(file, parts)


def test_what_a_task_knows_shows_no_secret():
    columns = pa.schema([("value", pa.float64())])
    selection = Selection("metrics", Relation(columns, lambda _: None), ("value",))
    assert "hunter2" not in repr(Task.of(selection, "s3://bucket", {"secret_access_key": "hunter2"}))

"""The partition store: rows come back in order of time, files grow in place, old folders go when nobody reads them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.questdb.tables import DAY, MONDAY, NEVER, SCHEMA, content, plain, rows
from tests.sidecar.whole_footers import convert_update

from windrow.errors import AlreadyExists, Closed, Conflict, Damaged, Incompatible, InvalidInput, NotFound, StorageError
from windrow.questdb.committed import CommittedFile
from windrow.questdb.meta import PartitionUnit
from windrow.questdb.readers import hold_snapshot
from windrow.questdb.store import PartitionStore, StoreOptions, create_table
from windrow.questdb.txn import READ_ONLY_BIT, REMOTE_BIT, parse_txn, read_txn
from windrow.questdb.txn_writer import TxnWriter
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.convert import Source
from windrow.storage.file_changes import Files

SMALL = StoreOptions(row_group_rows=8, join_rows=4)
FIRST = "2024-01-01"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(tmp_path / "t", SCHEMA, timestamp="ts")
    return tmp_path / "t"


def grown(table: Path) -> Path:
    """A table of two partitions, of which the first has grown."""
    with PartitionStore(table, NEVER) as store:
        store.append(rows([*range(0, 40, 4), DAY]))
        store.append(rows([50, 54], "b"))
    return table


def files_of(table: Path) -> list[CommittedFile]:
    with hold_snapshot(table) as snapshot:
        return list(snapshot.files)


# ---- rows


def test_a_new_table_has_no_rows(table: Path) -> None:
    assert content(table) == []
    with PartitionStore(table) as store:
        assert store.append(rows([])).version == 0
        assert store.rewrite().version == 0


def test_rows_come_back_in_order_of_time(table: Path) -> None:
    with PartitionStore(table) as store:
        txn = store.append(rows([5, DAY + 1, 3, 9]))
        assert [each.rows for each in txn.partitions] == [3, 1]
        assert (txn.min_timestamp, txn.max_timestamp) == (MONDAY + 3, MONDAY + DAY + 1)
    assert [time - MONDAY for time, _, _ in content(table)] == [3, 5, 9, DAY + 1]


Batches = st.lists(st.lists(st.integers(-5, 60), min_size=1, max_size=12), min_size=1, max_size=8)


@given(Batches, st.sampled_from([NEVER, SMALL, StoreOptions(row_group_rows=3, join_rows=100, rewrite_ratio=0.9)]))
def test_any_batches_come_back_and_old_snapshots_too(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], options: StoreOptions
) -> None:
    table = tmp_path_factory.mktemp("store") / "t"
    create_table(table, SCHEMA, timestamp="ts", files=Unforced())
    expected: list[tuple] = []
    kept = []
    with PartitionStore(table, options, Unforced()) as store:
        for number, batch in enumerate(batches):
            store.append(rows(batch, f"{number}-"))
            expected += plain(rows(batch, f"{number}-"))
            snapshot = hold_snapshot(table)
            kept.append((snapshot, sorted(expected)))
            check_layout(snapshot.files)
    for snapshot, old in kept:
        with snapshot:
            found = plain(snapshot.read())
            assert sorted(found) == old
            assert [time for time, _, _ in found] == sorted(time for time, _, _ in found)


class Unforced(Files):
    def sync(self, path: Path) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


def check_layout(files: tuple[CommittedFile, ...]) -> None:
    """Row groups follow each other in time, and all bytes of a file are accounted for."""
    for file in files:
        column = file.sidecar.column("ts")
        least, greatest = column.stored_minimum.values, column.stored_maximum.values
        assert (least[1:] >= greatest[:-1]).all()
        used = 4 + file.live_bytes() + file.footer_size
        assert file.sidecar.footer.unused_bytes == file.size - used
        assert file.sidecar.designated_timestamp == 0
        assert file.sidecar.sorting == (0,)


def test_equal_times_keep_the_order_of_their_commits(table: Path) -> None:
    with PartitionStore(table, NEVER) as store:
        for tag in "abc":
            store.append(rows([7] * 3, tag))
        store.append(rows([0, 7], "d"))
    assert [host[0] for _, host, _ in content(table)] == ["d", *"aaabbbccc", "d"]


@pytest.mark.parametrize(
    ("unit", "names"),
    [
        (PartitionUnit.HOUR, ["2023-12-31T23", "2024-01-01T00", "2024-01-02T00"]),
        (PartitionUnit.DAY, ["2023-12-31", "2024-01-01", "2024-01-02"]),
        (PartitionUnit.WEEK, ["2023-W52", "2024-W01"]),
        (PartitionUnit.MONTH, ["2023-12", "2024-01"]),
        (PartitionUnit.YEAR, ["2023", "2024"]),
    ],
)
def test_partitions_are_named_by_their_unit(tmp_path: Path, unit: PartitionUnit, names: list[str]) -> None:
    create_table(tmp_path / "t", SCHEMA, timestamp="ts", unit=unit)
    with PartitionStore(tmp_path / "t") as store:
        store.append(rows([-1, 0, DAY + 5]))
    assert sorted(path.name for path in (tmp_path / "t").iterdir() if path.is_dir()) == names
    assert [time - MONDAY for time, _, _ in content(tmp_path / "t")] == [-1, 0, DAY + 5]


def test_times_before_1970_and_nanoseconds(tmp_path: Path) -> None:
    schema = pa.schema([("t", pa.timestamp("ns")), ("n", pa.int32())])
    create_table(tmp_path / "t", schema, timestamp="t")
    with PartitionStore(tmp_path / "t") as store:
        store.append(pa.table([pa.array([-1, 1], pa.timestamp("ns")), pa.array([1, 2], pa.int32())], schema=schema))
    assert sorted(path.name for path in (tmp_path / "t").iterdir() if path.is_dir()) == ["1969-12-31", "1970-01-01"]
    with hold_snapshot(tmp_path / "t") as snapshot:
        assert snapshot.read()["t"].cast(pa.int64()).to_pylist() == [-1, 1]


def test_every_type_and_nulls_come_back(tmp_path: Path) -> None:
    values = {
        "ts": pa.array([1, 2], pa.timestamp("us", "UTC")),
        "flag": pa.array([True, None]),
        "i8": pa.array([-1, None], pa.int8()),
        "i16": pa.array([-300, None], pa.int16()),
        "i32": pa.array([None, 5], pa.int32()),
        "i64": pa.array([2**62, None], pa.int64()),
        "day": pa.array([5, None], pa.timestamp("ms", "UTC")),
        "ns": pa.array([5, None], pa.timestamp("ns", "UTC")),
        "f32": pa.array([float("nan"), None], pa.float32()),
        "f64": pa.array([-0.0, None], pa.float64()),
        "text": pa.array(["é" * 2000, None]),
        "raw": pa.array([b"\0", None], pa.binary()),
    }
    given_rows = pa.table(values)
    create_table(tmp_path / "t", given_rows.schema, timestamp="ts")
    with PartitionStore(tmp_path / "t", NEVER) as store:
        for _ in range(3):
            store.append(given_rows)
    with hold_snapshot(tmp_path / "t") as snapshot:
        found = snapshot.read()
    expected = pa.concat_tables([given_rows.slice(0, 1)] * 3 + [given_rows.slice(1, 1)] * 3)
    assert str(found.to_pylist()) == str(expected.to_pylist())


# ---- files


def test_an_append_grows_the_file_in_place(table: Path) -> None:
    grown(table)
    data, pm = ((table / FIRST / name).read_bytes() for name in ("data.parquet", "_pm"))
    with PartitionStore(table, NEVER) as store:
        store.append(rows([60]))
        store.append(rows([3], "late"))
    assert (table / FIRST / "data.parquet").read_bytes().startswith(data)
    assert (table / FIRST / "_pm").read_bytes()[8:].startswith(pm[8:])
    assert files_of(table)[0].sidecar.row_counts.tolist() == [9, 2, 2, 1]


def test_a_small_end_joins_the_last_row_group(table: Path) -> None:
    with PartitionStore(table, replace(NEVER, join_rows=6)) as store:
        for start in range(0, 40, 4):
            store.append(rows(range(start, start + 2)))
    assert files_of(table)[0].sidecar.row_counts.tolist() == [6, 6, 6, 2]


def test_plain_readers_see_the_newest_commit(table: Path) -> None:
    """The file is a whole Parquet file after every commit."""
    path = grown(table) / FIRST / "data.parquet"
    with PartitionStore(table, NEVER) as store:
        for late in range(1, 30, 7):
            store.append(rows([late, 60], "late"))
            read = pq.read_table(path)
            assert read["ts"].cast(pa.int64()).to_pylist() == sorted(read["ts"].cast(pa.int64()).to_pylist())
            count = duckdb.connect().execute(f"select count(*) from '{path}' where host like 'late%'").fetchall()
            assert count == [(sum(host.startswith("late") for host in read["host"].to_pylist()),)]
    metadata = pq.read_metadata(path)
    assert metadata.row_group(0).sorting_columns == (pq.SortingColumn(0),)
    assert all(metadata.row_group(group).column(0).has_offset_index for group in range(metadata.num_row_groups))


def test_the_sidecar_is_what_a_whole_conversion_gives(table: Path) -> None:
    """An append describes its own row groups; a conversion of the whole footer is the oracle."""
    grown(table)
    for late in ([60], [3], [5, 33, 70], [61, 62]):
        before = files_of(table)[0]
        old = (before.folder / "_pm").read_bytes()
        with PartitionStore(table, NEVER) as store:
            store.append(rows(late))
        after = files_of(table)[0]
        new = (after.folder / "_pm").read_bytes()
        granules = [after.sidecar.extensions.granules(group) for group in range(after.sidecar.row_group_count)]
        source = Source(after.footer, after.size, str(after.path), after.read_at, granules=granules)
        update = convert_update(
            Sidecar.of(old, name=before.sidecar.name), source, unused_bytes=after.sidecar.footer.unused_bytes
        )
        assert new[update.base :] == update.data
        assert int.from_bytes(new[:8], "little") == update.size


def test_readers_of_older_commits_walk_the_chain(table: Path) -> None:
    with PartitionStore(table, NEVER) as store:
        sizes = [store.append(rows([number])).partitions[0].parquet_size for number in range(20)]
    for count, size in enumerate(sizes, 1):
        file = CommittedFile(table / FIRST, size)
        assert int(file.sidecar.row_counts.sum()) == file.read().num_rows == count


def test_unused_bytes_lead_to_a_new_folder(table: Path) -> None:
    with PartitionStore(table, SMALL) as store:
        store.append(rows(range(64)))
        folders = set()
        for _ in range(30):
            store.append(rows([5]))
            folders.add(files_of(table)[0].folder.name)
            unused, size = files_of(table)[0].sidecar.footer.unused_bytes, files_of(table)[0].size
            assert unused <= 0.5 * size
    assert len(folders) > 2
    assert sorted(path.name for path in table.iterdir() if path.is_dir()) == [files_of(table)[0].folder.name]
    assert len(content(table)) == 94


def test_a_number_of_unused_bytes_leads_to_a_new_folder(table: Path) -> None:
    with PartitionStore(table, replace(NEVER, rewrite_bytes=100)) as store:
        store.append(rows(range(64)))
        assert store.append(rows([99])).partitions[0].name_txn == 2


def test_a_rewrite_has_no_unused_bytes_and_whole_row_groups(table: Path) -> None:
    grown(table)
    before = content(table)
    with PartitionStore(table, NEVER) as store:
        store.rewrite([MONDAY])
    first, second = files_of(table)
    assert (first.folder.name, second.folder.name) == (f"{FIRST}.3", "2024-01-02")
    assert first.sidecar.footer.unused_bytes == 0
    assert first.sidecar.row_counts.tolist() == [8, 4]
    assert content(table) == before


# ---- readers and writers


def test_a_held_snapshot_reads_the_same_rows_for_ever(table: Path) -> None:
    old = content(grown(table))
    with hold_snapshot(table) as snapshot, PartitionStore(table, NEVER) as store:
        store.append(rows([1, 60, DAY + 7], "later"))
        store.rewrite()
        assert plain(snapshot.read()) == old
        assert store.purge() == [table / FIRST, table / "2024-01-02"]
        snapshot.close()
        assert store.purge() == []
        assert not (table / FIRST).exists()


READER = """
import sys, time
from windrow.questdb.readers import hold_snapshot
snapshot = hold_snapshot(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""
WRITER = """
import sys, time
from windrow.questdb.store import PartitionStore
store = PartitionStore(sys.argv[1])
print("held", flush=True)
time.sleep(60)
"""


def start(program: str, table: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", program, str(table)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_reader_that_died_holds_nothing(table: Path) -> None:
    reader = start(READER, grown(table))
    with PartitionStore(table, NEVER) as store:
        try:
            store.rewrite()
            assert (table / FIRST).exists()
        finally:
            end(reader)
        store.append(rows([70]))
        assert not (table / FIRST).exists()


def test_a_second_writer_is_refused(table: Path) -> None:
    with PartitionStore(table), pytest.raises(Conflict, match="another writer has the table open"):
        PartitionStore(table)
    writer = start(WRITER, table)
    try:
        with pytest.raises(Conflict, match="another writer"):
            PartitionStore(table)
    finally:
        end(writer)
    with PartitionStore(table) as store:
        store.append(rows([1]))


def test_a_closed_store_refuses_rows(table: Path) -> None:
    store = PartitionStore(table)
    store.close()
    with pytest.raises(Closed, match="open it again"):
        store.append(rows([1]))


def test_a_store_that_failed_is_opened_again(table: Path) -> None:
    """After a failed write only the files know what is committed."""

    class Full(Files):
        def __init__(self) -> None:
            self.left = 3

        def write_at(self, path: Path, offset: int, data: bytes) -> None:
            self.left -= 1
            if self.left < 0:
                raise StorageError(f"{path}: no space")
            super().write_at(path, offset, data)

    before = content(grown(table))
    store = PartitionStore(table, NEVER, Full())
    with pytest.raises(StorageError, match="no space"):
        store.append(rows([70, 71], "lost"))
    with pytest.raises(Closed):
        store.append(rows([70]))
    assert content(table) == before
    with PartitionStore(table, NEVER) as again:
        again.append(rows([80]))
    assert content(table) == sorted([*before, *plain(rows([80]))])


def test_leftovers_of_a_dead_rewrite_are_removed(table: Path) -> None:
    grown(table)
    shutil.copytree(table / FIRST, table / f"{FIRST}.3")
    (table / f"{FIRST}.4").mkdir()
    (table / "2024-01-09.detached").mkdir()
    (table / "2024-01-08").mkdir()
    (table / "2024-01-08" / "ts.d").write_bytes(b"native")
    with PartitionStore(table, NEVER) as store:
        assert store.rewrite().partitions[0].name_txn == 3
    names = {path.name for path in table.iterdir() if path.is_dir()}
    assert names == {f"{FIRST}.3", "2024-01-02.3", "2024-01-09.detached", "2024-01-08"}


def test_a_shorter_append_leaves_nothing_of_a_dead_one(table: Path) -> None:
    """The end of a dead append must not stand after the footer of a new one."""
    before = (grown(table) / "_txn").read_bytes()
    with PartitionStore(table, NEVER) as store:
        store.append(rows(np.random.default_rng(1).integers(60, 900, 500).tolist(), "dead"))
    (table / "_txn").write_bytes(before)
    with PartitionStore(table, NEVER) as store:
        size = store.append(rows([60], "new")).partitions[0].parquet_size
    assert (table / FIRST / "data.parquet").stat().st_size == size
    assert "dead" not in str(content(table))
    chain = [snapshot.parquet_size for snapshot in Sidecar.open(table / FIRST / "_pm").snapshots()]
    assert len(chain) == 3
    assert chain[0] == size


# ---- what is wrong


def test_rows_that_do_not_fit_are_refused(table: Path) -> None:
    with PartitionStore(table) as store:
        with pytest.raises(InvalidInput, match=r"rows have the columns \['ts'\], the table \['host', 'ts', 'v'\]"):
            store.append(rows([1]).select(["ts"]))
        with pytest.raises(InvalidInput, match="'ts' has nulls"):
            store.append(rows([1]).set_column(0, "ts", pa.array([None], SCHEMA.field("ts").type)))
        with pytest.raises(InvalidInput, match="rows do not fit the table"):
            store.append(rows([1]).set_column(2, "v", pa.array(["text"])))
        assert store.append(rows([1])).version == 1


@pytest.mark.parametrize(
    ("schema", "timestamp", "unit", "message"),
    [
        ({"ts": pa.timestamp("us")}, "other", PartitionUnit.DAY, "'other' is no column of microseconds"),
        ({"ts": pa.timestamp("ms")}, "ts", PartitionUnit.DAY, "'ts' is no column of microseconds"),
        ({"ts": pa.timestamp("us")}, "ts", PartitionUnit.NONE, "choose a unit"),
        ({"ts": pa.timestamp("us"), "l": pa.list_(pa.int8())}, "ts", PartitionUnit.DAY, "column 'l' has the type list"),
        ({"ts": pa.timestamp("us"), "TS": pa.int8()}, "ts", PartitionUnit.DAY, "two columns have one name"),
    ],
)
def test_tables_that_cannot_be_are_refused(
    tmp_path: Path, schema: dict, timestamp: str, unit: PartitionUnit, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        create_table(tmp_path / "t", pa.schema(list(schema.items())), timestamp=timestamp, unit=unit)
    assert not (tmp_path / "t").exists()


def test_a_table_is_created_once(table: Path) -> None:
    with pytest.raises(AlreadyExists, match="it is a table already"):
        create_table(table, SCHEMA, timestamp="ts")


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(NotFound):
            PartitionStore(folder)
        with pytest.raises(NotFound):
            hold_snapshot(folder)


def set_first(table: Path, **changes: int) -> None:
    """Commit the first partition with other words."""
    writer = TxnWriter(table / "_txn")
    first, *others = writer.current.partitions
    writer.commit(replace(writer.current, partitions=(replace(first, **changes), *others)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flags": 0}, "the partition is native"),
        ({"word": 1000 | REMOTE_BIT}, r"in cold storage \(REMOTE in _txn\)"),
    ],
)
def test_partitions_that_are_not_here_are_refused(table: Path, changes: dict, message: str) -> None:
    set_first(grown(table), **changes)
    with pytest.raises(Incompatible, match=message):
        hold_snapshot(table)
    with PartitionStore(table) as store, pytest.raises(Incompatible, match=message):
        store.append(rows([70]))


def replace_file(table: Path, file: pa.Table, **options: object) -> None:
    """Put another file in the place of the first partition's, and commit it."""
    path = table / FIRST / "data.parquet"
    pq.write_table(file, path, **options)
    data = path.read_bytes()
    sidecar = build_sidecar(lambda at, size: data[at : at + size], len(data), name="file")
    (table / FIRST / "_pm").write_bytes(sidecar)
    set_first(table, word=len(data))


def test_a_file_of_other_columns_is_rewritten(table: Path) -> None:
    """Row groups of one file have the same nullability and field ids."""
    replace_file(grown(table), pa.table(rows([*range(0, 40, 4), 50, 54]).cast(SCHEMA)))
    before = content(table)
    with PartitionStore(table, NEVER) as store:
        assert store.append(rows([3, 60], "new")).partitions[0].name_txn == 4
    assert content(table) == sorted([*before, *plain(rows([3, 60], "new"))], key=lambda row: row[0])


def test_a_file_without_order_is_refused(table: Path) -> None:
    replace_file(grown(table), rows([*range(0, 40, 4), 50, 54]), write_statistics=False)
    with PartitionStore(table, NEVER) as store, pytest.raises(Incompatible, match="have no order of time"):
        store.append(rows([3]))


def test_a_table_that_questdb_writes_is_refused() -> None:
    golden = Path(__file__).parents[1] / "data/golden/questdb-tables/o3-0"
    with pytest.raises(Incompatible, match="through its WAL"):
        PartitionStore(golden)


def test_a_read_only_partition_is_read_and_not_written(table: Path) -> None:
    set_first(grown(table), flags=read_txn(table / "_txn").partitions[0].flags | READ_ONLY_BIT)
    assert len(content(table)) == 13
    with PartitionStore(table) as store, pytest.raises(Incompatible, match="read-only"):
        store.append(rows([70]))


def test_a_file_that_is_too_short_or_gone_is_reported(table: Path) -> None:
    path = grown(table) / FIRST / "data.parquet"
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(Damaged, match=f"it has {size - 1} bytes, and _txn commits {size}"):
        hold_snapshot(table)
    with PartitionStore(table) as store, pytest.raises(Damaged, match="restore it from a backup"):
        store.append(rows([70]))
    path.unlink()
    with pytest.raises(NotFound, match="_txn names this file"):
        hold_snapshot(table)
    shutil.rmtree(table / FIRST)
    with pytest.raises(NotFound, match="no such folder"):
        hold_snapshot(table)


@pytest.mark.parametrize("harm", ["missing", "behind", "flipped", "swapped", "empty"])
def test_a_sidecar_that_is_not_that_of_the_file_is_built_anew(table: Path, harm: str) -> None:
    """Readers report it, the next append to the partition repairs it, and unused bytes are counted again."""
    path = grown(table) / FIRST / "_pm"
    before, good = content(table), bytearray(path.read_bytes())
    unused = files_of(table)[0].sidecar.footer.unused_bytes
    if harm == "missing":
        path.unlink()
    elif harm == "behind":
        good[:8] = Sidecar.open(path).footer.previous_size.to_bytes(8, "little")
        path.write_bytes(good)
    elif harm == "flipped":
        good[200] ^= 1
        path.write_bytes(good)
    elif harm == "swapped":
        path.write_bytes((table / "2024-01-02/_pm").read_bytes())
    else:
        path.write_bytes(b"")
    with pytest.raises((NotFound, Damaged)):
        hold_snapshot(table)
    with PartitionStore(table, NEVER) as store:
        store.append(rows([70]))
    assert content(table) == sorted([*before, *plain(rows([70]))])
    chain = list(Sidecar.open(path).snapshots())
    assert [snapshot.footer.unused_bytes for snapshot in chain][1] == unused
    assert len(chain) == 2


def test_files_of_another_partition_are_reported(table: Path) -> None:
    with PartitionStore(grown(table), NEVER) as store:
        store.append(rows([2 * DAY]))
    ours, theirs = table / "2024-01-02", table / "2024-01-03"
    for name in ("data.parquet", "_pm"):
        (ours / name).write_bytes((theirs / name).read_bytes())
    set_first(table, rows=4)
    with pytest.raises(Damaged, match="it has 12 rows, and _txn commits 4"):
        hold_snapshot(table)
    with PartitionStore(table) as store, pytest.raises(Damaged, match="it has 12 rows, and _txn commits 4"):
        store.append(rows([70]))


def test_a_page_that_was_damaged_is_reported(table: Path) -> None:
    path = grown(table) / FIRST / "data.parquet"
    data = bytearray(path.read_bytes())
    chunk = files_of(table)[0].footer.chunks[0, 1]
    data[int(chunk["data_page_offset"]) + int(chunk["total_compressed_size"]) // 2] ^= 0xFF
    path.write_bytes(data)
    with hold_snapshot(table) as snapshot, pytest.raises(Damaged, match="data.parquet"):
        snapshot.read()
    with PartitionStore(table, NEVER) as store, pytest.raises(Damaged, match="data.parquet"):
        store.append(rows([1]))


def test_txn_of_a_store_is_whole(table: Path) -> None:
    txn = parse_txn((grown(table) / "_txn").read_bytes(), "_txn")
    assert (txn.version, txn.fixed_rows, txn.transient_rows) == (2, 12, 1)
    assert all(each.is_parquet and each.parquet_generated for each in txn.partitions)
    assert [each.name_txn for each in txn.partitions] == [-1, -1]

"""Tables that are damaged, or change while they are read: the right rows, or an error that names file and remedy."""

from __future__ import annotations

import shutil
import struct
import threading
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.databases import open_table
from windrow.errors import Damaged, Incompatible, NotFound, StorageError, WindrowError
from windrow.questdb.snapshot import open_snapshot
from windrow.questdb.txn import REMOTE_BIT

from .read_tables import GOLDEN, as_json, copy_case, edit_partition, edit_txn, golden_rows

DAY = "2024-02-02.2"


@pytest.fixture
def table(tmp_path):
    return copy_case("o3-3-nulls", tmp_path)


def opened(table, **options):
    return open_snapshot(table, native="skip", **({"deadline": 0.05} | options))


class TestDamage:
    def test_a_torn_txn(self, table):
        path = table / "_txn"
        data = bytearray(path.read_bytes())
        struct.pack_into("<q", data, 0, struct.unpack_from("<q", data)[0] + 2)
        path.write_bytes(data)
        with pytest.raises(Damaged, match=r"_txn: record . is of transaction.*torn, restore"):
            opened(table)

    def test_a_txn_that_is_cut_short(self, table):
        (table / "_txn").write_bytes((table / "_txn").read_bytes()[:100])
        with pytest.raises(Damaged, match=r"_txn.*cut short"):
            opened(table)

    def test_no_txn(self, table):
        (table / "_txn").unlink()
        with pytest.raises(NotFound, match=r"_txn: no such file"):
            opened(table)

    def test_a_meta_whose_version_never_comes(self, table):
        edit_txn(table, lambda txn: replace(txn, structure_version=7))
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"_meta: its structure version is 0, that of _txn 7.*0.2 s") as caught:
            opened(table, deadline=0.2)
        assert caught.value.retryable
        assert time.monotonic() - began < 2

    def test_a_meta_that_is_missing(self, table):
        (table / "_meta").unlink()
        with pytest.raises(StorageError, match=r"_meta: there is no such file"):
            opened(table)

    @pytest.mark.parametrize("missing", [DAY, f"{DAY}/data.parquet"])
    def test_a_missing_file(self, table, missing):
        shutil.rmtree(table / missing) if missing == DAY else (table / missing).unlink()
        began = time.monotonic()
        with pytest.raises(NotFound, match=rf"{DAY}/data.parquet: _txn names this file.*restore"):
            opened(table, deadline=30)
        # The commit has not changed: waiting would not help.
        assert time.monotonic() - began < 2

    def test_a_file_that_is_shorter_than_its_commit(self, table):
        path = table / DAY / "data.parquet"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(Damaged, match="14226 bytes, and 14227 are committed; restore"):
            opened(table)

    def test_a_committed_size_beyond_the_file(self, table):
        edit_partition(table, 1, word=2**40)
        with pytest.raises(Damaged, match=f"and {2**40} are committed"):
            opened(table)

    def test_a_committed_size_that_no_footer_describes(self, table):
        edit_partition(table, 1, word=9000)
        with pytest.raises(Damaged, match=r"_pm: no footer describes the 9000 bytes.*restore"):
            opened(table)

    def test_no_size_at_all(self, table):
        edit_partition(table, 1, word=0)
        with pytest.raises(Damaged, match="is Parquet and has no size"):
            opened(table)

    def test_a_count_of_rows_that_is_not_the_sidecar_s(self, table):
        edit_partition(table, 1, rows=295)
        with pytest.raises(Damaged, match="294 rows, and _txn commits 295"):
            opened(table)

    def test_the_sidecar_of_another_partition(self, tmp_path):
        # Both partitions have as many rows, and as many bytes.
        table = copy_case("by-hour", tmp_path)
        shutil.copy(table / "2023-12-28T00.2/_pm", table / "2023-12-28T01.1/_pm")
        with pytest.raises(Damaged, match=r"2023-12-28T01.1/_pm: its times are not those of the partition"):
            opened(table)

    def test_a_parquet_file_of_another_table(self, table):
        path = table / DAY / "data.parquet"
        path.write_bytes(path.read_bytes()[:-8] + b"\x00\x01\x00\x00PAR1")
        with pytest.raises(Damaged, match="do not end with the footer"):
            opened(table)

    def test_a_sidecar_that_fails_its_checksum(self, table):
        path = table / DAY / "_pm"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        with pytest.raises(Damaged, match=r"_pm.*CHECKSUM"):
            opened(table)

    def test_a_remote_partition(self, table):
        edit_partition(table, 0, word=7732 | REMOTE_BIT)
        with pytest.raises(Incompatible, match=r"2024-02-01.1: the partition is in cold storage"):
            opened(table)

    @pytest.mark.parametrize("fields", [{"flags": 1 << 63 | 3 << 60}, {"word": 1 << 58 | 7732}])
    def test_flags_of_a_newer_questdb(self, table, fields):
        edit_partition(table, 0, **fields)
        with pytest.raises(Incompatible, match=r"_txn: partition 0 has .*unknown flag bit.*newer Windrow"):
            opened(table)

    def test_a_type_of_a_newer_questdb(self, table):
        path = table / "_meta"
        data = bytearray(path.read_bytes())
        struct.pack_into("<i", data, 128 + 32, 77)
        path.write_bytes(data)
        with pytest.raises(Incompatible, match="column 'sy' has the unknown type 0x4d"):
            open_table(table, native="skip").scan()


@settings(max_examples=30)
@given(data=st.data())
def test_damaged_commits_and_sidecars_give_no_wrong_row(data, tmp_path_factory):
    table = copy_case("o3-3-nulls", tmp_path_factory.mktemp("damaged"))
    path = table / data.draw(st.sampled_from(["_txn", f"{DAY}/_pm", "2024-02-01.1/_pm"]))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, min(len(content), 3000) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    columns, rows = golden_rows("o3-3-nulls")
    try:
        found = as_json(open_table(table, native="skip", deadline=0.02).scan().to_arrow(), columns)
    except WindrowError:
        return
    # A partition that seems to be native is left out.
    assert {tuple(row) for row in found} <= {tuple(row) for row in rows}
    assert len(found) in (0, 290, 294, 584)


def test_a_table_that_changes_all_the_time_is_read_as_one_of_its_commits(tmp_path):
    """A writer goes from commit to commit, moves a partition to a new folder, and removes the old one."""
    table = copy_case("o3-3-nulls", tmp_path)
    steps = {290: "o3-3-nulls", 302: "o3-4-rewritten"}
    wanted = {}
    for case in steps.values():
        columns, rows = golden_rows(case)
        wanted[len(rows)] = rows
    ended = threading.Event()

    def write():
        while not ended.is_set():
            for case, folder, other in (
                ("o3-4-rewritten", "2024-02-02.7", "2024-02-02.2"),
                ("o3-3-nulls", "2024-02-02.2", "2024-02-02.7"),
            ):
                shutil.copytree(GOLDEN / case / folder, table / folder, dirs_exist_ok=True)
                (table / "_txn.new").write_bytes((GOLDEN / case / "_txn").read_bytes())
                (table / "_txn.new").replace(table / "_txn")
                shutil.rmtree(table / other, ignore_errors=True)

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    try:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            rows = as_json(open_table(table, native="skip").scan().to_arrow(), columns)
            seen.add(len(rows))
            assert rows == wanted[len(rows)]
    finally:
        ended.set()
        writer.join()
    assert seen == set(wanted)

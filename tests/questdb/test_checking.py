"""A check compares all files of a table, and names the one that is wrong."""

from __future__ import annotations

import shutil
import zlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from windrow.questdb.checking import check_table
from windrow.questdb.inspection import inspect_table
from windrow.questdb.txn import PARTITION, place_of
from windrow.sidecar import Sidecar

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "questdb-tables"
PARTIAL = ("crash-stale-tail", "migrated-alltypes", "migrated-empties")
"""Cases of which not all files were saved."""
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/_txn") if path.parent.name not in PARTIAL)


@pytest.fixture
def table(tmp_path):
    return Path(shutil.copytree(GOLDEN / "o3-2-tail", tmp_path / "o3", copy_function=shutil.copyfile))


@pytest.mark.parametrize("case", CASES)
def test_tables_of_questdb_are_sound(case):
    found = check_table(GOLDEN / case, data=True)
    assert found.findings == ()
    state = inspect_table(GOLDEN / case)
    assert found.rows_read == sum(each.rows for each in state.partitions if each.format == "parquet")


def replace_byte(path, place, value=None):
    data = bytearray(path.read_bytes())
    data[place] = data[place] ^ 0x55 if value is None else value
    path.write_bytes(data)


def first_page(path):
    return int(Sidecar.open(path.with_name("_pm")).chunks["byte_range_start"].min())


@pytest.mark.parametrize(
    ("name", "damage", "problem"),
    [
        ("_pm", lambda path: replace_byte(path, 60), "CHECKSUM"),
        ("_pm", lambda path: shutil.copyfile(GOLDEN / "o3-0/2024-02-02.2/_pm", path), "no footer describes"),
        ("data.parquet", lambda path: path.write_bytes(path.read_bytes()[:-1]), "14226 bytes, 14227 are committed"),
        ("data.parquet", lambda path: path.unlink(), "no such Parquet file"),
        ("data.parquet", lambda path: replace_byte(path, first_page(path)), "cannot be decoded"),
    ],
    ids=["bad byte of a sidecar", "stale sidecar", "cut short", "missing", "bad byte of a page"],
)
def test_what_is_wrong_is_named(table, name, damage, problem):
    path = table / "2024-02-02.2" / name
    damage(path)
    found = check_table(table, data=True)
    assert not found.sound
    assert {each.where for each in found.findings} == {str(path)}
    assert any(problem in each.problem for each in found.findings), found.findings


def test_a_sidecar_of_another_file_is_noticed(table):
    """Equal in size and rows, so that only the footers can tell."""
    path = table / "2024-02-02.2" / "_pm"
    sidecar = Sidecar.open(path)
    place, crc = int(sidecar.entries[0]) * 8 + 8 + 16, sidecar.footer.crc_offset
    data = bytearray(path.read_bytes())
    data[place] ^= 8
    data[crc : crc + 4] = zlib.crc32(data[8:crc]).to_bytes(4, "little")
    path.write_bytes(data)
    assert any("byte_range_start is" in each.problem for each in check_table(table).findings)


def test_page_checksums_are_verified_where_there_are_any(table):
    path = table / "2024-02-02.2" / "data.parquet"
    rows = pq.read_table(path)
    pq.write_table(rows, path, write_page_checksum=True, compression="none", use_dictionary=False)
    (table / "2024-02-02.2" / "_pm").unlink()
    set_size(table, 1, path.stat().st_size)
    assert check_table(table, data=True).sound
    values = path.read_bytes().index(rows.column("val").chunk(0)[:10].to_numpy().tobytes())
    replace_byte(path, values + 3)
    assert check_table(table).sound
    problems = [each.problem for each in check_table(table, data=True).findings]
    assert any("checksum" in problem.lower() or "crc" in problem.lower() for problem in problems), problems


def set_size(table, number, size):
    data = bytearray((table / "_txn").read_bytes())
    _, place = place_of(bytes(data[:64]), "txn")
    at = place.end - place.partitions_size + number * PARTITION.size
    *fields, _ = PARTITION.unpack_from(data, at)
    PARTITION.pack_into(data, at, *fields, size)
    (table / "_txn").write_bytes(data)


def test_partitions_without_a_sidecar_are_listed_and_no_fault(table):
    (table / "2024-02-02.2" / "_pm").unlink()
    found = check_table(table)
    assert found.sound
    assert found.missing_sidecars == ("2024-02-02.2",)


def test_a_structure_that_is_not_that_of_the_commit_is_a_finding(table):
    replace_byte(table / "_meta", 32, 9)
    problems = [each.problem for each in check_table(table).findings]
    assert problems == ["structure version 0, `_meta` has 9"]


def test_the_state_of_a_table_is_read_without_parquet_files(table):
    before = inspect_table(table)
    for path in table.glob("*/data.parquet"):
        path.unlink()
    assert inspect_table(table) == before
    first, second, third = before.partitions
    assert (first.format, third.format) == ("parquet", "native")
    assert (second.folder, second.rows, second.parquet_bytes) == ("2024-02-02.2", 294, 14227)
    assert second.footers == 3
    assert second.unused_bytes > 0
    assert 0 < second.unused_ratio < 1
    assert before.summary()["unused_bytes"] == second.unused_bytes + first.unused_bytes


def test_a_sidecar_that_cannot_be_used_is_a_problem_of_its_partition(table):
    (table / "2024-02-02.2" / "_pm").write_bytes(b"no sidecar")
    state = inspect_table(table).partitions[1]
    assert "the file has 10 bytes" in state.problem
    assert state.footers is None

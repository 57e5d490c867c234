"""Sidecars are made for Parquet partitions where they are: nothing else is written, and any run can be repeated."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import InvalidInput, NotFound, StorageError
from windrow.questdb.migration import Action, carry_out
from windrow.questdb.migration_plan import Wish, plan_migration
from windrow.questdb.txn import PARTITION, REMOTE_BIT, Partition, place_of, read_txn
from windrow.sidecar import Sidecar, layout
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.rewrite import Sections
from windrow.storage.file_changes import Files
from windrow.upkeep.migration import Migration

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "questdb-tables"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/_txn") if path.parent.name != "crash-stale-tail")
CONVERTED = sorted(path.parent.relative_to(GOLDEN) for path in GOLDEN.glob("*/*/converter.pm"))


def copied(case, folder):
    """A golden table without sidecars."""
    table = folder / case
    shutil.copytree(GOLDEN / case, table, ignore=shutil.ignore_patterns("_pm", "converter.pm", "rows.json"))
    for path in [table, *table.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return table


@pytest.fixture
def table(tmp_path):
    """A table of two Parquet partitions and a native one."""
    return copied("o3-2-tail", tmp_path)


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def actions(plan):
    return [(step.partition, step.action.value) for step in plan.steps]


def patch_partition(table, number, change):
    """Change one partition of the current record of `_txn` in place."""
    path = table / "_txn"
    data = bytearray(path.read_bytes())
    _, place = place_of(bytes(data[:64]), "txn")
    at = place.end - place.partitions_size + number * PARTITION.size
    timestamp, masked, name_txn, word = PARTITION.unpack_from(data, at)
    PARTITION.pack_into(data, at, *change(timestamp, masked, name_txn, word))
    path.write_bytes(data)


# ---- what is written


@pytest.mark.parametrize("place", CONVERTED, ids=str)
def test_sidecars_are_those_that_questdb_makes(place, tmp_path):
    table = copied(place.parts[0], tmp_path)
    Migration(table).run()
    assert (table / place.name / "_pm").read_bytes() == (GOLDEN / place / "converter.pm").read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_every_parquet_partition_gets_one_and_nothing_else_changes(case, tmp_path):
    table = copied(case, tmp_path)
    before = contents(table)
    result = Migration(table).run()
    written = {path for path in contents(table) if path not in before}
    parquet = len(list(table.glob("*/data.parquet")))
    assert (len(written), {path.name for path in written}) == (parquet, {"_pm"})
    assert result.written == result.planned == parquet
    assert {path: data for path, data in contents(table).items() if path in before} == before


def test_all_tables_of_a_database_are_migrated(tmp_path):
    for case in ("o3-0", "by-hour"):
        copied(case, tmp_path / "db")
    assert Migration(tmp_path).run().written == 4
    assert Migration(tmp_path / "db").run().unchanged == 4


def test_bytes_after_the_committed_size_are_never_read(table):
    parquet = table / "2024-02-02.2" / "data.parquet"
    committed = parquet.read_bytes()
    parquet.write_bytes(committed + b"an append that nobody committed" * 100 + committed[-2000:])
    Migration(table).run()
    expected = GOLDEN / "o3-2-tail" / "2024-02-02.2" / "converter.pm"
    assert (table / "2024-02-02.2" / "_pm").read_bytes() == expected.read_bytes()


# ---- what is refused, and what is left


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda path: path.write_bytes(b""), "the file is empty, 14227 bytes are committed"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "14226 bytes, 14227 are committed"),
        (lambda path: path.unlink(), "no such Parquet file"),
        (lambda path: path.write_bytes(path.read_bytes()[:-4] + b"PARX"), "ends with b'PARX'"),
    ],
    ids=["empty", "cut short", "missing", "no Parquet"],
)
def test_a_bad_parquet_file_is_named_and_stops_no_other(table, damage, problem):
    parquet = table / "2024-02-02.2" / "data.parquet"
    damage(parquet)
    result = Migration(table).run()
    assert (result.written, result.failed) == (1, 1)
    assert str(parquet) in result.problems[0]
    assert problem in result.problems[0]
    assert (table / "2024-02-01.1" / "_pm").is_file()
    assert not (parquet.parent / "_pm").exists()


def test_a_damaged_footer_leaves_no_partial_file(table):
    parquet = table / "2024-02-02.2" / "data.parquet"
    data = parquet.read_bytes()
    parquet.write_bytes(data[:-200] + bytes(192) + data[-8:])
    result = Migration(table).run()
    assert (result.written, result.failed) == (1, 1)
    assert [path.name for path in parquet.parent.iterdir()] == ["data.parquet"]


def test_partitions_in_cold_storage_are_skipped_and_listed(table):
    generated = 1 << 60
    patch_partition(table, 1, lambda time, masked, name, word: (time, masked & ~generated, name, word | REMOTE_BIT))
    (table / "2024-02-02.2" / "data.parquet").unlink()
    plan = plan_migration(table)
    assert actions(plan) == [("2024-02-01.1", "generate"), ("2024-02-02.2", "skip")]
    result = Migration(table).run()
    assert (result.written, result.failed) == (1, 0)
    assert result.skipped == (str(table / "2024-02-02.2" / "data.parquet"),)


def test_a_remote_partition_with_a_local_file_is_migrated_by_the_masked_size(table):
    patch_partition(table, 1, lambda time, masked, name, word: (time, masked, name, word | REMOTE_BIT))
    Migration(table).run()
    expected = GOLDEN / "o3-2-tail" / "2024-02-02.2" / "converter.pm"
    assert (table / "2024-02-02.2" / "_pm").read_bytes() == expected.read_bytes()


def test_a_partition_without_a_size_is_refused(table):
    patch_partition(table, 1, lambda time, masked, name, word: (time, masked, name, 0))
    result = Migration(table).run()
    assert "holds no size of its Parquet file" in result.problems[0]


def test_the_tail_of_a_crash_is_refused(tmp_path):
    """`_txn` has the file's length; the footer there describes bytes that a later append has replaced."""
    table = copied("crash-stale-tail", tmp_path)
    parquet = [partition for partition in read_txn(table / "_txn").partitions if partition.is_parquet]
    for partition, folder in zip(parquet, sorted(table.glob("2024*")), strict=True):
        tail = (folder / "data.parquet.last-8192-bytes").read_bytes()
        with (folder / "data.parquet").open("wb") as file:
            file.seek(partition.parquet_size - len(tail))
            file.write(tail)
        shutil.copy(GOLDEN / "crash-stale-tail" / folder.name / "_pm", folder / "_pm")
    before = contents(table)
    result = Migration(table).run()
    assert (result.written, result.failed) == (0, 3)
    assert all("a crash left that tail" in problem for problem in result.problems)
    assert contents(table) == before


def test_an_overwritten_tail_is_refused_even_with_the_right_number_of_rows(table):
    """A shorter append lies over chunks of the dead one; the sidecar has its snapshot."""
    Migration(table).run()
    place = table / "2024-02-02.2"
    sidecar = Sidecar.open(place / "_pm")
    data = bytearray((place / "_pm").read_bytes())
    length = sidecar.footer.parquet_footer_length
    data[sidecar.footer.offset : sidecar.footer.offset + 8] = layout.U64.pack(5000 - 8 - length)
    (place / "_pm").write_bytes(sealed(data, sidecar))
    parquet = bytearray((place / "data.parquet").read_bytes())
    parquet[4992:5000] = layout.U32.pack(length) + b"PAR1"
    (place / "data.parquet").write_bytes(parquet)
    result = Migration(table).run()
    assert "the one at byte 5000 has replaced; a crash" in result.problems[0]


def sealed(data, sidecar):
    crc = sidecar.footer.crc_offset
    data[crc : crc + 4] = layout.U32.pack(zlib.crc32(data[8:crc]))
    return data


# ---- again and again


def test_a_second_run_does_nothing(table):
    Migration(table).run()
    before = {path: path.stat().st_mtime_ns for path in table.rglob("*")}
    result = Migration(table).run()
    assert (result.planned, result.unchanged) == (0, 2)
    assert {path: path.stat().st_mtime_ns for path in table.rglob("*")} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:40] + b"\xff" + path.read_bytes()[41:]),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: shutil.copy(GOLDEN / "o3-0" / "2024-02-02.2" / "_pm", path),
        lambda path: shutil.copy(GOLDEN / "o3-0" / "2024-02-01.1" / "_pm", path),
    ],
    ids=["bad byte", "cut short", "empty", "stale", "of another file"],
)
def test_a_stale_or_damaged_sidecar_is_made_again(table, damage):
    Migration(table).run()
    before = contents(table)
    damage(table / "2024-02-02.2" / "_pm")
    assert actions(plan_migration(table)) == [("2024-02-01.1", "none"), ("2024-02-02.2", "regenerate")]
    assert Migration(table).run().written == 1
    assert contents(table) == before


def test_sound_sidecars_are_made_again_on_request(table):
    Migration(table).run()
    before = contents(table)
    assert Migration(table, Wish(regenerate=True)).run().written == 2
    assert contents(table) == before


def test_a_live_sidecar_of_questdb_is_sound(tmp_path):
    for case in CASES:
        table = tmp_path / case
        shutil.copytree(GOLDEN / case, table)
        assert plan_migration(table).work == (), case


class KilledFiles(Files):
    """Ends the process at one of the calls, before or after it is done."""

    def __init__(self, call, *, after):
        self.call, self.after = call, after

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name != super().__getattribute__("call"):
            return found

        def killed(*arguments):
            if self.after:
                found(*arguments)
            elif name == "create":
                path, data = arguments
                found(path, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)

        return killed


CALLS = ["create", "sync", "rename", "sync_folder"]


@pytest.mark.parametrize(("call", "after"), [(call, after) for call in CALLS for after in (False, True)])
def test_a_step_that_is_killed_anywhere_can_be_done_again(table, call, after):
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            carry_out(plan_migration(table).work[0], KilledFiles(call, after=after))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    for sidecar in table.glob("*/_pm"):
        assert sidecar.read_bytes() == (GOLDEN / "o3-2-tail" / sidecar.parent.name / "converter.pm").read_bytes()
    Migration(table).run()
    assert sorted(path.name for path in table.glob("2024*/*")) == ["_pm", "_pm", "data.parquet", "data.parquet"]


def test_a_run_that_is_killed_in_the_middle_is_finished_by_the_next(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    pq.write_table(pa.table({"a": range(1000)}), folder / "0.parquet")
    for number in range(1, 100):
        shutil.copy(folder / "0.parquet", folder / f"{number}.parquet")
    command = [sys.executable, "-m", "windrow", "migrate", str(folder), "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while len(list(folder.glob("*.pm"))) < 5:
            assert process.poll() is None
        process.kill()
    done = len(list(folder.glob("*.pm")))
    assert 5 <= done < 100
    for sidecar in folder.glob("*.pm"):
        Sidecar.open(sidecar)
    result = Migration(folder).run()
    assert (result.unchanged, result.written) == (done, 100 - done)
    assert len(list(folder.iterdir())) == 200


@pytest.mark.parametrize("call", CALLS)
def test_a_disk_that_fails_leaves_no_partial_file(table, call):
    class Full(Files):
        pass

    def refuse(*_):
        raise StorageError("the disk is full")

    setattr(Full, call, refuse)
    step = plan_migration(table).work[0]
    if call == "sync_folder":
        assert carry_out(step, Full()).problem == "the disk is full"
        return
    report = carry_out(step, Full())
    assert report.problem == "the disk is full"
    assert [path.name for path in Path(step.parquet).parent.iterdir()] == ["data.parquet"]


def test_two_attempts_at_one_step_do_no_harm(table):
    """The second removes what the first has staged; the first then finds its sidecar in place."""
    step = plan_migration(table).work[0]

    class Overtaken(Files):
        def sync(self, path):
            super().sync(path)
            assert carry_out(step).problem is None
            assert not path.exists()

    assert carry_out(step, Overtaken()).problem is None
    expected = GOLDEN / "o3-2-tail" / step.partition / "converter.pm"
    assert Path(step.sidecar).read_bytes() == expected.read_bytes()
    assert len(list(Path(step.sidecar).parent.iterdir())) == 2


def test_a_folder_in_the_place_of_a_sidecar_is_refused_by_name(table):
    (table / "2024-02-02.2" / "_pm").mkdir()
    result = Migration(table).run()
    assert (result.written, result.failed) == (1, 1)
    assert str(table / "2024-02-02.2" / "_pm") in result.problems[0]


def test_a_partition_that_changed_meanwhile_is_left_for_the_next_run(table):
    step = plan_migration(table).work[1]
    shutil.copy(GOLDEN / "o3-4-rewritten" / "_txn", table / "_txn")
    report = carry_out(step)
    assert "changed the partition meanwhile" in report.problem
    assert report.retryable
    assert not Path(step.sidecar).exists()


# ---- from one layout to the next, without the Parquet file


def test_chains_collapse_to_the_committed_footer_without_the_parquet_file(tmp_path):
    table = tmp_path / "o3"
    shutil.copytree(GOLDEN / "o3-2-tail", table, copy_function=shutil.copyfile)
    footers = [len(list(Sidecar.open(path).snapshots())) for path in sorted(table.glob("*/_pm"))]
    assert max(footers) > 1
    before = {path: Sidecar.open(path) for path in table.glob("*/_pm")}
    wish = Wish(rewrite=Sections.KEEP)
    assert "rewrite" in [action for _, action in actions(plan_migration(table, wish))]
    Migration(table, wish).run()
    for path, old in before.items():
        new = Sidecar.open(path)
        assert len(list(new.snapshots())) == 1
        assert (new.parquet_size, new.chunks.tolist()) == (old.parquet_size, old.chunks.tolist())
    assert plan_migration(table, wish).work == plan_migration(table).work == ()


@pytest.mark.parametrize("sections", Sections)
def test_a_cold_partition_is_rewritten_though_its_data_is_elsewhere(tmp_path, sections):
    table = tmp_path / "o3"
    shutil.copytree(GOLDEN / "o3-2-tail", table, copy_function=shutil.copyfile)
    generated = 1 << 60
    patch_partition(table, 1, lambda time, masked, name, word: (time, masked & ~generated, name, word | REMOTE_BIT))
    (table / "2024-02-02.2" / "data.parquet").unlink()
    result = Migration(table, Wish(rewrite=sections)).run()
    assert result.failed == 0
    sidecar = Sidecar.open(table / "2024-02-02.2" / "_pm")
    assert len(list(sidecar.snapshots())) == 1
    ours = bool(sidecar.header.feature_flags & layout.Feature.WINDROW_SCHEMA)
    assert ours == (sections == Sections.WINDROW)
    assert Migration(table, Wish(rewrite=sections)).run().planned == 0


def test_new_sidecars_get_our_sections_from_the_file_on_request(table):
    Migration(table, Wish(rewrite=Sections.WINDROW)).run()
    sidecar = Sidecar.open(table / "2024-02-02.2" / "_pm")
    assert sidecar.extensions.schema_bytes is not None
    assert plan_migration(table, Wish(rewrite=Sections.WINDROW)).work == ()
    Migration(table, Wish(rewrite=Sections.QUESTDB)).run()
    expected = GOLDEN / "o3-2-tail" / "2024-02-02.2" / "converter.pm"
    assert (table / "2024-02-02.2" / "_pm").read_bytes() == expected.read_bytes()


# ---- plain folders


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    (folder / "b").mkdir(parents=True)
    (folder / "_hidden").mkdir()
    for name in ("a.parquet", "b/c.parquet", "_hidden/d.parquet", "_e.parquet"):
        pq.write_table(pa.table({"value": range(10)}), folder / name)
    return folder


def test_plain_files_get_sidecars_beside_them(files):
    assert Migration(files).run().written == 2
    assert sorted(str(path.relative_to(files)) for path in files.rglob("*.pm")) == ["_a.pm", "b/_c.pm"]
    stored = (files / "a.parquet").read_bytes()
    expected = build_sidecar(lambda start, length: stored[start : start + length], len(stored), name="a")
    assert (files / "_a.pm").read_bytes() == expected
    assert Migration(files / "a.parquet").run().unchanged == 1


def test_a_plain_file_that_was_written_again_gets_a_new_sidecar(files):
    Migration(files).run()
    stamp = (files / "_a.pm").stat().st_mtime_ns
    os.utime(files / "a.parquet", ns=(stamp + 1, stamp + 1))
    plan = plan_migration(files)
    assert actions(plan) == [("a.parquet", "regenerate"), ("c.parquet", "none")]
    Migration(files).run()
    assert plan_migration(files).work == ()


def test_places_that_are_no_folder_of_ours_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="on local files"):
        plan_migration("s3://bucket/table")
    with pytest.raises(NotFound, match="no such file or folder"):
        plan_migration(tmp_path / "nowhere")
    (tmp_path / "windrow.db").touch()
    with pytest.raises(InvalidInput, match="windrow check --repair"):
        plan_migration(tmp_path)


def test_a_plan_can_be_printed_and_exported(table):
    plan = plan_migration(table)
    assert "2 generate" in repr(plan)
    assert json.loads(json.dumps(plan.to_dict()))["counts"]["generate"] == 2
    assert plan.of(Action.GENERATE) == plan.work
    assert "written" in repr(Migration(table).run())


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_does_the_same(spark, tmp_path):
    for number in range(5):
        table = copied("o3-2-tail", tmp_path).rename(tmp_path / f"o3_{number}")
        (table / "_name").unlink()
    (tmp_path / "o3_4" / "2024-02-02.2" / "data.parquet").write_bytes(b"")
    heard = []
    result = Migration(tmp_path).run(spark=spark, on_report=heard.append)
    assert (result.written, result.failed) == (9, 1)
    assert len({report.sidecar for report in heard}) == 9
    for sidecar in tmp_path.glob("*/*/_pm"):
        assert sidecar.read_bytes() == (GOLDEN / "o3-2-tail" / sidecar.parent.name / "converter.pm").read_bytes()
    assert plan_migration(tmp_path).work == ()


def test_a_partition_knows_its_flags():
    """The masks that these tests set are those that `_txn` is read by."""
    cold = Partition(0, 1, -1, 100 | REMOTE_BIT, 1 << 61)
    assert (cold.is_parquet, cold.remote, cold.parquet_generated, cold.parquet_size) == (True, True, False, 100)

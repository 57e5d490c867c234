"""A sidecar that grows while it is read: a reader sees an update whole, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from windrow.errors import Damaged
from windrow.sidecar import layout, writer
from windrow.sidecar.blocks import RowGroups
from windrow.sidecar.content import READ_WHOLE
from windrow.sidecar.publish import publish_new, publish_update
from windrow.sidecar.reader import Sidecar

CALLS = ("pread", "fstat", "lseek")
"""What opening a file asks of the system."""
MOST_CALLS = 6
WRITER = """
import sys
from pathlib import Path
from tests.sidecar.test_growing import grow
path, stop = map(Path, sys.argv[1:3])
while not stop.exists():
    grow(path)
"""


def rows_of(count: int, columns: int) -> RowGroups:
    return RowGroups(np.full(count, 5, "<u8"), np.zeros((count, columns), layout.CHUNK))


def sidecar(row_groups: int) -> bytes:
    columns = writer.Columns([f"c{n}" for n in range(8)], np.zeros(8, layout.DESCRIPTOR))
    return writer.create(columns, rows_of(row_groups, 8), writer.SnapshotFields(1000, 100))


def grow(path: Path) -> None:
    """Publish an update: a Parquet file that is one byte longer, and another row group at times."""
    found = Sidecar.open(path)
    size = found.parquet_size + 1
    added = [found.row_group_count] if size % 10 == 0 else []
    snapshot = writer.SnapshotFields(size - 108, 100)
    publish_update(path, writer.update(found, rows_of(len(added), 8), added, snapshot))


SMALL, LARGE = sidecar(3), sidecar(200)


@pytest.fixture(params=[SMALL, LARGE], ids=["read whole", "read in parts"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    target = tmp_path / "_pm"
    publish_new(target, request.param)
    return target


def before_call(number: int, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen right before one of the calls by which a file is opened."""
    calls = iter(range(1000))
    real = {name: getattr(os, name) for name in CALLS}

    def wrapped(name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if next(calls) == number:
                for each in CALLS:
                    monkeypatch.setattr(os, each, real[each])
                act()
            return real[name](*arguments)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, wrapped(name))


def test_the_sizes_are_on_both_sides_of_what_is_read_whole() -> None:
    assert len(SMALL) < READ_WHOLE < len(LARGE)


@pytest.mark.parametrize("number", range(MOST_CALLS))
def test_an_update_between_any_two_reads_is_seen_whole_or_not_at_all(
    number: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_call(number, lambda: grow(path), monkeypatch)
    found = Sidecar.open(path)
    monkeypatch.undo()
    assert found.parquet_size == (1109 if number == 0 else 1108)
    assert [each.parquet_size for each in found.snapshots()][-1] == 1108
    found.verify()


def test_a_snapshot_that_was_opened_stays_as_it_was(path: Path) -> None:
    found = Sidecar.open(path, verify=False)
    for _ in range(12):
        grow(path)
    found.verify()
    assert (found.parquet_size, len(list(found.snapshots()))) == (1108, 1)
    assert Sidecar.open(path).parquet_size == 1120
    assert Sidecar.open(path, parquet_size=1111).parquet_size == 1111


def test_bytes_that_were_read_by_an_older_size_are_a_snapshot(path: Path) -> None:
    size = path.stat().st_size
    grow(path)
    data = path.read_bytes()[:size]
    with pytest.raises(Damaged, match="PARQUET_META_FILE_SIZE"):
        Sidecar.of(data)
    assert Sidecar.of(data, committed=size).parquet_size == 1108


def test_a_size_beyond_the_file_is_looked_at_twice(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a file is written anew in its place, header first."""
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    before_call(2, lambda: path.write_bytes(whole) and None, monkeypatch)
    assert Sidecar.open(path).parquet_size == 1108


@pytest.mark.parametrize("left", [0, 7, 40, 300])
def test_a_size_that_stays_beyond_the_file_is_damage(left: int, path: Path) -> None:
    os.truncate(path, left)
    with pytest.raises(Damaged, match=r"PARQUET_META_FILE_SIZE|a header has"):
        Sidecar.open(path)


@pytest.mark.parametrize("count", [1_500, pytest.param(20_000, marks=pytest.mark.long)])
def test_readers_meet_no_error_while_another_process_writes(count: int, tmp_path: Path) -> None:
    path, stop = tmp_path / "_pm", tmp_path / "stop"
    publish_new(path, SMALL)
    command = [sys.executable, "-c", WRITER, str(path), str(stop)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as process:
        try:
            while Sidecar.open(path).parquet_size == 1108:
                assert process.poll() is None
            seen = [Sidecar.open(path).parquet_size for _ in range(count)]
        finally:
            stop.touch()
    assert process.returncode == 0
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


def test_readers_in_threads_meet_no_error(tmp_path: Path) -> None:
    path = tmp_path / "_pm"
    publish_new(path, SMALL)
    done, errors = threading.Event(), []

    def read() -> None:
        try:
            while not done.is_set():
                Sidecar.open(path)
        except Damaged as error:
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(40):
        grow(path)
    done.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert Sidecar.open(path).parquet_size == 1148


def test_what_is_not_published_is_not_seen(make: SimpleNamespace) -> None:
    data = make.apply(SMALL, writer.update(Sidecar.of(SMALL), rows_of(1, 8), [3], writer.SnapshotFields(2000, 100)))
    unpublished = SMALL[:8] + data[8:]
    assert Sidecar.of(unpublished).parquet_size == 1108
    assert Sidecar.of(data).parquet_size == 2108

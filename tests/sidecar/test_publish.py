"""Publishing: a crash at any point leaves the old snapshot or the new one."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from windrow.errors import Conflict, Damaged, NotFound, StorageError
from windrow.sidecar import writer
from windrow.sidecar.publish import publish_new, publish_update
from windrow.sidecar.reader import Sidecar

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "pm"
CASE = json.loads((GOLDEN / "e_update_chain_3.json").read_text())
STEPS = [(GOLDEN / name).read_bytes() for name in CASE["files"]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "_split.pm"
    publish_new(target, STEPS[0])
    return target


def change(before: bytes, after: bytes) -> writer.Update:
    return writer.Update(len(before), after[len(before) :], len(after))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done to files, in order; all of it is really done."""
    log: list[str] = []
    for name in ("pwrite", "fsync", "replace"):
        real = getattr(os, name)

        def recorded(*arguments: Any, name: str = name, real: Any = real) -> Any:
            offset = f" at {arguments[2]}" if name == "pwrite" else ""
            log.append(name + offset)
            return real(*arguments)

        monkeypatch.setattr(os, name, recorded)
    return log


def test_a_new_file_is_there_whole_and_leaves_nothing_beside_it(path: Path) -> None:
    assert path.read_bytes() == STEPS[0]
    assert list(path.parent.iterdir()) == [path]


def test_a_new_file_is_durable_before_it_has_its_name(tmp_path: Path, calls: list[str]) -> None:
    publish_new(tmp_path / "_split.pm", STEPS[0])
    assert calls == ["pwrite at 0", "fsync", "replace", "fsync"]


def test_updates_append_and_then_patch_the_header(path: Path) -> None:
    for before, after in pairwise(STEPS):
        publish_update(path, change(before, after))
        assert path.read_bytes() == after


def test_the_bytes_are_durable_before_the_header_speaks_of_them(path: Path, calls: list[str]) -> None:
    publish_update(path, change(STEPS[0], STEPS[1]))
    assert calls == ["pwrite at 396", "fsync", "pwrite at 0", "fsync"]


@pytest.mark.parametrize("fault", ["pwrite at 396", "fsync", "pwrite at 0"])
def test_until_the_header_is_patched_readers_see_the_old_snapshot(
    fault: str, path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = {name: getattr(os, name) for name in ("pwrite", "fsync")}

    def failing(name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if name == fault.split(maxsplit=1)[0] and (name == "fsync" or f"at {arguments[2]}" in fault):
                raise OSError(28, "No space left on device")
            return recorded[name](*arguments)

        return call

    for name in recorded:
        monkeypatch.setattr(os, name, failing(name))
    with pytest.raises(StorageError, match="No space left"):
        publish_update(path, change(STEPS[0], STEPS[1]))
    assert Sidecar.open(path).footer.size == 396
    monkeypatch.undo()
    publish_update(path, change(STEPS[0], STEPS[1]))
    assert Sidecar.open(path).footer.size == 656


def test_leftovers_of_a_crash_are_overwritten(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\xee" * 2_000)
    publish_update(path, change(STEPS[0], STEPS[1]))
    assert path.read_bytes()[: len(STEPS[1])] == STEPS[1]
    assert Sidecar.open(path).footer.size == 656


def test_the_second_of_two_updates_from_one_snapshot_is_a_conflict(path: Path) -> None:
    publish_update(path, change(STEPS[0], STEPS[1]))
    with pytest.raises(Conflict, match="another update came first"):
        publish_update(path, change(STEPS[0], STEPS[1]))
    assert path.read_bytes() == STEPS[1]


def test_an_update_past_a_dead_footer_is_published_after_it(tmp_path: Path, make: SimpleNamespace) -> None:
    case = json.loads((GOLDEN / "e4_update_dead_footer_tail.json").read_text())
    first, dead, wanted = ((GOLDEN / name).read_bytes() for name in case["files"])
    path = tmp_path / "_split.pm"
    publish_new(path, first)
    publish_update(path, change(first, dead))
    publish_update(path, change(dead, wanted))
    assert path.read_bytes() == wanted
    assert [snapshot.footer.size for snapshot in Sidecar.open(path).snapshots()] == [1112, 396]


def test_there_must_be_a_sidecar_to_update(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such sidecar"):
        publish_update(tmp_path / "_none.pm", change(STEPS[0], STEPS[1]))
    (tmp_path / "_empty.pm").write_bytes(b"")
    with pytest.raises(Damaged, match="PARQUET_META_FILE_SIZE"):
        publish_update(tmp_path / "_empty.pm", change(STEPS[0], STEPS[1]))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        publish_new(tmp_path / "none" / "_split.pm", STEPS[0])

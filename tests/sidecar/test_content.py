"""The bytes of a sidecar: a large file is read in parts, stays the one that was opened, and is let go."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from windrow.errors import Damaged, NotFound, StorageError
from windrow.sidecar import layout
from windrow.sidecar.content import READ_WHOLE, Held, OpenSidecar, open_content

SMALL, LARGE = bytes(range(200)), bytes(range(256)) * (READ_WHOLE // 200)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "_large.pm"
    path.write_bytes(LARGE)
    return path


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_small_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "_small.pm"
    path.write_bytes(SMALL)
    before = descriptors()
    content = open_content(str(path))
    assert isinstance(content, Held)
    assert descriptors() == before
    assert (content.size, content.buffer, content.read(7, 3)) == (200, SMALL, SMALL[7:10])


def test_a_large_file_is_read_in_parts_and_mapped_when_all_of_it_is_wanted(large: Path) -> None:
    content = open_content(str(large))
    assert isinstance(content, OpenSidecar)
    assert (content.size, content.read(70_000, 5)) == (len(LARGE), LARGE[70_000:70_005])
    assert isinstance(content.buffer, mmap.mmap)
    assert content.buffer[:] == LARGE
    assert content.read(70_000, 5) == LARGE[70_000:70_005]


def committed(size: int, length: int) -> bytes:
    """A file of a length whose header commits a part of it."""
    return layout.U64.pack(size) + LARGE[8:length]


@pytest.mark.parametrize("size", [80, 200, READ_WHOLE, READ_WHOLE + 1, len(LARGE) - 100])
def test_nothing_behind_the_committed_size_is_looked_at(size: int, tmp_path: Path) -> None:
    path = tmp_path / "_growing.pm"
    path.write_bytes(committed(size, len(LARGE)))
    content = open_content(str(path))
    assert content.size == len(content.buffer) == size
    assert content.buffer[:] == committed(size, size)


@pytest.mark.parametrize("size", [0, 79, 601, 2**64 - 1])
def test_a_committed_size_that_cannot_be_leaves_the_bytes_that_are_there(size: int, tmp_path: Path) -> None:
    path = tmp_path / "_odd.pm"
    path.write_bytes(committed(size, 600))
    assert open_content(str(path)).size == 600


@pytest.mark.parametrize("size", [600, READ_WHOLE + 600])
def test_an_update_that_is_published_after_the_header_was_read_is_not_seen(size: int, tmp_path: Path) -> None:
    path = tmp_path / "_growing.pm"
    path.write_bytes(committed(size, size))
    content = open_content(str(path))
    path.write_bytes(committed(size + 100, size + 100))
    assert content.committed == content.size == size


def test_a_replaced_file_stays_the_one_that_was_opened(large: Path, tmp_path: Path) -> None:
    content = open_content(str(large))
    other = tmp_path / "other"
    other.write_bytes(b"x" * len(LARGE))
    other.replace(large)
    assert content.read(10, 4) == LARGE[10:14]
    assert content.buffer[:] == LARGE


def test_a_file_that_was_cut_under_us_is_an_error_not_a_crash(large: Path) -> None:
    content = open_content(str(large))
    os.truncate(large, 100)
    with pytest.raises(Damaged, match=r"_large.pm: the file ends at byte 100"):
        content.read(90, 20)
    with pytest.raises(Damaged, match=r"_large.pm"):
        _ = content.buffer


def test_descriptors_are_let_go(large: Path) -> None:
    before = descriptors()
    contents = [open_content(str(large)) for _ in range(20)]
    for content in contents[:10]:
        assert content.buffer[0] == 0
    assert descriptors() > before
    del contents, content
    assert descriptors() == before


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"missing.pm: no such sidecar"):
        open_content(str(tmp_path / "missing.pm"))
    with pytest.raises(StorageError, match=r"cannot be read"):
        open_content(str(tmp_path))

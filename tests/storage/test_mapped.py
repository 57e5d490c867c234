"""A mapped file is read without its pages staying in memory."""

import mmap
import os
from pathlib import Path

import pytest

from windrow.splits.digests import checksum, digest_of, joined_digest
from windrow.storage import LocalStore, let_go, pieces

MIB = 2**20
SIZE = 24 * MIB + 123


@pytest.fixture
def mapped(tmp_path):
    # what is loaded for a checksum is a mapped file too
    checksum(b"")
    joined_digest([(0, 1), (0, 1)])
    (tmp_path / "data").write_bytes(os.urandom(SIZE))
    with (tmp_path / "data").open("rb") as file:
        yield memoryview(mmap.mmap(file.fileno(), SIZE, access=mmap.ACCESS_READ))


def resident():
    """Bytes of mapped files that are resident."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile"))


def test_pages_that_are_let_go_are_not_resident_and_have_the_same_bytes(mapped):
    before = resident()
    first = bytes(mapped)
    assert resident() - before > SIZE // 2
    let_go(mapped)
    assert resident() - before < MIB
    assert bytes(mapped) == first


def test_pieces_are_all_of_the_bytes_and_are_let_go(mapped):
    before = resident()
    rises, sizes = [], []
    for piece in pieces(mapped):
        checksum(piece)
        sizes.append(len(piece))
        rises.append(resident() - before)
    assert sum(sizes) == SIZE
    assert len(sizes) > 2
    assert max(rises) < SIZE // 2


def test_a_digest_and_a_copy_leave_nothing_resident(mapped, tmp_path):
    expected = digest_of(bytes(mapped))
    let_go(mapped)
    before = resident()
    assert digest_of(mapped) == expected
    LocalStore(tmp_path / "lake").put("copy", mapped)
    assert resident() - before < 2 * MIB
    assert (tmp_path / "lake" / "copy").read_bytes() == bytes(mapped)


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc"), b""])
def test_other_bytes_stay_as_they_are(data):
    let_go(data)
    assert [bytes(piece) for piece in pieces(data)] == [bytes(data)]
    assert digest_of(data) == digest_of(bytes(data))

"""One range of each of many local files: what is plain is read, what is odd is left to whoever opens it."""

from __future__ import annotations

import os

import pytest

from windrow.errors import InvalidInput
from windrow.storage import ByteRange, LocalStore


@pytest.fixture
def store(tmp_path):
    made = LocalStore(tmp_path / "lake")
    made.put("t/a", b"0123456789")
    made.put("t/deep/b", b"abcdef")
    return made


def test_ranges_are_read_in_their_order(store):
    wanted = [("t/deep/b", 6, ByteRange(0, 6)), ("t/a", 10, ByteRange(3, 4))]
    assert store.read_each(wanted) == [b"abcdef", b"3456"]


def test_files_that_are_missing_or_of_another_size_are_left(store):
    wanted = [("t/none", 10, ByteRange(0, 1)), ("t/a", 9, ByteRange(0, 1)), ("t/a", 10, ByteRange(8, 5))]
    assert store.read_each(wanted) == [None, None, None]


def test_links_and_pipes_are_left(store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c").write_bytes(b"x")
    (tmp_path / "lake" / "link").symlink_to(outside / "c")
    (tmp_path / "lake" / "folder").symlink_to(outside)
    os.mkfifo(tmp_path / "lake" / "pipe")
    wanted = [(key, 1, ByteRange(0, 1)) for key in ("link", "folder/c", "pipe")]
    assert store.read_each(wanted) == [None, None, None]


def test_keys_are_checked(store):
    with pytest.raises(InvalidInput):
        store.read_each([("../outside", 1, ByteRange(0, 1))])

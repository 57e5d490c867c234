"""File objects that many threads can seek and read at once."""

from __future__ import annotations

import io
import random
import threading

import pytest

from windrow.errors import InvalidInput
from windrow.storage import open_store
from windrow.storage.handles import Handle, StoredFile


@pytest.fixture
def handle():
    store = open_store("memory://")
    store.put("digits", b"0123456789")
    return Handle(StoredFile(store, "digits"))


def test_it_reads_like_a_file(handle):
    assert handle.read(3) == b"012"
    assert handle.tell() == 3
    assert handle.seek(-4, io.SEEK_END) == 6
    assert handle.read() == b"6789"
    assert handle.read(5) == b""
    handle.seek(1)
    handle.seek(2, io.SEEK_CUR)
    buffer = bytearray(20)
    assert handle.readinto(buffer) == 7
    assert buffer[:7] == b"3456789"
    handle.seek(8)
    assert handle.readall() == b"89"
    assert (handle.readable(), handle.seekable()) == (True, True)


def test_a_position_before_the_file_is_refused(handle):
    with pytest.raises(InvalidInput, match="seek to -1"):
        handle.seek(-1)


def test_every_thread_has_its_own_position(handle):
    problems = []

    def work(seed):
        draw = random.Random(seed)
        for _ in range(300):
            start, length = draw.randrange(10), draw.randrange(1, 10)
            handle.seek(start)
            if handle.read(length) != b"0123456789"[start : start + length]:
                problems.append((start, length))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []

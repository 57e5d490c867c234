"""Threads of an engine stay known to Python, as long as there is room for what is kept of them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter

import pyarrow as pa
import pytest
from tests.reading.samples import parquet, put_file

from windrow.engines.duckdb import threads
from windrow.engines.duckdb.filesystem import VirtualFileSystem, new_database
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage import LocalStore

ROWS, ROW_GROUPS = 40_960, 20


@pytest.fixture
def database():
    with new_database() as connection:
        yield connection


class Watched(VirtualReader):
    """A file that takes its time, and knows which threads read it, and how often these were new to Python."""

    def __init__(self, *given):
        super().__init__(*given)
        self.known = threading.local()
        self.reads, self.new = Counter(), Counter()

    def read_at(self, address, length):
        me = threading.get_native_id()
        self.reads[me] += 1
        self.new[me] += not hasattr(self.known, "read")
        self.known.read = True
        time.sleep(0.01)
        return super().read_at(address, length)


def read_by_threads(connection, folder):
    """Have a database read a file; gives reads of each of its threads, and how often it was new."""
    store = LocalStore(folder)
    file = put_file(store, "a.parquet", parquet(pa.table({"a": range(ROWS)}), row_group_size=ROWS // ROW_GROUPS))
    [virtual] = plan_files(ScanContext("lake", store), [file]).virtual
    files = VirtualFileSystem()
    connection.execute("SET threads = 4")
    connection.register_filesystem(files)
    with Watched(virtual, ReadContext("lake", store)) as reader, files.serving(reader) as path:
        assert connection.execute(f"SELECT sum(a) FROM '{path}'").fetchall() == [(ROWS * (ROWS - 1) // 2,)]
    theirs = reader.reads.keys() - {threading.get_native_id()}
    return {each: (reader.reads[each], reader.new[each]) for each in theirs}


def test_a_thread_that_comes_back_is_known(database, tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_room", threading.Semaphore(100))
    found = read_by_threads(database, tmp_path)
    assert sum(reads for reads, _ in found.values()) > len(found) >= 1
    assert {new for _, new in found.values()} == {1}


def test_without_room_a_thread_is_new_at_every_read(database, tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_room", threading.Semaphore(0))
    found = read_by_threads(database, tmp_path)
    assert sum(reads for reads, _ in found.values()) > len(found) >= 1
    assert all(reads == new for reads, new in found.values())


def test_room_is_taken_once_for_each_thread(database, tmp_path, monkeypatch):
    room = threading.Semaphore(100)
    monkeypatch.setattr(threads, "_room", room)
    found = read_by_threads(database, tmp_path)
    taken = 0
    while room.acquire(blocking=False):
        taken += 1
    assert 100 - taken == len(found)


@pytest.mark.parametrize("start", ["main", "thread"])
def test_threads_of_python_take_no_room(monkeypatch, start):
    monkeypatch.setattr(threads, "_known", threads._Known())
    monkeypatch.setattr(threads, "_room", room := threading.Semaphore(1))
    if start == "main":
        threads.keep_thread()
    else:
        thread = threading.Thread(target=threads.keep_thread)
        thread.start()
        thread.join()
    assert room.acquire(blocking=False)


def test_a_process_ends_while_threads_are_kept(tmp_path):
    script = "import sys; from pathlib import Path; from tests.engines.duckdb.test_threads import *; "
    script += "open_until_the_end = new_database(); "
    script += "print(len(read_by_threads(open_until_the_end, Path(sys.argv[1]))) > 0)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "True", "")

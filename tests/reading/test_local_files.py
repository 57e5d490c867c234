"""Files on this machine are announced before they are read, as far as they are not at hand."""

from __future__ import annotations

import os
import time
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.reading.samples import metrics, parquet, put_file

from windrow.model.limits import READ_OVER
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.reading.local_files import NearFile, OpenFiles
from windrow.reading.needed_ranges import needed_bytes
from windrow.reading.plain_paths import plain_paths
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage import LocalStore
from windrow.storage.handles import Handle
from windrow.storage.local import OpenedFile

MIB = 2**20


def virtual_of(store, tables, columns=None, **options):
    files = [put_file(store, f"{number}.parquet", parquet(table, **options)) for number, table in enumerate(tables)]
    [virtual] = plan_files(ScanContext("lake", store), files, columns=columns).virtual
    return virtual


def evicted(path):
    """Let the system forget what it has of a file."""
    file = os.open(path, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def opened_by(file):
    pool = OpenFiles()
    return pool.get(NearFile(file, file.store, pool))


@pytest.fixture
def cold(tmp_path):
    """A file that only the disk has."""
    store = LocalStore(tmp_path)
    file = put_file(store, "cold", np.arange(MIB, dtype=np.int64).tobytes())
    evicted(tmp_path / "cold")
    if opened_by(file).is_at_hand(4 * MIB):
        pytest.skip("the disk is memory")
    return file


def test_what_was_announced_is_at_hand_soon(cold):
    opened = opened_by(cold)
    opened.announce(4 * MIB, MIB)
    until = time.monotonic() + 20
    while not opened.is_at_hand(5 * MIB - 1) and time.monotonic() < until:
        time.sleep(0.01)
    assert opened.is_at_hand(4 * MIB)
    assert opened.is_at_hand(5 * MIB - 1)


def test_a_place_behind_the_end_is_nothing_to_wait_for(cold):
    assert opened_by(cold).is_at_hand(9 * MIB)


def test_ranges_are_announced_once_and_not_too_early(cold, monkeypatch):
    announced = []
    monkeypatch.setattr(OpenedFile, "announce", lambda _, *span: announced.append(span))
    near = NearFile(cold, cold.store, OpenFiles())
    near.expect([[0, 10], [MIB, 20], [100 * MIB, 30], [180 * MIB, 40]])
    assert near.read_at(0, 8) == bytes(8)
    assert announced == [(0, 10), (MIB, 20)]
    near.read_at(0, 8)
    assert len(announced) == 2
    monkeypatch.setattr(OpenedFile, "read_at", lambda _, offset, length: bytes(length))
    near.read_at(90 * MIB, 8)
    near.read_at(170 * MIB, 8)
    assert announced[2:] == [(100 * MIB, 30), (180 * MIB, 40)]


def test_a_large_scan_announces_all_that_it_needs(tmp_path, monkeypatch):
    store, announced = LocalStore(tmp_path), []
    table = metrics(1, 400_000)
    virtual = virtual_of(store, [table, table], columns=["value", "metric"], row_group_size=50_000)
    assert all(file.identity.size > 4 * MIB for file in virtual.files)
    monkeypatch.setattr(OpenedFile, "announce", lambda opened, *span: announced.append((opened, span)))
    with VirtualReader(virtual, ReadContext("lake", store)) as reader:
        for address, length in virtual.chunks.tolist():
            reader.read_at(address, length)
    spans = {number: [] for number in range(2)}
    opened = list(dict.fromkeys(each for each, _ in announced))
    for each, (start, length) in announced:
        spans[opened.index(each)].append((start, start + length))
    for number, offset, length in needed_bytes(virtual).tolist():
        assert any(low <= offset and offset + length <= high for low, high in spans[number])
    for found in spans.values():
        assert found == sorted(found)
        assert all(low - high > READ_OVER for (_, high), (low, _) in pairwise(found))


def test_small_scans_announce_nothing(tmp_path, monkeypatch):
    announced = []
    monkeypatch.setattr(OpenedFile, "announce", lambda _, *span: announced.append(span))
    virtual = virtual_of(LocalStore(tmp_path), [metrics(1, 3000)])
    with VirtualReader(virtual, ReadContext("lake", LocalStore(tmp_path))) as reader:
        reader.read_at(0, 4)
    assert announced == []


def test_large_files_are_read_by_their_paths_only_when_they_are_at_hand(tmp_path):
    table = pa.table({"number": np.arange(2_200_000)})
    virtual = virtual_of(LocalStore(tmp_path), [table], compression="none", use_dictionary=False)
    [file] = virtual.files
    assert file.identity.size >= 16 * MIB
    assert plain_paths(virtual) is not None
    evicted(tmp_path / "0.parquet")
    if opened_by(file).is_at_hand(8 * MIB):
        pytest.skip("the disk is memory")
    assert plain_paths(virtual) is None
    assert plain_paths(virtual, anyway=True) is not None


def test_a_large_file_of_which_nothing_is_needed_announces_nothing(tmp_path):
    store = LocalStore(tmp_path)
    table = pa.table({"number": np.arange(800_000), "nothing": pa.nulls(800_000, pa.int64())})
    virtual = virtual_of(store, [table], columns=["nothing"], compression="none", use_dictionary=False)
    assert virtual.files[0].identity.size > 4 * MIB
    with VirtualReader(virtual, ReadContext("lake", store)) as reader:
        assert pq.ParquetFile(Handle(reader)).read()["nothing"].null_count == 800_000

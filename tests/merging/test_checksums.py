"""Every page of a split states its checksum; a merge refuses a page that is not what was written."""

from __future__ import annotations

import zlib
from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged, Incompatible, InvariantViolation, StorageError
from windrow.merging import inputs as inputs_module
from windrow.merging.merge import MergeOptions
from windrow.merging.output import Layout
from windrow.merging.splits import merge_splits
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.window import Window
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import read_footer
from windrow.parquet.page_headers import read_page_header
from windrow.splits import writer
from windrow.splits.writer import SplitName, write_split
from windrow.storage import open_store

SETTINGS = TableSettings.of(sort="host|timestamp/V2", bloom_filters=["host"])
SCOPE = CompactionScope("uid", "default", 0, 0, SETTINGS.sort.canonical(), 900)
WINDOW = Window.of(1_700_000_100, 900)
FIELD_IDS = {"host": 1, "timestamp": 2, "value": 3, "tags": 4, "note": 5}
SMALL = Layout(400, 100)


def points(seed, first, count):
    """Points of hosts from one on, with columns of every way through a merge."""
    rng = np.random.default_rng(seed)
    host = first + np.sort(rng.integers(0, 10, count))
    return pa.table(
        {
            "host": [f"h{n:03d}" for n in host],
            "timestamp": pa.array(WINDOW.start * 1000 + np.sort(rng.integers(0, 900_000, count))).cast(
                pa.timestamp("ms")
            ),
            "value": pa.array(rng.normal(size=count), mask=rng.random(count) < 0.1),
            "tags": pa.array([[("k", f"v{n % 7}")] for n in range(count)], pa.map_(pa.string(), pa.string())),
            "note": [f"note {n}" for n in rng.integers(0, count, count)],
        }
    )


def write(store, number, first, count=1000):
    name = SplitName("metrics", f"in{number}", "c1", 1)
    return write_split(store, points(number, first, count), SETTINGS, SCOPE, WINDOW, name, FIELD_IDS)


def merged(store, splits, **options):
    name = SplitName("metrics", "out", "c2", 2)
    return merge_splits(store, splits, SETTINGS, lambda _: name, MergeOptions(layout=SMALL, **options))[0]


@pytest.fixture
def store():
    return open_store("memory://")


def pages(data):
    """Where the bytes of each page lie, with its row group, its column and the checksum that its header states."""
    footer = read_footer(data, name="file")
    for group, chunks in enumerate(footer.chunks):
        for leaf, chunk in enumerate(chunks):
            at = int(chunk_starts(chunks[leaf : leaf + 1])[0])
            end = at + int(chunk["total_compressed_size"])
            while at < end:
                header = read_page_header(data[at:end], name="file")
                body = at + header.header_size
                at = body + header.compressed_size
                yield group, footer.leaves[leaf].path[0], body, at, header.crc


def check(data):
    """Every page states its checksum, and others verify it."""
    found = list(pages(data))
    assert all(crc == zlib.crc32(data[start:end]) for _, _, start, end, crc in found)
    pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
    return {column for _, column, *_ in found}


@pytest.mark.parametrize("ours", [True, False], ids=["our pages", "pages of pyarrow"])
def test_every_page_of_a_written_split_states_its_checksum(store, ours, monkeypatch):
    monkeypatch.setattr(writer, "OUR_PAGES", 0 if ours else 10**9)
    assert check(store.get(write(store, 0, 0).key)) == set(FIELD_IDS)


def test_every_page_of_a_merge_states_its_checksum_and_engines_read_them(store, tmp_path):
    splits = [write(store, 0, 0), write(store, 1, 0), write(store, 2, 50)]
    data = store.get(merged(store, splits).key)
    assert check(data) == set(FIELD_IDS)
    path = tmp_path / "merged.parquet"
    path.write_bytes(data)
    assert duckdb.sql(f"select count(value), count(tags) from '{path}'").fetchall()[0][1] == 3000


def flipped(store, key, place, bit=3):
    data = bytearray(store.get(key))
    data[place] ^= 1 << bit
    store.put(key, bytes(data))


@pytest.mark.parametrize("column", list(FIELD_IDS))
@pytest.mark.parametrize("other", [0, 50], ids=["decoded", "copied"])
def test_a_damaged_page_is_refused_with_its_file_row_group_and_column(store, column, other):
    first = merged(store, [write(store, 0, 0), write(store, 1, 0)])
    inputs = [first, write(store, 2, other)]
    at = [(group, (start + end) // 2) for group, name, start, end, _ in pages(store.get(first.key)) if name == column]
    group, place = at[-1]
    flipped(store, first.key, place)
    with pytest.raises(Damaged, match=rf"out\.parquet, row group {group}, column '{column}") as caught:
        merged(store, inputs)
    assert "checksum" in str(caught.value) or "CRC" in str(caught.value)


def test_files_without_checksums_are_merged_and_get_them(store, monkeypatch):
    arrow = pq.ParquetWriter
    with monkeypatch.context() as older:
        older.setattr(
            writer.pq, "ParquetWriter", lambda *given, **told: arrow(*given, **told | {"write_page_checksum": False})
        )
        splits = [write(store, 0, 0), write(store, 1, 50)]
    assert all(crc is None for *_, crc in pages(store.get(splits[0].key)))
    assert check(store.get(merged(store, splits).key)) == set(FIELD_IDS)
    assert check(store.get(merged(store, [replace(each, digest=None) for each in splits]).key)) == set(FIELD_IDS)


def test_a_split_has_the_digest_of_its_bytes_however_it_was_written(store):
    splits = [write(store, 0, 0), write(store, 1, 0), write(store, 2, 50)]
    splits.append(merged(store, splits))
    for split in splits:
        assert split.digest == f"crc32:{zlib.crc32(store.get(split.key)):08x}"


@pytest.mark.parametrize(("first_read", "budget"), [(500, 1), (10**9, 2**27)], ids=["by row groups", "at once"])
def test_a_merge_refuses_any_changed_byte_of_an_input(store, first_read, budget, monkeypatch):
    monkeypatch.setattr(inputs_module, "FIRST_READ", first_read)
    first = merged(store, [write(store, 0, 0), write(store, 1, 0)])
    inputs = [first, write(store, 2, 3), write(store, 3, 50)]
    clean = store.get(first.key)
    kept = {info.key for info in store.list()}
    rng = np.random.default_rng(1)
    # page headers are under no checksum of their own
    headers = [start - back for _, _, start, _, _ in pages(clean) for back in rng.integers(1, 20, 1)]
    for place in [*rng.integers(0, len(clean), 40).tolist(), *rng.permutation(headers)[:40].tolist()]:
        flipped(store, first.key, place, int(rng.integers(0, 8)))
        with pytest.raises((Damaged, InvariantViolation, Incompatible, StorageError)):
            merged(store, [replace(split, sidecar=None) for split in inputs], memory_budget=budget)
        assert {info.key for info in store.list()} == kept
        store.put(first.key, clean)
    merged(store, inputs, memory_budget=budget)

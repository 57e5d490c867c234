"""A row group whose columns have their pages at different rows is cut by rows, and every row is in one piece."""

from __future__ import annotations

import io
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reading.samples import put_file

from windrow.cache import CacheKey, MemoryCache
from windrow.engines.duckdb.database import new_database
from windrow.engines.duckdb.filesystem import VirtualFileSystem
from windrow.planning.address_space import Part, Piece
from windrow.planning.data_files import open_sidecars
from windrow.planning.row_cuts import MOST_ANEW, cut_by_rows
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.planning.virtual_file import lay_out
from windrow.planning.virtual_schema import merged_schema, schema_of
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage import LocalStore, open_store
from windrow.storage.handles import Handle
from windrow.testing.recording import RecordingStore

ROWS = 4000
START = datetime(2026, 1, 1, tzinfo=UTC)


def table_of(seed, rows=ROWS, nulls=0.2):
    """Columns of all flat types: some repeat, some do not, some have nulls."""
    draw = np.random.default_rng(seed)
    number = draw.integers(0, 2**40, rows)
    mask = draw.random(rows) < nulls
    return pa.table(
        {
            "key": pa.array(np.arange(rows)),
            "wide": pa.array(number, mask=mask),
            "narrow": pa.array(draw.integers(-9, 9, rows).astype(np.int32)),
            "unsigned": pa.array(draw.integers(0, 2**63, rows).astype(np.uint64) * 2, mask=mask),
            "double": pa.array(draw.normal(size=rows), mask=draw.random(rows) < nulls),
            "single": pa.array(draw.normal(size=rows).astype(np.float32)),
            "flag": pa.array(draw.random(rows) < 0.3, mask=mask),
            "exact": pa.array([Decimal(int(n) % 10**6) / 100 for n in number], pa.decimal128(30, 2), mask=mask),
            "day": pa.array([date(2026, 1, 1) + timedelta(days=int(n) % 500) for n in number]),
            "ts": pa.array([START + timedelta(microseconds=int(n)) for n in number], pa.timestamp("us", "UTC")),
            "tag": pa.array([f"tag {n % 9}" for n in number], mask=mask),
            "text": pa.array([f"text of {n}" * (1 + int(n) % 3) for n in number], mask=draw.random(rows) < nulls),
            "bytes": pa.array([int(n).to_bytes(8, "big") for n in number], pa.binary(8)),
            "never": pa.nulls(rows, pa.int64()),
        }
    )


TEXTS, FIXED, NUMBERS = ("text",), ("double", "single"), ("key", "wide", "narrow")
ENCODINGS = {
    "as Arrow chooses": {},
    "plain": {"use_dictionary": False},
    "packed": {
        "use_dictionary": False,
        "column_encoding": dict.fromkeys(NUMBERS, "DELTA_BINARY_PACKED")
        | dict.fromkeys(FIXED, "BYTE_STREAM_SPLIT")
        | {"text": "DELTA_BYTE_ARRAY", "tag": "DELTA_LENGTH_BYTE_ARRAY"},
    },
    "small dictionaries": {"dictionary_pagesize_limit": 500},
}


UNEVEN = pa.table({"number": range(ROWS), "text": [f"text {n:06d}" for n in range(ROWS)]})
UNEVEN_PAGES = {"use_dictionary": False, "compression": "none", "data_page_size": 3000, "write_batch_size": 1}
"""No page of one column ends near the middle where one of the other does."""


def by_arrow(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=len(table), **{"write_batch_size": 16, "data_page_size": 900} | options)
    return sink.getvalue()


def by_duckdb(table, folder, version="V1"):
    path = folder / "copied.parquet"
    with duckdb.connect() as connection:
        connection.register("rows", table)
        size = max(2048, len(table))
        connection.execute(f"copy rows to '{path}' (format parquet, row_group_size {size}, parquet_version {version})")
    return path.read_bytes()


def pieces_of(store, data, count, columns=None, cache=None, *, least_rows=1, most_anew=9.0):
    """The pieces that the only row group of a file is cut into, and what of it they make.

    Pages of small files are large for them: all may be written anew, unless a test is about that.
    """
    file = put_file(store, "file.parquet", data)
    [sidecar] = open_sidecars(ScanContext("lake", store), [file])
    pieces = cut_by_rows(
        cache, file, sidecar, Piece(0, 0, 0), columns, count, least_rows=least_rows, most_anew=most_anew
    )
    footer = schema_of(sidecar)
    names = list(dict.fromkeys(leaf.path[0] for leaf in footer.leaves))
    schema = merged_schema([footer], names if columns is None else columns)
    return pieces, lay_out([file], schema, [Part(sidecar, pieces)])


def read_by_arrow(virtual, store):
    with VirtualReader(virtual, ReadContext("lake", store)) as reader:
        table = pq.ParquetFile(Handle(reader)).read()
        reader.finish()
    return table


def read_by_duckdb(virtual, store):
    files = VirtualFileSystem()
    with new_database() as connection, VirtualReader(virtual, ReadContext("lake", store)) as reader:
        connection.register_filesystem(files)
        with files.serving(reader, virtual.name) as path:
            return connection.sql(f"from read_parquet('{path}')").to_arrow_table()


def assert_same(found, expected):
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        assert found[name].cast(expected[name].type).to_pylist() == expected[name].to_pylist(), name


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 99),
    encoding=st.sampled_from(list(ENCODINGS)),
    version=st.sampled_from(["1.0", "2.0"]),
    compression=st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4"]),
    indexed=st.booleans(),
    nulls=st.sampled_from([0.0, 0.2, 0.98]),
    count=st.integers(2, 5),
)
def test_pieces_of_files_by_arrow_hold_every_row_once(
    tmp_path, seed, encoding, version, compression, indexed, nulls, count
):
    table, store = table_of(seed, nulls=nulls), LocalStore(tmp_path)
    options = {"data_page_version": version, "compression": compression, "write_page_index": indexed}
    pieces, virtual = pieces_of(store, by_arrow(table, **options, **ENCODINGS[encoding]), count)
    assert len(pieces) == virtual.row_groups == count
    assert virtual.placed.rows.sum() == ROWS
    assert_same(read_by_arrow(virtual, store), table)
    assert_same(read_by_duckdb(virtual, store), table)


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_pages_of_a_whole_chunk_stay_whole(tmp_path, version):
    """DuckDB writes one page for a chunk: to write it anew would take longer than to read it."""
    pieces, virtual = pieces_of(LocalStore(tmp_path), by_duckdb(table_of(1), tmp_path, version), 3, most_anew=MOST_ANEW)
    assert pieces == [Piece(0, 0, 0)]
    assert virtual.row_groups == 1


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_pages_of_files_by_duckdb_can_be_cut(tmp_path, version):
    table, store = table_of(2), LocalStore(tmp_path)
    pieces, virtual = pieces_of(store, by_duckdb(table, tmp_path, version), 3)
    assert len(pieces) == 3
    assert_same(read_by_arrow(virtual, store), table)
    assert_same(read_by_duckdb(virtual, store), table)


def test_pages_without_a_cut_are_mapped_and_not_copied(tmp_path):
    data = by_arrow(UNEVEN, **UNEVEN_PAGES)
    _, virtual = pieces_of(LocalStore(tmp_path), data, 2)
    copied = sum(len(held) for _, held in virtual.held)
    assert 0 < copied < 2 * UNEVEN_PAGES["data_page_size"]
    assert sum(segment.length for segment in virtual.segments) > 0.9 * len(data)


def test_cuts_are_at_rows_where_most_columns_have_the_edge_of_a_page(tmp_path):
    table = pa.table({"a": range(ROWS), "b": range(ROWS), "c": [f"{n:09d}" for n in range(ROWS)]})
    data = by_arrow(table, max_rows_per_page=500, data_page_size=2**20, write_batch_size=1)
    pieces, virtual = pieces_of(LocalStore(tmp_path), data, 2)
    assert [piece.cut.rows for piece in pieces] == [range(2000), range(2000, ROWS)]
    assert not any(held for _, held in virtual.held)


def test_only_columns_that_are_read_count(tmp_path):
    """A nested column stays whole, and so do row groups where one is read."""
    table = pa.table({"a": range(ROWS), "nested": [[n] * (n % 3) for n in range(ROWS)]})
    store, data = LocalStore(tmp_path), by_arrow(table)
    assert len(pieces_of(store, data, 2)[0]) == 1
    pieces, virtual = pieces_of(store, data, 2, ["a"])
    assert len(pieces) == 2
    assert_same(read_by_arrow(virtual, store), table.select(["a"]))


def test_pieces_are_no_smaller_than_is_worth_a_thread(tmp_path):
    data = by_arrow(table_of(4))
    assert len(pieces_of(LocalStore(tmp_path), data, 8, least_rows=ROWS // 3)[0]) == 3
    assert len(pieces_of(LocalStore(tmp_path), data, 8, least_rows=ROWS)[0]) == 1


def test_where_pages_are_is_learnt_once(tmp_path):
    """The second time neither headers nor pages that were written anew are read again."""
    store, cache = RecordingStore(LocalStore(tmp_path)), MemoryCache(2**20)
    data = by_arrow(table_of(5))
    file = put_file(store, "file.parquet", data)
    [sidecar] = open_sidecars(ScanContext("lake", store), [file])
    before = len(store.calls)
    first = cut_by_rows(cache, file, sidecar, Piece(0, 0, 0), None, 2, least_rows=1, most_anew=9)
    assert len(store.calls) > before
    before = len(store.calls)
    second = cut_by_rows(cache, file, sidecar, Piece(0, 0, 0), None, 2, least_rows=1, most_anew=9)
    assert len(store.calls) == before
    assert [piece.cut.rows for piece in first] == [piece.cut.rows for piece in second]
    assert len(first) == 2


def test_what_was_learnt_of_another_content_is_not_used(tmp_path):
    store, cache = LocalStore(tmp_path), MemoryCache(2**20)
    pieces_of(store, by_arrow(table_of(6)), 2, cache=cache)
    table = table_of(7, nulls=0.5)
    _, virtual = pieces_of(store, by_arrow(table), 2, cache=cache)
    assert_same(read_by_arrow(virtual, store), table)


class _WrongCache:
    """A cache that gives back what nobody put into it."""

    def __init__(self, data):
        self.data = data

    def get(self, key: CacheKey, supplier):
        return self.data if key.uri.endswith("#pages") else supplier(key)


@pytest.mark.parametrize("data", [b"", b"WRPAGES1", b"WRPAGES1" + np.arange(30).astype("<i8").tobytes()])
def test_a_record_that_is_wrong_costs_time_and_no_rows(tmp_path, data):
    table, store = table_of(8), LocalStore(tmp_path)
    pieces, virtual = pieces_of(store, by_arrow(table), 2, cache=_WrongCache(data))
    assert len(pieces) == 1
    assert_same(read_by_arrow(virtual, store), table)


def test_a_damaged_page_leaves_the_row_group_whole(tmp_path):
    """The engine that reads it has the error, and none comes from planning."""
    data = bytearray(by_arrow(UNEVEN, **UNEVEN_PAGES | {"compression": "zstd"}))
    whole, _ = pieces_of(LocalStore(tmp_path), bytes(data), 2)
    cut = next(run for run in whole[0].cut.runs.values() if run.behind)
    page = cut.whole.stop
    start, size = int(cut.pages.offsets[page]), int(cut.pages.compressed_sizes[page])
    data[start + size // 2 : start + size] = bytes(size - size // 2)
    pieces, _ = pieces_of(LocalStore(tmp_path), bytes(data), 2)
    assert pieces == [Piece(0, 0, 0)]


def test_a_remote_file_is_asked_for_nothing_more(tmp_path):
    store = RecordingStore(open_store("memory://"))
    file = put_file(store, "file.parquet", by_arrow(table_of(9)))
    [sidecar] = open_sidecars(ScanContext("lake", store), [file])
    before = len(store.calls)
    assert cut_by_rows(None, file, sidecar, Piece(0, 0, 0), None, 2, least_rows=1, most_anew=9) == [Piece(0, 0, 0)]
    assert len(store.calls) == before


def test_pages_that_only_the_disk_has_are_not_looked_for(tmp_path):
    store, data = LocalStore(tmp_path), by_arrow(table_of(10, 40_000))
    file = put_file(store, "file.parquet", data)
    [sidecar] = open_sidecars(ScanContext("lake", store), [file])
    opened = os.open(tmp_path / "file.parquet", os.O_RDWR)
    os.fsync(opened)
    os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(opened)
    if store.local.open(file.key).is_at_hand(len(data) // 2):
        pytest.skip("the disk is memory")
    assert cut_by_rows(None, file, sidecar, Piece(0, 0, 0), None, 2, least_rows=1) == [Piece(0, 0, 0)]
    store.get(file.key)
    assert len(cut_by_rows(None, file, sidecar, Piece(0, 0, 0), None, 2, least_rows=1)) == 2


@pytest.mark.parametrize(
    ("rows", "threads", "count"), [(300_000, 2, 2), (300_000, 8, 2), (300_000, 1, 1), (200_000, 2, 1)]
)
def test_a_plan_has_a_piece_for_each_thread_of_what_is_large(tmp_path, rows, threads, count):
    table = pa.table({"a": np.arange(rows), "b": np.arange(rows) % 7})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows)
    store = LocalStore(tmp_path)
    file = put_file(store, "file.parquet", sink.getvalue())
    [virtual] = plan_files(ScanContext("lake", store, threads=threads), [file]).virtual
    assert virtual.row_groups == count
    assert_same(read_by_arrow(virtual, store), table)


def test_readers_that_share_a_file_share_whole_row_groups(tmp_path):
    """What is in the memory of one machine does not decide what the others read."""
    rows = 300_000
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(rows)}), sink, row_group_size=rows)
    store = LocalStore(tmp_path)
    file = put_file(store, "file.parquet", sink.getvalue())
    plans = [plan_files(ScanContext("lake", store, threads=2), [file], share=(part, 2)) for part in range(2)]
    assert sum(plan.rows for plan in plans) == rows

"""What is learnt from pages is what pyarrow's rows teach, whoever wrote them and however."""

from __future__ import annotations

from contextlib import suppress

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learning.lakes import assert_alike, expected, some_rows
from tests.statistics.files import columns

from windrow.errors import WindrowError
from windrow.learning.chunks import learn_chunks
from windrow.learning.fetched_bytes import FetchedBytes
from windrow.learning.pages import open_pages, values_of
from windrow.learning.scanned_files import ScannedFile
from windrow.learning.tasks import Rank, Task
from windrow.planning.data_files import DataFile, open_sidecars
from windrow.planning.scan_context import ScanContext
from windrow.storage import open_store


class NoCatalog:
    """A catalog that has nothing."""

    def load(self, files, names):
        return {}

    def store(self, learnt):
        pass


def scanned(path):
    store = open_store(str(path.parent))
    file = DataFile(store, path.name, store.head(path.name).identity)
    [sidecar] = open_sidecars(ScanContext(str(path.parent), store), [file])
    return ScannedFile(file, sidecar, NoCatalog(), FetchedBytes(file, None))


def learnt(path, *, pieces=None, rank=Rank.DICTIONARY):
    """What is learnt of all columns of a file, and the row groups of which no kernel of ours would."""
    file = scanned(path)
    every = range(len(file.layout.row_groups))
    for column in file.columns.values():
        for row_groups in pieces or [tuple(every)]:
            left = learn_chunks(Task(rank, 0.0, file, column, row_groups))
            assert not left or not learn_chunks(Task(Rank.OTHER, 0.0, file, column, tuple(left)))
            lacking = tuple(number for _, number in file.open_samples([column.name], row_groups))
            assert not lacking or not learn_chunks(Task(Rank.SAMPLE, 0.0, file, column, lacking))
            assert not list(file.open_samples([column.name], row_groups))
    assert not file.failed
    return file, file.collector.changed


def check(path, **given):
    file, found = learnt(path, **given)
    oracle = expected(path, file.layout.file, list(file.columns))
    assert found.keys() == oracle.keys()
    for name, summary in found.items():
        assert_alike(summary, oracle[name])


WRITERS = st.fixed_dictionaries(
    {
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from([1, 64, 2**20]),
        "data_page_size": st.sampled_from([1, 64, 2**20]),
        "write_batch_size": st.sampled_from([1, 3, 1024]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4"]),
        "write_statistics": st.booleans(),
        "store_decimal_as_integer": st.booleans(),
        "write_page_checksum": st.booleans(),
    }
)


@settings(max_examples=150)
@given(columns(), WRITERS)
def test_files_of_pyarrow(tmp_path_factory, column, options):
    values, rows = column
    path = tmp_path_factory.mktemp("pages") / "x.parquet"
    table = pa.table({"x": values})
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        for start, count in zip(np.cumsum([0, *rows]).tolist(), rows, strict=False):
            writer.write_table(table.slice(start, count), row_group_size=max(count, 1))
    check(path)


@settings(max_examples=40)
@given(columns(), st.sampled_from(["snappy", "zstd", "uncompressed"]), st.sampled_from(["V1", "V2"]))
def test_files_of_duckdb(tmp_path_factory, column, codec, version):
    values, _ = column
    path = tmp_path_factory.mktemp("pages") / "x.parquet"
    rows = pa.table({"x": values, "y": pa.array(range(len(values)), pa.int64())})
    with duckdb.connect() as connection:
        connection.register("written", rows)
        options = f"format parquet, compression {codec}, parquet_version {version}, row_group_size 2048"
        connection.execute(f"copy (from written) to '{path}' ({options})")
    check(path)


LARGE = {
    "in dictionaries": {},
    "without dictionaries": {"use_dictionary": False},
    "that leave their dictionary in the middle": {"dictionary_pagesize_limit": 20_000},
    "in small pages": {"data_page_size": 2_000, "write_batch_size": 100},
    "in differences": {
        "use_dictionary": False,
        "column_encoding": {"n": "DELTA_BINARY_PACKED", "part": "BYTE_STREAM_SPLIT", "long": "DELTA_BYTE_ARRAY"},
    },
    "without statistics": {"write_statistics": False},
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("rank", [Rank.DICTIONARY, Rank.OTHER])
def test_columns_of_many_values(tmp_path, name, rank):
    path = tmp_path / "x.parquet"
    pq.write_table(some_rows(60_000), path, row_group_size=17_000, **LARGE[name])
    check(path, rank=rank)
    check(path, rank=rank, pieces=[(2,), (0, 3), (1,)])


def test_a_dictionary_is_learnt_before_the_sample_is(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(some_rows(60_000).select(["few"]), path, row_group_size=17_000, data_page_size=4_000)
    file = scanned(path)
    column = file.columns["few"]
    learn_chunks(Task(Rank.DICTIONARY, 0.0, file, column, (0, 1, 2, 3)))
    assert not file.collector.changed["few"].sample.known.any()
    assert [number for _, number in file.open_samples(["few"], [0, 1, 2, 3])] == [0, 1, 2, 3]
    learn_chunks(Task(Rank.SAMPLE, 0.0, file, column, (1, 3)))
    assert [number for _, number in file.open_samples(["few"], [0, 1, 2, 3])] == [0, 2]


def test_entries_that_no_row_uses_are_no_values(tmp_path):
    path = tmp_path / "x.parquet"
    codes = np.arange(30_000) % 50 + 10
    texts = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), [f"t{n:03}" for n in range(100)])
    pq.write_table(pa.table({"x": texts}), path, row_group_size=10_000)
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size > 700, "the writer dropped them"
    _, found = learnt(path)
    assert round(found["x"].sketch.estimate) == 50
    assert found["x"].synopses.whole.minimum == b"t010"
    check(path)


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.string(), pa.decimal128(12, 2), pa.date32(), pa.float64()])
def test_our_own_kernels_read_what_writers_write_most(tmp_path, kind):
    values = pa.array(np.arange(5_000) % 70).cast(pa.int32()).cast(pa.string() if kind == pa.string() else pa.int32())
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": values.cast(kind)}), path, row_group_size=1_000)
    file = scanned(path)
    pages = open_pages(file, file.columns["x"], range(5))
    assert pages.in_dictionary.all()
    assert [each.row_group for each in values_of(pages, range(5))] == [0, 1, 2, 3, 4]
    assert all(len(each.values) == 70 for each in values_of(pages, range(5)))


@settings(max_examples=60)
@given(st.data())
def test_damaged_pages_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("pages") / "x.parquet"
    pq.write_table(some_rows(300).select(["few", "text", "part"]), path, compression="none", data_page_size=200)
    content = bytearray(path.read_bytes())
    end = max(pq.read_metadata(path).row_group(0).column(n).data_page_offset for n in range(3)) + 400
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(4, end))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    file = scanned(path)
    for column in file.columns.values():
        # Whatever else it is, it is an error that the learner passes over.
        with suppress(WindrowError, pa.ArrowException, OSError):
            learn_chunks(Task(Rank.OTHER, 0.0, file, column, (0,)))

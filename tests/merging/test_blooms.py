"""Merged files have the bloom filters that the split writer would have given them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.merging.merge import MergeOptions
from windrow.merging.splits import merge_splits
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.window import Window
from windrow.parquet.footer import read_footer
from windrow.splits.blooms import BLOOM_FILTER
from windrow.splits.writer import SplitName, write_split
from windrow.storage import open_store

COLUMNS = ("host", "value", "count", "small", "flag", "absent", "timestamp", "empty")
SETTINGS = TableSettings.of(sort="host|timestamp/V2", bloom_filters=COLUMNS)
SCOPE = CompactionScope("uid", "default", 0, 0, SETTINGS.sort.canonical(), 900)
WINDOW = Window.of(1_700_000_100, 900)


def points(number, rows, lacking=0.1):
    rng = np.random.default_rng(number)
    return pa.table(
        {
            "host": pa.array(
                [f"h{number}-{n:03d}" for n in rng.integers(0, 300, rows)], mask=rng.random(rows) < lacking
            ),
            "timestamp": pa.array(WINDOW.start * 1000 + rng.integers(0, 900_000, rows)).cast(pa.timestamp("ms")),
            "value": pa.array(rng.normal(size=rows), mask=rng.random(rows) < 0.1),
            "count": rng.integers(0, 10**12, rows),
            "small": pa.array(rng.integers(0, 100, rows).astype(np.int16)),
            "flag": rng.random(rows) < 0.5,
            "empty": pa.nulls(rows, pa.string()),
        }
    )


def written(store, rows, settings=SETTINGS, **changes):
    ids = {name: place for place, name in enumerate(points(0, 1).column_names, 1)}
    names = [SplitName("metrics", f"in{number}", "c1", 1) for number in range(2)]
    return [
        write_split(store, points(number, rows, **changes), settings, SCOPE, WINDOW, name, ids)
        for number, name in enumerate(names)
    ]


def filters(data):
    """The filters of a file as they are stored, by row group and column."""
    footer = read_footer(data, name="file")
    found = {}
    for group, chunks in enumerate(footer.chunks):
        for leaf, chunk in zip(footer.leaves, chunks, strict=True):
            if chunk["bloom_length"] > 0:
                at = int(chunk["bloom_offset"])
                found[group, leaf.path[0]] = data[at : at + int(chunk["bloom_length"])]
    return found


def by_pyarrow(data):
    """The filters that pyarrow gives to the same rows in the same row groups."""
    file, sink = pq.ParquetFile(pa.BufferReader(data)), pa.BufferOutputStream()
    wanted = [name for name in COLUMNS if name in file.schema_arrow.names and name != "flag"]
    options = dict.fromkeys(wanted, BLOOM_FILTER)
    with pq.ParquetWriter(sink, file.schema_arrow, bloom_filter_options=options) as writer:
        for group in range(file.num_row_groups):
            writer.write_table(file.read_row_group(group))
    return filters(sink.getvalue().to_pybytes())


@pytest.mark.parametrize(
    ("rows", "plain"), [(3000, False), (3000, True), (100_000, False)], ids=["encoded", "by pyarrow", "row groups"]
)
def test_filters_are_those_of_the_split_writer(rows, plain):
    store = open_store("memory://")
    inputs = written(store, rows)
    (split,) = merge_splits(
        store, inputs, SETTINGS, lambda _: SplitName("metrics", "out", "c2", 2), MergeOptions(plain=plain)
    )
    data = bytes(store.get(split.key))
    assert filters(data) == by_pyarrow(data)
    assert {name for _, name in filters(data)} == {"host", "timestamp", "value", "count", "small", "empty"}


def test_row_groups_that_are_copied_keep_their_filters():
    store = open_store("memory://")
    inputs = written(store, 100_000, lacking=0)
    (split,) = merge_splits(store, inputs, SETTINGS, lambda _: SplitName("metrics", "out", "c2", 2))
    data = bytes(store.get(split.key))
    assert bytes(store.get(inputs[1].key))[4:100_000] in data
    assert filters(data) == by_pyarrow(data)


def test_row_groups_without_the_filters_of_the_table_are_written_anew():
    store = open_store("memory://")
    inputs = written(store, 100_000, settings=SETTINGS.changed(bloom_filters=["host"]), lacking=0)
    (split,) = merge_splits(store, inputs, SETTINGS, lambda _: SplitName("metrics", "out", "c2", 2))
    data = bytes(store.get(split.key))
    assert bytes(store.get(inputs[1].key))[4:100_000] not in data
    assert filters(data) == by_pyarrow(data)


def test_a_zero_is_found_whatever_its_sign():
    from tests.parquet.number_hashes import hash_numbers

    from windrow.parquet.bloom import BloomFilter, read_bloom
    from windrow.parquet.page_reader import Fixed
    from windrow.splits.blooms import blooms

    (stored,) = blooms(Fixed(np.array([-0.0, 5.0]).view(np.uint64), None), [2])
    bloom = BloomFilter(read_bloom(stored, name="filter"))
    assert bloom.might_contain(hash_numbers(np.array([0.0, -0.0, 5.0]))).all()
    assert not bloom.might_contain(hash_numbers(np.array([6.0])))[0]

"""One virtual Parquet file, planned from sidecars alone: engines read from it what they read from the plain files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.parquet.placed import NullChunks, place_row_groups
from tests.sidecar.whole_footers import restore_footer

from windrow.errors import WindrowError
from windrow.model.predicate import Comparison, Op
from windrow.parquet.page_index import OffsetIndex
from windrow.parquet.placement import VirtualRowGroup, VirtualSchema, page_run
from windrow.parquet.synthesis import synthesise_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar, footer_of
from windrow.sidecar.check import check_against, check_bytes
from windrow.sidecar.pruning import SidecarPruner

DATA = Path(__file__).parents[1] / "data"
BROKEN = DATA / "parquet-testing" / "PARQUET-1481.parquet"
CORPUS = [path for path in sorted((DATA / "parquet-testing").glob("*.parquet")) if path != BROKEN]

READERS = {
    "pyarrow": lambda path: pq.ParquetFile(path).read(),
    "duckdb": lambda path: duckdb.sql(f"select * from read_parquet('{path}')").to_arrow_table(),
    "polars": lambda path: pl.read_parquet(path, glob=False, hive_partitioning=False).to_arrow(),
}


def reader(data):
    return lambda offset, length: data[offset : offset + length]


def sidecar_of(data, name):
    return Sidecar.of(build_sidecar(reader(data), len(data), name=name), name=name)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_column_of_every_row_group_of_the_corpus_is_read_through_its_sidecar(path, tmp_path):
    data = path.read_bytes()
    sidecar = sidecar_of(data, path.name)
    assert check_bytes(bytes(sidecar.buffer), name=path.name) == []
    assert check_against(sidecar, footer_of(reader(data), len(data), name=path.name), len(data)) == []
    footer = restore_footer(sidecar)
    schema = VirtualSchema.of(footer)
    virtual = tmp_path / "virtual.parquet"
    virtual.write_bytes(data + synthesise_footer(schema, place_row_groups(footer, schema)))
    plain, made = pq.ParquetFile(path), pq.ParquetFile(virtual)
    assert made.num_row_groups == plain.num_row_groups == sidecar.row_group_count
    assert made.schema_arrow.remove_metadata() == plain.schema_arrow.remove_metadata()
    for group in range(plain.num_row_groups):
        for column in plain.schema_arrow.names:
            expected = plain.read_row_group(group, [column])
            found = made.read_row_group(group, [column])
            # NaN equals no NaN, so such columns are compared by what they print.
            assert found.equals(expected) or repr(found.to_pylist()) == repr(expected.to_pylist()), (group, column)


def test_the_broken_file_is_refused_with_its_name():
    data = BROKEN.read_bytes()
    with pytest.raises(WindrowError, match="PARQUET-1481"):
        build_sidecar(reader(data), len(data), name=BROKEN.name)


def metrics(seed, rows, metrics=20):
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "metric": pa.array([f"metric_{n:02d}" for n in random.integers(0, metrics, rows)]),
            "host": pa.array([f"host_{n}" for n in random.integers(0, 9, rows)], mask=random.random(rows) < 0.1),
            "ts": pa.array(random.integers(0, 10**9, rows), pa.timestamp("us", "UTC")),
            "value": pa.array(random.normal(size=rows)),
        }
    )
    return table.sort_by([("metric", "ascending"), ("ts", "ascending")])


def in_order(table):
    return table.sort_by([(name, "ascending") for name in ("metric", "ts", "value")]).select(
        ["metric", "host", "ts", "value"]
    )


@pytest.mark.parametrize("engine", READERS)
def test_150_small_files_are_one_file(engine, tmp_path):
    paths = []
    for number in range(150):
        path = tmp_path / f"{number}.parquet"
        rows = metrics(number, 40)
        # Every third file lacks a column, as after a change of schema.
        pq.write_table(rows.drop_columns("host") if number % 3 == 0 else rows, path, compression="zstd")
        paths.append(path)
    whole = restore_footer(sidecar_of(paths[1].read_bytes(), "1"))
    schema = VirtualSchema.of(whole)
    space, files = b"", []
    for path in paths:
        data = path.read_bytes()
        files.append((restore_footer(sidecar_of(data, path.name)), len(space)))
        space += data
    nulls = NullChunks(len(space))
    placed = [place_row_groups(footer, schema, base=base, null_address=nulls.address) for footer, base in files]
    virtual = tmp_path / "virtual" / "one.parquet"
    virtual.parent.mkdir()
    virtual.write_bytes(
        space + nulls.data + synthesise_footer(schema, [group for groups in placed for group in groups])
    )
    expected = pa.concat_tables([pq.read_table(path) for path in paths], promote_options="default")
    found = READERS[engine](virtual)
    assert found.num_rows == 150 * 40
    assert in_order(found).to_pylist() == in_order(expected).to_pylist()


@pytest.mark.parametrize("engine", READERS)
def test_page_runs_of_16_sorted_files_are_one_file(engine, tmp_path):
    wanted = "metric_07"
    pruner = SidecarPruner(Comparison("metric", Op.EQUAL, wanted))
    space, groups, matching, all_pages, kept_pages = bytearray(b"PAR1"), [], [], 0, 0
    for number in range(16):
        path = tmp_path / f"{number}.parquet"
        rows = metrics(number, 4000)
        pq.write_table(rows, path, row_group_size=2000, max_rows_per_page=100, write_page_index=True)
        matching.append(rows.filter(pc.equal(rows["metric"], wanted)))
        data = path.read_bytes()
        sidecar = sidecar_of(data, path.name)
        footer = restore_footer(sidecar)
        for group in np.flatnonzero(pruner.prune(sidecar)).tolist():
            index = sidecar.extensions.granules(group)
            all_pages += len(index.rows)
            for first, stop in runs_of(path, group, wanted):
                kept_pages += stop - first
                groups.append(lay_run(space, data, footer, index, group, first, stop))
    assert 0 < kept_pages < all_pages / 2, "only pages that can hold the metric are taken"
    virtual = tmp_path / "virtual" / "one.parquet"
    virtual.parent.mkdir()
    virtual.write_bytes(bytes(space) + synthesise_footer(VirtualSchema.of(footer), groups))
    found = READERS[engine](virtual)
    found = found.filter(pc.equal(found["metric"].cast(pa.string()), wanted))
    assert in_order(found).to_pylist() == in_order(pa.concat_tables(matching)).to_pylist()


def runs_of(path, group, wanted):
    """The pages that hold the metric, found by looking at the rows."""
    rows = pq.ParquetFile(path).read_row_group(group, ["metric"])["metric"]
    pages = sorted({place // 100 for place, metric in enumerate(rows.to_pylist()) if metric == wanted})
    return [(pages[0], pages[-1] + 1)] if pages else []


def lay_run(space, data, footer, index, group, first, stop):
    """Copy the pages of a run behind each other, as the sidecar's granules say where they are."""
    chunks, rows = [], 0
    for column in range(len(footer.leaves)):
        pages = OffsetIndex(
            index.page_offsets[column].astype(np.int64), index.page_sizes[column].astype(np.int64), index.first_rows
        )
        run = page_run(footer.chunks[group][column], pages, first, stop, group_rows=int(index.rows.sum()))
        chunks.append(run.at(len(space)))
        space += data[run.dictionary.start : run.dictionary.stop] + data[run.pages.start : run.pages.stop]
        rows = run.rows
    return VirtualRowGroup(rows, np.array(chunks), footer.metadata)

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parquet.placed import NullChunks, place_row_groups

from windrow.errors import InvalidInput
from windrow.parquet import chunk as c
from windrow.parquet import footer as f
from windrow.parquet.page_headers import DICTIONARY_PAGE, read_page_header
from windrow.parquet.page_index import parse_offset_index
from windrow.parquet.placement import PageRun, VirtualRowGroup, VirtualSchema, page_run
from windrow.parquet.synthesis import synthesise_footer


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables hold the same; to a table alone, no NaN is like another."""
    return one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())


def load(path: Path) -> tuple[bytes, f.ParquetFooter]:
    data = path.read_bytes()
    return data, f.read_footer(data, name=path.name)


def plain_read(read, path: Path) -> pa.Table:
    """What an engine reads from a plain file; some files are beyond some engines."""
    try:
        return read(path)
    except (OSError, duckdb.Error, pl.exceptions.PolarsError) as error:
        pytest.skip(f"the plain file cannot be read: {error}")


@pytest.mark.parametrize("base", [0, 1000])
def test_the_same_file_is_read_with_a_synthesised_footer(parquet_file, read, tmp_path, base):
    expected = plain_read(read, parquet_file)
    data, footer = load(parquet_file)
    schema = VirtualSchema.of(footer)
    virtual = tmp_path / "virtual.parquet"
    space = b"PAR1".ljust(base, b"\0") + data if base else data
    virtual.write_bytes(space + synthesise_footer(schema, place_row_groups(footer, schema, base=base)))
    found = read(virtual)
    assert found.schema == expected.schema
    if footer.num_rows != footer.row_group_rows.sum():
        return  # one writer counts no rows in the file as a whole, and engines differ in whom they believe
    assert same_rows(found, expected)


def lay_out(*paths: Path, schema: VirtualSchema) -> bytes:
    """The bytes of files one after the other, null chunks, and one footer over all of them."""
    space, files = b"", []
    for path in paths:
        data, footer = load(path)
        files.append((footer, len(space)))
        space += data
    nulls = NullChunks(len(space))
    groups = [
        group
        for footer, base in files
        for group in place_row_groups(footer, schema, base=base, null_address=nulls.address)
    ]
    return space + nulls.data + synthesise_footer(schema, groups)


def test_several_files_are_read_as_one(types, read, tmp_path):
    one, two, virtual = (tmp_path / name for name in ("one.parquet", "two.parquet", "virtual.parquet"))
    pq.write_table(types, one, row_group_size=20, compression="zstd")
    pq.write_table(types.slice(10, 25), two, use_dictionary=False, data_page_version="2.0")
    virtual.write_bytes(lay_out(one, two, one, schema=VirtualSchema.of(load(one)[1])))
    assert same_rows(read(virtual), pa.concat_tables([read(one), read(two), read(one)]))


def test_files_whose_columns_are_in_another_order_are_read_by_name(read, tmp_path):
    one, two, virtual = (tmp_path / name for name in ("one.parquet", "two.parquet", "virtual.parquet"))
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), one)
    pq.write_table(pa.table({"b": ["z"], "a": [3]}), two)
    virtual.write_bytes(lay_out(one, two, schema=VirtualSchema.of(load(one)[1])))
    assert read(virtual).to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "z"]}


def test_columns_that_a_file_does_not_have_are_null(types, read, tmp_path):
    one, two, virtual = (tmp_path / name for name in ("one.parquet", "two.parquet", "virtual.parquet"))
    pq.write_table(types, one)
    pq.write_table(types.select(["sure", "text"]), two, row_group_size=20)
    virtual.write_bytes(lay_out(two, one, schema=VirtualSchema.of(load(one)[1])))
    blank = dict.fromkeys(types.column_names)
    expected = [{**blank, "sure": row["sure"], "text": row["text"]} for row in types.to_pylist()]
    found = read(virtual)
    assert repr(found.slice(0, 50).to_pylist()) == repr(expected)
    assert same_rows(found.slice(50), read(one))


def test_chosen_columns_are_read_alone(types, read, tmp_path):
    plain, virtual = tmp_path / "plain.parquet", tmp_path / "virtual.parquet"
    pq.write_table(types, plain, row_group_size=20, store_schema=False)
    chosen = ["both", "text", "grid", "sure"]
    virtual.write_bytes(lay_out(plain, schema=VirtualSchema.of(load(plain)[1], chosen)))
    assert same_rows(read(virtual), read(plain).select(chosen))


def offset_index(data: bytes, chunk: np.void):
    assert chunk["flags"] & c.HAS_OFFSET_INDEX
    return parse_offset_index(data[chunk["offset_index_offset"] :][: chunk["offset_index_length"]], name="file")


def values_in(data: bytes, pages: range) -> int:
    """How many values pages hold by their headers."""
    values, at = 0, pages.start
    while at < pages.stop:
        header = read_page_header(data[at : pages.stop], name="file")
        assert header.type != DICTIONARY_PAGE
        values, at = values + header.num_values, at + header.header_size + header.compressed_size
    return values


def runs(data: bytes, footer: f.ParquetFooter, group: int, first: int, stop: int) -> list[PageRun]:
    """The same pages of all chunks of a row group."""
    found = []
    for leaf, chunk in zip(footer.leaves, footer.chunks[group], strict=True):
        pages = offset_index(data, chunk)
        group_rows = int(footer.row_group_rows[group])
        run = page_run(chunk, pages, first, stop, group_rows=group_rows)
        if leaf.max_repetition:
            run = page_run(chunk, pages, first, stop, group_rows=group_rows, values=values_in(data, run.pages))
        found.append(run)
    assert len({run.rows for run in found}) == 1, "the pages are not cut at the same rows"
    return found


@pytest.mark.parametrize(
    "options",
    [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"compression": "none"}],
    ids=["dictionary", "plain", "pages of version 2", "uncompressed"],
)
def test_runs_of_pages_are_read_as_row_groups(types, read, tmp_path, options):
    plain, virtual = tmp_path / "plain.parquet", tmp_path / "virtual.parquet"
    pq.write_table(types, plain, row_group_size=30, max_rows_per_page=5, write_page_index=True, **options)
    data, footer = load(plain)
    space, groups = bytearray(b"PAR1"), []
    for group, first, stop in ((1, 2, 3), (0, 0, 6), (0, 3, 5)):
        chunks = []
        for run in runs(data, footer, group, first, stop):
            chunks.append(run.at(len(space)))
            space += data[run.dictionary.start : run.dictionary.stop] + data[run.pages.start : run.pages.stop]
        groups.append(VirtualRowGroup(run.rows, np.array(chunks), footer.metadata))
    virtual.write_bytes(bytes(space) + synthesise_footer(VirtualSchema.of(footer), groups))
    whole = read(plain)
    expected = pa.concat_tables([whole.slice(40, 5), whole.slice(0, 30), whole.slice(15, 10)])
    assert same_rows(read(virtual), expected)


def test_statistics_stay_what_they_are(types, tmp_path):
    plain, virtual = tmp_path / "plain.parquet", tmp_path / "virtual.parquet"
    pq.write_table(types, plain)
    footer = load(plain)[1]
    virtual.write_bytes(lay_out(plain, schema=VirtualSchema.of(footer)))
    ours, theirs = pq.read_metadata(virtual).row_group(0), pq.read_metadata(plain).row_group(0)
    for leaf in footer.leaves:
        found, expected = ours.column(leaf.index), theirs.column(leaf.index)
        if expected.physical_type in ("FLOAT", "DOUBLE"):
            assert not found.statistics.has_min_max
            assert found.statistics.null_count == expected.statistics.null_count
        else:
            assert found.statistics.to_dict() == expected.statistics.to_dict()
    assert pq.read_metadata(virtual).created_by == footer.created_by


def test_truncated_bounds_stay_marked_as_such(data_dir):
    footer = load(data_dir / "parquet-testing/binary_truncated_min_max.parquet")[1]
    schema = VirtualSchema.of(footer)
    again = f.read_footer(synthesise_footer(schema, place_row_groups(footer, schema)), name="virtual")
    marks = c.MIN_EXACT_FALSE | c.MAX_EXACT_FALSE | c.HAS_MIN_VALUE | c.HAS_MAX_VALUE
    assert (again.chunks["flags"] & marks == footer.chunks["flags"] & marks).all()
    assert (again.chunks["flags"] & c.MIN_EXACT_FALSE).any()


@pytest.fixture
def not_a_number(tmp_path) -> Path:
    path = tmp_path / "nan.parquet"
    pq.write_table(pa.table({"v": [1.0, float("nan"), 3.0]}), path)
    return path


def count_above(path: Path) -> int:
    with duckdb.connect() as connection:
        return connection.sql(f"select count(*) from read_parquet('{path}') where v > 5").fetchall()[0][0]


def test_rows_with_nan_are_not_lost_to_bounds(not_a_number, tmp_path):
    # To DuckDB, NaN is above every number; the bounds in the plain file say that nothing is above 3.
    virtual = tmp_path / "virtual.parquet"
    virtual.write_bytes(lay_out(not_a_number, schema=VirtualSchema.of(load(not_a_number)[1])))
    with duckdb.connect() as connection:
        connection.execute("create table native (v double)")
        connection.execute("insert into native values (1), ('nan'), (3)")
        expected = connection.sql("select count(*) from native where v > 5").fetchall()[0][0]
    assert count_above(virtual) == expected == 1


def test_bounds_of_floats_are_kept_where_nan_is_ruled_out(tmp_path):
    plain, virtual = tmp_path / "plain.parquet", tmp_path / "virtual.parquet"
    pq.write_table(pa.table({"v": [1.0, 2.0]}), plain)
    data, footer = load(plain)
    schema = VirtualSchema.of(footer)
    footer.chunks["flags"] |= c.NAN_FREE
    virtual.write_bytes(data + synthesise_footer(schema, place_row_groups(footer, schema)))
    statistics = pq.read_metadata(virtual).row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (1.0, 2.0)


def test_bloom_filters_are_found_at_their_new_place(tmp_path):
    plain, virtual = tmp_path / "plain.parquet", tmp_path / "virtual.parquet"
    pq.write_table(pa.table({"a": range(100)}), plain, bloom_filter_options={"a": {"ndv": 100, "fpp": 0.01}})
    virtual.write_bytes(lay_out(plain, plain, schema=VirtualSchema.of(load(plain)[1])))
    filters = [pq.read_metadata(virtual).row_group(group).column(0).bloom_filter_offset for group in (0, 1)]
    assert filters[1] - filters[0] == len(plain.read_bytes())
    with duckdb.connect() as connection:
        assert connection.sql(f"select count(*) from read_parquet('{virtual}') where a = 42").fetchall() == [(2,)]


def test_text_that_is_no_utf8_is_written_back_as_it_was():
    schema = VirtualSchema(
        b"\x1c\x48\x04root\x15\x00\x00", (), created_by="\udcff", key_value={"a": None, "\udcfe": "x"}
    )
    again = f.read_footer(synthesise_footer(schema, []), name="virtual")
    assert (again.created_by, again.key_value) == ("\udcff", {"a": None, "\udcfe": "x"})
    assert b"\xff" in again.metadata


def test_a_row_group_must_have_a_chunk_for_each_leaf(types, tmp_path):
    pq.write_table(types, tmp_path / "a.parquet")
    schema = VirtualSchema.of(load(tmp_path / "a.parquet")[1])
    with pytest.raises(InvalidInput, match="a row group of 1 chunks for a schema of"):
        synthesise_footer(schema, [VirtualRowGroup(1, np.zeros(1, c.FOOTER_CHUNK))])

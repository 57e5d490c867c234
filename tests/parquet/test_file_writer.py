"""Files of our own pages are read alike by pyarrow, DuckDB and Polars, and say the truth about what they hold."""

import io

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.parquet.chunk_writer import ChunkWriter, Pages
from windrow.parquet.file_writer import FileSchema, FileWriter, arrow_chunks
from windrow.parquet.footer import SortingColumn, read_footer
from windrow.parquet.page_index import parse_column_index, parse_offset_index
from windrow.parquet.page_reader import Coded, Fixed

ROWS, GROUP, GRANULE = 1000, 400, 64


def coded(values):
    """Texts as runs of codes."""
    texts = sorted({value.encode() for value in values if value is not None})
    codes = np.array([-1 if value is None else texts.index(value.encode()) for value in values], np.int32)
    last = np.append(np.flatnonzero(codes[1:] != codes[:-1]), len(codes) - 1)
    return Coded(codes[last], last + 1, pa.array(texts, pa.large_binary()))


def fixed(values):
    """Numbers, and which of them are set."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    numbers = np.asarray(array.fill_null(0)) if array.null_count else np.asarray(array)
    valid = np.asarray(array.is_valid()).astype(np.uint8) if array.null_count else None
    return Fixed(numbers.view(f"u{numbers.itemsize}"), valid), numbers.dtype


def write(table, granule=GRANULE, group=GROUP):
    """The table as a file of our own."""
    schema, sink = FileSchema(table.schema, "windrow test"), io.BytesIO()
    writer = FileWriter(sink, schema, [SortingColumn(0, True, True)])
    rows = [min(group, table.num_rows - low) for low in range(0, table.num_rows, group)]
    groups = [[] for _ in rows]
    for field in table.schema:
        for chunks, own in zip(groups, chunks_of(table[field.name], field, schema, rows, granule), strict=True):
            chunks.extend(own)
    for count, chunks in zip(rows, groups, strict=True):
        writer.append(count, chunks)
    assert writer.finish({"key": "value"}) == len(sink.getvalue())
    return sink.getvalue()


def chunks_of(column, field, schema, rows, granule):
    """The chunks of a column, for each row group one or several."""
    if pa.types.is_nested(field.type):
        return arrow_chunks(column, field, rows, granule)
    leaf = next(leaf for leaf in schema.footer.leaves if leaf.path == (field.name,))
    if pa.types.is_string(field.type):
        own = ChunkWriter(leaf.path, leaf.element.physical_type, nullable=field.nullable)
        return [[chunk] for chunk in own.coded(coded(column.to_pylist()), Pages.of(rows, granule))]
    values, dtype = fixed(column)
    own = ChunkWriter(leaf.path, leaf.element.physical_type, nullable=field.nullable, order=dtype)
    return [[chunk] for chunk in own.fixed(values, Pages.of(rows, granule))]


def table_of(seed):
    rng = np.random.default_rng(seed)
    masks = [rng.random(ROWS) < share for share in (0, 0.1, 1)]
    return pa.table(
        {
            "run": [f"h{n}" for n in np.sort(rng.integers(0, 20, ROWS))],
            "gaps": pa.array([f"h{n}" for n in rng.integers(0, 3, ROWS)], mask=masks[1]),
            "many": [f"text {n} {'x' * (n % 30)}" for n in rng.permutation(ROWS)],
            "grid": pa.array(rng.integers(0, 9, ROWS)),
            "number": pa.array(rng.integers(-(2**62), 2**62, ROWS), mask=masks[1]),
            "narrow": pa.array(rng.integers(0, 2**31, ROWS).astype(np.int32)),
            "unsigned": pa.array(rng.integers(0, 2**63, ROWS).astype(np.uint64) * 2),
            # both kinds of pages in one chunk, in turn
            "mixed": pa.array(np.where(np.arange(ROWS) // 100 % 2, rng.normal(size=ROWS), 1.5)),
            "odd": pa.array(np.where(rng.random(ROWS) < 0.2, np.nan, rng.normal(size=ROWS)), mask=masks[1]),
            "null text": pa.nulls(ROWS, pa.string()),
            "null number": pa.nulls(ROWS, pa.float64()),
            "map": pa.array([[("k", n)] * (n % 3) for n in range(ROWS)], pa.map_(pa.string(), pa.int64())),
        }
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("granule", [1, 7, 64, 5000])
def test_all_engines_read_the_same_rows(tmp_path, seed, granule):
    table, path = table_of(seed), tmp_path / "own.parquet"
    path.write_bytes(write(table, granule))
    found = pq.read_table(path)
    assert repr(found.to_pylist()) == repr(table.to_pylist())
    assert found.schema.equals(table.schema)
    with duckdb.connect() as connection:
        by_duckdb = connection.sql(f"select * from read_parquet('{path}')").to_arrow_table()
    assert repr(by_duckdb.to_pylist()) == repr(table.to_pylist())
    flat = table.drop_columns(["map"])
    by_polars = pl.read_parquet(path, columns=flat.column_names, use_pyarrow=False)
    assert repr(by_polars.to_arrow().cast(flat.schema).to_pylist()) == repr(flat.to_pylist())


def test_the_page_index_says_the_truth():
    table = table_of(0).drop_columns(["map"])
    data = write(table)
    footer = read_footer(data, name="own")
    for group, leaf in np.ndindex(footer.chunks.shape):
        chunk, name = footer.chunks[group, leaf], footer.leaves[leaf].path[0]
        at, length = int(chunk["offset_index_offset"]), int(chunk["offset_index_length"])
        offsets = parse_offset_index(data[at : at + length], name="own")
        assert offsets.first_rows.tolist() == list(range(0, int(footer.row_group_rows[group]), GRANULE))
        at, length = int(chunk["column_index_offset"]), int(chunk["column_index_length"])
        index = parse_column_index(data[at : at + length], name="own")
        for page, first in enumerate(offsets.first_rows.tolist()):
            rows = min(GRANULE, int(footer.row_group_rows[group]) - first)
            values = table[name].slice(GROUP * group + first, rows)
            known = [value for value in values.to_pylist() if value is not None and value == value]  # noqa: PLR0124
            assert index.null_counts[page] == values.null_count
            assert index.null_pages[page] == (values.null_count == rows)
            if known and name != "odd":
                assert index.min_values[page] == plain(min(known), values.type)
                assert index.max_values[page] == plain(max(known), values.type)


def plain(value, kind):
    """A value as Parquet has it in bounds."""
    return value.encode() if isinstance(value, str) else np.array(value, kind.to_pandas_dtype()).tobytes()


def test_statistics_are_those_of_pyarrow():
    table = table_of(1)
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=GROUP)
    ours, theirs = pq.read_metadata(io.BytesIO(write(table))), pq.read_metadata(io.BytesIO(sink.getvalue()))
    for group in range(ours.num_row_groups):
        for column in range(ours.num_columns):
            mine, other = (file.row_group(group).column(column).statistics for file in (ours, theirs))
            assert (mine.null_count, mine.has_min_max) == (other.null_count, other.has_min_max)
            if mine.has_min_max:
                assert (mine.min, mine.max) == (other.min, other.max)


def test_bounds_leave_nan_out_and_zero_has_both_signs():
    table = pa.table({"x": [0.0, np.nan, -0.0]})
    (chunk,) = read_footer(write(table), name="own").chunks.reshape(-1)
    statistics = pq.read_metadata(io.BytesIO(write(table))).row_group(0).column(0).statistics
    assert str((statistics.min, statistics.max)) == "(-0.0, 0.0)"
    assert chunk["null_count"] == 0
    nothing = pq.read_metadata(io.BytesIO(write(pa.table({"x": [np.nan, np.nan]})))).row_group(0).column(0)
    assert not nothing.statistics.has_min_max


def test_required_columns_stay_required():
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("t", pa.string(), nullable=False)])
    table = pa.table({"n": list(range(500)), "t": ["a", "b"] * 250}, schema=schema)
    assert pq.read_table(io.BytesIO(write(table))).equals(table)


def test_the_file_keeps_its_order_its_pairs_and_its_writer():
    footer = read_footer(write(table_of(0)), name="own")
    assert footer.row_group_sorting == ((SortingColumn(0, True, True),),) * 3
    assert footer.key_value["key"] == "value"
    assert footer.created_by == "windrow test"


def test_a_text_that_is_too_long_is_no_bound():
    table = pa.table({"t": ["a", "b" * 5000]})
    data = write(table)
    assert not pq.read_metadata(io.BytesIO(data)).row_group(0).column(0).statistics.has_min_max
    assert pq.read_table(io.BytesIO(data)).equals(table)


@pytest.mark.parametrize("granule", [7, 64, 5000])
@pytest.mark.parametrize("seed", range(3))
def test_distinct_counts_are_exact_where_they_are_given(seed, granule):
    table = table_of(seed).drop_columns(["map"])
    metadata = pq.read_metadata(io.BytesIO(write(table, granule)))
    counted = set()
    for group, place in np.ndindex(metadata.num_row_groups, metadata.num_columns):
        statistics = metadata.row_group(group).column(place).statistics
        values = table[place].slice(group * GROUP, GROUP).drop_null()
        if statistics.has_distinct_count:
            counted.add(table.column_names[place])
            assert statistics.distinct_count == len(values.unique())
    assert {"run", "gaps", "null text"} <= counted
    assert granule < 5000 or "grid" in counted
    assert "number" not in counted


def test_floats_that_are_equal_count_once():
    pattern = np.array([0.0, -0.0, np.nan, 1.5])
    other_nan = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    table = pa.table({"x": np.concatenate([np.tile(pattern, 100), np.tile(other_nan, 100)])})
    statistics = pq.read_metadata(io.BytesIO(write(table, 5000, 5000))).row_group(0).column(0).statistics
    assert statistics.distinct_count == 3


def test_datafusion_plans_with_distinct_counts(tmp_path):
    table = table_of(0).select(["run", "number"])
    path = tmp_path / "own.parquet"
    path.write_bytes(write(table, 64, ROWS))
    settings = {"datafusion.execution.collect_statistics": "true", "datafusion.explain.show_statistics": "true"}
    context = datafusion.SessionContext(datafusion.SessionConfig(settings))
    context.register_parquet("own", str(path))
    plan = str(context.sql("explain select * from own").to_pydict()["plan"])
    assert f"Distinct=Exact({len(table['run'].unique())})" in plan
    assert plan.count("Distinct=") == 1

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parquet.placed import NullChunks, place_row_groups

from windrow.errors import Damaged, Incompatible, InvalidInput
from windrow.parquet import chunk as c
from windrow.parquet import footer as f
from windrow.parquet.page_index import OffsetIndex
from windrow.parquet.placement import FIRST_ADDRESS, VirtualSchema, leaf_positions, null_chunk, page_run
from windrow.parquet.synthesis import synthesise_footer


@pytest.fixture
def footer_of(tmp_path):
    def write(table: pa.Table | dict, **options) -> f.ParquetFooter:
        table = table if isinstance(table, pa.Table) else pa.table(table)
        pq.write_table(table, tmp_path / "data.parquet", **options)
        return f.read_footer((tmp_path / "data.parquet").read_bytes(), name="data.parquet")

    return write


def columns_of(schema: VirtualSchema) -> f.ParquetFooter:
    """The footer of a file of this schema and no rows."""
    return f.read_footer(synthesise_footer(schema, []), name="virtual")


def test_the_schema_of_a_file_is_copied_as_it_stands(footer_of, types):
    footer = footer_of(types)
    copied = columns_of(VirtualSchema.of(footer))
    assert copied.schema_bytes == footer.schema_bytes
    assert copied.column_orders_bytes == footer.column_orders_bytes
    assert (copied.leaves, copied.created_by, copied.key_value) == (footer.leaves, footer.created_by, footer.key_value)


def test_chosen_columns_come_whole_and_in_the_order_asked_for(footer_of, types):
    footer = footer_of(types)
    chosen = columns_of(VirtualSchema.of(footer, ["both", "i8", "grid"]))
    expected = [leaf for name in ("both", "i8", "grid") for leaf in footer.leaves if leaf.path[0] == name]
    assert [leaf._replace(index=0) for leaf in chosen.leaves] == [leaf._replace(index=0) for leaf in expected]
    assert chosen.schema[0].num_children == 3
    assert chosen.column_orders == (1,) * len(expected)
    assert chosen.created_by == footer.created_by


def test_what_describes_columns_by_position_is_not_taken_over_by_a_choice(footer_of):
    footer = footer_of(pa.table({"a": [1], "b": [2]}).replace_schema_metadata({"pandas": "{}", "own": "kept"}))
    assert set(footer.key_value) == {"ARROW:schema", "pandas", "own"}
    assert dict(VirtualSchema.of(footer, ["b"]).key_value) == {"own": "kept"}


def test_a_column_that_does_not_exist_cannot_be_chosen(footer_of):
    with pytest.raises(InvalidInput, match="column 'c' does not exist; choose from a, b"):
        VirtualSchema.of(footer_of({"a": [1], "b": [2]}), ["a", "c"])


def test_leaves_are_found_by_path_wherever_they_are(footer_of):
    schema = VirtualSchema.of(footer_of({"a": [1], "b": ["x"], "c": [1.5]}))
    assert leaf_positions(footer_of({"c": [1.5], "a": [1]}), schema) == [1, -1, 0]


OTHER = {
    "width": (pa.int64(), pa.int32()),
    "sign": (pa.int32(), pa.uint32()),
    "unit": (pa.timestamp("ms"), pa.timestamp("us")),
    "zone": (pa.timestamp("us"), pa.timestamp("us", tz="UTC")),
    "text or bytes": (pa.string(), pa.binary()),
    "length": (pa.binary(3), pa.binary(4)),
    "scale": (pa.decimal128(9, 2), pa.decimal128(9, 3)),
}


@pytest.mark.parametrize("kind", OTHER)
def test_a_column_of_another_type_is_incompatible(footer_of, kind):
    one, other = (footer_of(pa.table({"a": pa.array([], type)})) for type in OTHER[kind])  # noqa: A001
    with pytest.raises(Incompatible, match="column 'a' has another type or nesting"):
        leaf_positions(other, VirtualSchema.of(one))


def test_a_column_that_may_be_null_in_one_file_only_is_incompatible(footer_of):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    required = footer_of(pa.table({"a": [1]}, schema=schema))
    with pytest.raises(Incompatible, match="column 'a' has another type or nesting"):
        leaf_positions(required, VirtualSchema.of(footer_of({"a": [1]})))


def test_both_ways_of_saying_a_type_are_the_same_type(footer_of, types):
    footer = footer_of(types.select(["i8", "text", "price", "ms", "day"]))
    leaves = [leaf._replace(element=leaf.element._replace(logical_type=None)) for leaf in footer.leaves]
    older = dataclasses.replace(footer, leaves=tuple(leaves))
    assert leaf_positions(older, VirtualSchema.of(footer)) == [0, 1, 2, 3, 4]


def test_a_field_that_is_there_in_part_is_incompatible(footer_of):
    whole = VirtualSchema.of(footer_of({"s": [{"a": 1, "b": 2}]}))
    with pytest.raises(Incompatible, match=r"column 's\.b' is missing inside of a field that is there"):
        leaf_positions(footer_of({"s": [{"a": 1}]}), whole)


def test_a_base_moves_every_address(footer_of, types):
    footer = footer_of(types, row_group_size=20, bloom_filter_options={"i64": {"ndv": 10, "fpp": 0.1}})
    schema = VirtualSchema.of(footer)
    for placed, chunks in zip(place_row_groups(footer, schema, base=1000), footer.chunks, strict=True):
        assert (placed.chunks["data_page_offset"] == chunks["data_page_offset"] + 1000).all()
        there = placed.chunks["flags"] & c.HAS_DICTIONARY_OFFSET != 0
        assert there.any()
        assert (placed.chunks["dictionary_page_offset"] == np.where(there, c.chunk_starts(chunks) + 1000, 0)).all()
        blooms = chunks["flags"] & c.HAS_BLOOM_OFFSET != 0
        assert (placed.chunks["bloom_offset"][blooms] == chunks["bloom_offset"][blooms] + 1000).all()


NEW_BOUNDS, OLD_BOUNDS = c.HAS_MIN_VALUE | c.HAS_MAX_VALUE, c.HAS_OLD_MIN | c.HAS_OLD_MAX


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, NEW_BOUNDS | OLD_BOUNDS),
        ({"created_by": "another writer"}, NEW_BOUNDS),
        ({"column_orders": None}, OLD_BOUNDS),
    ],
    ids=["the same writer", "another writer", "no column orders"],
)
def test_bounds_are_dropped_that_the_schema_would_make_more_trusted_than_their_file(footer_of, change, kept):
    footer = footer_of({"a": [1, 2]})
    [placed] = place_row_groups(dataclasses.replace(footer, **change), VirtualSchema.of(footer))
    assert placed.chunks["flags"][0] & (NEW_BOUNDS | OLD_BOUNDS) == kept


def test_row_groups_can_be_chosen(footer_of):
    footer = footer_of({"a": range(10)}, row_group_size=3)
    placed = place_row_groups(footer, VirtualSchema.of(footer), groups=[3, 0])
    assert [group.rows for group in placed] == [1, 3]


def test_pages_in_another_file_are_incompatible(footer_of):
    footer = footer_of({"a": [1]})
    footer.chunks["flags"] |= c.HAS_FILE_PATH
    with pytest.raises(Incompatible, match="has its pages in another file"):
        place_row_groups(footer, VirtualSchema.of(footer))


def test_a_missing_column_needs_the_address_of_nulls(footer_of):
    schema = VirtualSchema.of(footer_of({"a": [1], "b": ["x"]}))
    with pytest.raises(InvalidInput, match="column 'b' is not in the file; give addresses of null chunks"):
        place_row_groups(footer_of({"a": [1]}), schema)


def test_null_chunks_of_one_kind_are_laid_down_once(footer_of):
    leaves = VirtualSchema.of(footer_of({"a": [1], "b": ["x"], "c": [[1]]})).leaves
    nulls = NullChunks(FIRST_ADDRESS)
    first = nulls.address(leaves[0], 10)
    assert first == FIRST_ADDRESS
    assert nulls.address(leaves[1], 10) == first
    assert nulls.address(leaves[1], 11) == first + len(null_chunk(leaves[1], 10))
    assert nulls.address(leaves[2], 10) == first + 2 * len(null_chunk(leaves[1], 10))
    assert len(nulls.data) == 2 * len(null_chunk(leaves[1], 10)) + len(null_chunk(leaves[2], 10))


PAGES = OffsetIndex(np.array([100, 150, 250]), np.array([50, 100, 50]), np.array([0, 10, 30]))


def chunk(**more) -> np.ndarray:
    record = np.zeros((), c.FOOTER_CHUNK)
    statistics = c.HAS_STATISTICS | c.HAS_MIN_VALUE | c.HAS_NULL_COUNT
    values = {
        "flags": c.HAS_META | c.HAS_DICTIONARY_OFFSET | c.HAS_BLOOM_OFFSET | statistics,
        "dictionary_page_offset": 60,
        "data_page_offset": 100,
        "total_compressed_size": 240,
        "total_uncompressed_size": 480,
        "num_values": 35,
    }
    for name, value in {**values, **more}.items():
        record[name] = value
    return record


def test_a_run_is_the_dictionary_and_the_pages_chosen():
    run = page_run(chunk(), PAGES, 1, 3, group_rows=35)
    assert (run.dictionary, run.pages, run.rows, len(run)) == (range(60, 100), range(150, 300), 25, 190)
    placed = run.at(1000)
    assert (placed["dictionary_page_offset"], placed["data_page_offset"]) == (1000, 1040)
    assert (placed["num_values"], placed["total_compressed_size"]) == (25, 190)
    assert placed["total_uncompressed_size"] == 380
    assert placed["flags"] == c.HAS_META | c.HAS_DICTIONARY_OFFSET


def test_all_pages_together_have_the_statistics_of_the_chunk():
    run = page_run(chunk(), PAGES, 0, 3, group_rows=35)
    statistics = c.HAS_STATISTICS | c.HAS_MIN_VALUE | c.HAS_NULL_COUNT
    assert run.at(4)["flags"] == c.HAS_META | c.HAS_DICTIONARY_OFFSET | statistics
    assert run.rows == 35


def test_a_run_without_a_dictionary_begins_with_its_first_page():
    run = page_run(chunk(flags=c.HAS_META, dictionary_page_offset=0), PAGES, 2, 3, group_rows=35)
    assert not run.dictionary
    placed = run.at(1000)
    assert (placed["dictionary_page_offset"], placed["data_page_offset"], placed["flags"]) == (0, 1000, c.HAS_META)


def test_a_repeated_column_has_more_values_than_rows():
    assert page_run(chunk(), PAGES, 1, 2, group_rows=35, values=77).at(4)["num_values"] == 77


@pytest.mark.parametrize(("first", "stop"), [(-1, 1), (0, 4), (2, 2), (2, 1)])
def test_pages_that_do_not_exist_make_no_run(first, stop):
    with pytest.raises(InvalidInput, match=f"pages {first} to {stop} of a chunk that has 3"):
        page_run(chunk(), PAGES, first, stop, group_rows=35)


def test_pages_with_a_gap_between_them_make_no_run():
    gap = OffsetIndex(PAGES.offsets + np.array([0, 0, 1]), PAGES.compressed_sizes, PAGES.first_rows)
    assert page_run(chunk(), gap, 0, 2, group_rows=35).rows == 30
    with pytest.raises(Damaged, match="do not follow each other without gaps"):
        page_run(chunk(), gap, 0, 3, group_rows=35)

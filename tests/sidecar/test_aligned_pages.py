"""Granules are found in columns whose pages are cut at the same rows, and only in those."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.parquet.footer import ParquetFooter, read_footer
from windrow.sidecar.aligned_pages import find_granules
from windrow.sidecar.granules import GranuleIndex, first_keys

ROWS = 2_500
FLAT = pa.table({"i": range(ROWS), "s": [f"name {n % 50}" for n in range(ROWS)], "f": [n / 3 for n in range(ROWS)]})
NESTED = FLAT.append_column(
    "m", pa.array([[("k", str(n))] * (n % 3) for n in range(ROWS)], pa.map_(pa.string(), pa.string()))
)


def file_of(table: pa.Table, **options: Any) -> tuple[ParquetFooter, Callable[[int, int], bytes]]:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=1_000, **options)
    data = file.getvalue()
    return read_footer(data, name="t"), lambda offset, length: data[offset : offset + length]


def found(table: pa.Table, **options: Any) -> list[GranuleIndex | None]:
    footer, read = file_of(table, **options)
    return find_granules(footer, read, name="t")


ALIGNED = {"write_page_index": True, "max_rows_per_page": 300}


def test_pages_of_equal_rows_are_granules() -> None:
    indexes = found(FLAT, **ALIGNED)
    assert [index and index.rows.tolist() for index in indexes] == [[300, 300, 300, 100]] * 2 + [[300, 200]]


def test_every_page_is_where_the_index_says() -> None:
    footer, read = file_of(FLAT, **ALIGNED)
    (index, *_) = find_granules(footer, read, name="t")
    assert index is not None
    for column in range(3):
        chunk = footer.chunks[0, column]
        assert index.page_offsets[column, 0] == chunk["data_page_offset"]
        end = index.page_offsets[column, -1] + index.page_sizes[column, -1]
        assert (
            end
            == min(s for s in (chunk["dictionary_page_offset"], chunk["data_page_offset"]) if s > 0)
            + chunk["total_compressed_size"]
        )


def test_pages_that_are_cut_elsewhere_are_not_in_the_index() -> None:
    """Numbers of eight bytes fill a page after as many rows, texts do not."""
    for index in found(FLAT, write_page_index=True, data_page_size=2_000, use_dictionary=False, write_batch_size=50):
        assert index is not None
        assert index.rows[:-1].tolist() == [250] * (len(index.rows) - 1)
        assert (index.page_sizes > 0).all(axis=1).tolist() == [True, False, True]


def test_a_dictionary_that_is_full_ends_a_page_early() -> None:
    rows = {"few": [n % 5 for n in range(ROWS)], "many": range(ROWS), "some": [n % 7 for n in range(ROWS)]}
    index, *_ = found(pa.table(rows), **ALIGNED, dictionary_pagesize_limit=2_000, write_batch_size=50)
    assert index is not None
    assert index.rows.tolist() == [300, 300, 300, 100]
    assert (index.page_sizes > 0).all(axis=1).tolist() == [True, False, True]


def test_without_a_page_index_there_are_none() -> None:
    assert found(FLAT, max_rows_per_page=300) == [None] * 3


def test_keys_are_kept_with_their_row_group() -> None:
    footer, read = file_of(FLAT, **ALIGNED)
    keys = [[first_keys(0, [b"a"] * count)] for count in (4, 4, 2)]
    indexes = find_granules(footer, read, name="t", keys=keys)
    assert [index and index.keys[0].values() for index in indexes] == [[b"a"] * 4, [b"a"] * 4, [b"a"] * 2]


def test_nested_columns_tell_how_many_values_their_pages_hold() -> None:
    (index, *_) = found(NESTED, **ALIGNED)
    assert index is not None
    assert index.nested_columns is not None
    assert index.nested_values is not None
    assert index.nested_columns.tolist() == [3, 4]
    # A row without entries counts as one value: its levels are written.
    expected = [sum(max(n % 3, 1) for n in range(start, min(start + 300, 1_000))) for start in range(0, 1_000, 300)]
    assert index.nested_values.tolist() == [expected, expected]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_both_kinds_of_data_pages_will_do(version: str) -> None:
    (index, *_) = found(NESTED, **ALIGNED, data_page_version=version)
    assert index is not None
    assert index.rows.tolist() == [300, 300, 300, 100]


def test_an_empty_file_has_no_granules() -> None:
    assert found(FLAT.slice(0, 0), **ALIGNED) in ([], [None])

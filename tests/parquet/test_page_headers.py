from __future__ import annotations

import pytest

from windrow.errors import Damaged, InvalidInput
from windrow.parquet import thrift as t
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import read_footer
from windrow.parquet.page_headers import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, null_page, read_page_header
from windrow.parquet.schema import Leaf, PhysicalType, SchemaElement


def leaf(repetition: int, definition: int) -> Leaf:
    element = SchemaElement("a", physical_type=PhysicalType.INT32)
    return Leaf(0, ("a",), element, element, repetition, definition, repetition, single_child=True)


def test_the_pages_of_every_chunk_add_up_to_its_values(parquet_file):
    data = parquet_file.read_bytes()
    footer = read_footer(data, name="file")
    for chunk in footer.chunks.reshape(-1):
        at, values, kinds = int(chunk_starts(chunk)), 0, set()
        end = at + int(chunk["total_compressed_size"])
        while at < end:
            header = read_page_header(data[at:end], name="file")
            assert header.compressed_size <= end - at - header.header_size
            at += header.header_size + header.compressed_size
            kinds.add(header.type)
            values += header.num_values if header.type != DICTIONARY_PAGE else 0
            if header.type != DICTIONARY_PAGE and chunk["encodings"]:  # one writer lists none
                assert chunk["encodings"] >> header.encoding & 1
        assert at == end
        assert values == chunk["num_values"]
        assert kinds <= {DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE}


def test_a_page_of_nulls_is_a_header_and_one_run_of_zeros():
    page = null_page(leaf(0, 1), 1000)
    header = read_page_header(page, name="page")
    assert (header.type, header.num_values, header.encoding) == (DATA_PAGE, 1000, 0)
    assert header.compressed_size == header.uncompressed_size == len(page) - header.header_size
    assert page[header.header_size :] == bytes.fromhex("03000000 d00f 00")


def test_a_repeated_column_has_both_kinds_of_levels():
    page = null_page(leaf(1, 300), 1)
    body = page[read_page_header(page, name="page").header_size :]
    assert body == bytes.fromhex("02000000 02 00" + "03000000 02 0000")


def test_a_page_of_no_rows_has_no_runs():
    page = null_page(leaf(0, 1), 0)
    assert page.endswith(bytes(4))
    assert read_page_header(page, name="page").num_values == 0


@pytest.mark.parametrize(
    ("column", "rows", "text"),
    [
        (leaf(0, 0), 5, "column 'a' is required and cannot be null"),
        (leaf(0, 1), -1, "a page of -1 rows"),
        (leaf(0, 1), 1 << 31, "a page of 2147483648 rows: it can have at most 2147483647"),
    ],
)
def test_what_cannot_be_a_page_of_nulls_is_refused(column, rows, text):
    with pytest.raises(InvalidInput, match=text):
        null_page(column, rows)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "page header, PageHeader after byte 0: the bytes end"),
        (t.struct(t.i32(1, 0)), "PageHeader after byte 0: required fields are missing"),
        (t.struct(t.i32(1, 0), t.i32(2, 1), t.i32(3, 1), t.nested(5, t.struct())), "DataPageHeader .* required fields"),
        (t.struct(t.i32(1, 0), t.i32(2, -1), t.i32(3, 1)), "a size or a count is negative"),
        (t.struct(t.i32(1, 0), t.i32(2, 1), t.i32(3, -1)), "a size or a count is negative"),
    ],
)
def test_a_broken_page_header_is_refused(data, text):
    with pytest.raises(Damaged, match=f"^x.parquet: .*{text}"):
        read_page_header(data, name="x.parquet")

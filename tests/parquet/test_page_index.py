from __future__ import annotations

import struct
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import Damaged
from windrow.parquet import chunk as c
from windrow.parquet import footer as f
from windrow.parquet import thrift as t
from windrow.parquet.page_headers import DICTIONARY_PAGE, read_page_header
from windrow.parquet.page_index import ASCENDING, parse_column_index, parse_offset_index, parse_offset_indexes

TRUE, FALSE = b"\x01", b"\x02"


def indexed_chunks(data: bytes):
    """Each chunk that has a page index, with the bytes of both parts."""
    footer = f.read_footer(data, name="file")
    both = c.HAS_OFFSET_INDEX | c.HAS_COLUMN_INDEX
    for chunk in footer.chunks.reshape(-1):
        if chunk["flags"] & both == both:
            parts = [
                data[chunk[f"{part}_offset"] :][: chunk[f"{part}_length"]] for part in ("offset_index", "column_index")
            ]
            yield chunk, *parts


def pages_by_their_headers(data: bytes, chunk) -> list[tuple[int, int]]:
    """Where each data page of a chunk is, found by going from header to header."""
    found, at = [], int(c.chunk_starts(chunk))
    end = at + int(chunk["total_compressed_size"])
    while at < end:
        header = read_page_header(data[at:end], name="file")
        size = header.header_size + header.compressed_size
        if header.type != DICTIONARY_PAGE:
            found.append((at, size))
        at += size
    return found


def test_an_offset_index_tells_where_the_pages_are(parquet_file):
    data = parquet_file.read_bytes()
    for chunk, offset_index, _ in indexed_chunks(data):
        if parquet_file.stem == "dict-page-offset-zero":
            continue  # written by a draft: the sizes of its index are without page headers
        index = parse_offset_index(offset_index, name="file")
        pages = list(zip(index.offsets.tolist(), index.compressed_sizes.tolist(), strict=True))
        assert pages == pages_by_their_headers(data, chunk)


def test_many_offset_indexes_are_read_as_each_alone(parquet_file):
    stored = [offset_index for _, offset_index, _ in indexed_chunks(parquet_file.read_bytes())]
    ends = list(accumulate(map(len, stored)))
    spans = [(end - len(each), len(each)) for each, end in zip(stored, ends, strict=True)]
    together = parse_offset_indexes(b"".join(stored), spans, name="file")
    for index, data in zip(together, stored, strict=True):
        alone = parse_offset_index(data, name="file")
        for field in ("offsets", "compressed_sizes", "first_rows"):
            assert getattr(index, field).tolist() == getattr(alone, field).tolist()


def test_both_indexes_have_the_same_pages(parquet_file):
    for _, offset_index, column_index in indexed_chunks(parquet_file.read_bytes()):
        bounds = parse_column_index(column_index, name="file")
        pages = len(parse_offset_index(offset_index, name="file").offsets)
        assert len(bounds.null_pages) == len(bounds.min_values) == len(bounds.max_values) == pages


def test_a_column_index_has_the_bounds_of_the_rows_of_each_page(tmp_path):
    values = [None if n % 5 == 0 or 40 <= n < 60 else n * 3 for n in range(95)]
    pq.write_table(pa.table({"a": values}), tmp_path / "a.parquet", write_page_index=True, max_rows_per_page=20)
    [(_, offset_index, column_index)] = indexed_chunks((tmp_path / "a.parquet").read_bytes())
    index, bounds = parse_offset_index(offset_index, name="a"), parse_column_index(column_index, name="a")
    assert index.first_rows.tolist() == [0, 20, 40, 60, 80]
    pages = [values[first : first + 20] for first in index.first_rows]
    present = [[value for value in page if value is not None] for page in pages]
    assert bounds.null_pages.tolist() == [not page for page in present]
    assert bounds.null_counts.tolist() == [page.count(None) for page in pages]
    assert bounds.boundary_order == ASCENDING
    for page, low, high in zip(present, bounds.min_values, bounds.max_values, strict=True):
        assert (low, high) == ((struct.pack("<q", min(page)), struct.pack("<q", max(page))) if page else (b"", b""))


def location(offset: int, size: int, row: int) -> bytes:
    return t.struct(t.i64(1, offset), t.i32(2, size), t.i64(3, row))


def offset_index(*locations: bytes) -> bytes:
    return t.struct(t.list_of(1, 12, locations))


def test_an_empty_offset_index_has_no_pages():
    assert parse_offset_index(offset_index(), name="file").offsets.size == 0


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "offset index, OffsetIndex after byte 0: the bytes end"),
        (t.struct(), "offset index, OffsetIndex after byte 0: required fields are missing"),
        (offset_index(t.struct(t.i64(1, 4), t.i64(1, 4), t.i64(1, 4))), "PageLocation .* required fields are missing"),
        (offset_index(location(4, 5, 1)), "the first rows of the pages do not ascend from 0"),
        (offset_index(location(4, 5, 0), location(9, 5, 7), location(14, 5, 6)), "first rows of the pages do not"),
        (offset_index(location(4, -5, 0)), "a page has a negative size or offset"),
        (offset_index(location(-4, 5, 0)), "a page has a negative size or offset"),
        (t.struct(t.verbatim(1, b"\xfc\xff\xff\xff\xff\x07")), "announced length is more than the bytes"),
    ],
)
def test_a_broken_offset_index_is_refused(data, text):
    with pytest.raises(Damaged, match=f"^x.parquet: offset index.*{text}|{text}"):
        parse_offset_index(data, name="x.parquet")


def column_index(pages: int, *more: t.Field, order: int = 0) -> bytes:
    values = t.list_of(2, 8, [t.prefixed(b"a")] * pages), t.list_of(3, 8, [t.prefixed(b"b")] * pages)
    return t.struct(t.list_of(1, 1, [FALSE] * pages), *values, t.i32(4, order), *more)


def test_a_column_index_without_null_counts_has_none():
    bounds = parse_column_index(column_index(2), name="file")
    assert bounds.null_counts is None
    assert (bounds.min_values, bounds.max_values) == ([b"a", b"a"], [b"b", b"b"])


def test_booleans_of_either_list_type_are_understood():
    data = t.struct(t.list_of(1, 2, [TRUE, FALSE]), *[t.list_of(n, 8, [b"\0"] * 2) for n in (2, 3)], t.i32(4, 1))
    assert parse_column_index(data, name="file").null_pages.tolist() == [True, False]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "column index, ColumnIndex after byte 0: the bytes end"),
        (column_index(2, t.list_of(5, 6, [b"\0"])), "column index has 2 null_pages but 1 null_counts"),
        (t.struct(t.list_of(1, 1, [TRUE]), t.list_of(2, 8, []), t.list_of(3, 8, []), t.i32(4, 0)), "but 0 min_values"),
        (t.struct(t.list_of(1, 8, [b"\0"])), "ColumnIndex.null_pages .* thrift type that does not belong there"),
        (column_index(2)[:-4], "ColumnIndex.max_values .* announced length is more than"),
    ],
)
def test_a_broken_column_index_is_refused(data, text):
    with pytest.raises(Damaged, match=f"^x.parquet: .*({text})"):
        parse_column_index(data, name="x.parquet")


@given(st.data())
@settings(deadline=None)  # the first call compiles
def test_damaged_indexes_are_read_or_refused(data):
    whole = data.draw(st.sampled_from([column_index(3, t.list_of(5, 6, [b"\0"] * 3)), offset_index(location(4, 5, 0))]))
    place, byte = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 255))
    broken = whole[:place] + bytes([byte]) + whole[place + 1 :]
    for parse in (parse_offset_index, parse_column_index):
        try:
            parse(broken, name="file")
        except Damaged:
            continue

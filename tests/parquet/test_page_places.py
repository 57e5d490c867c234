"""Where pages are is learnt from their headers, whatever the window that they are read through."""

import io
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import Damaged
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import read_footer
from windrow.parquet.page_index import parse_offset_index
from windrow.parquet.page_places import decode_places, encode_places, find_places

ROWS = 3000
TABLE = pa.table({"number": range(ROWS), "text": [None if n % 7 == 0 else f"text {n % 900}" for n in range(ROWS)]})


def written(**options):
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, write_page_index=True, **options)
    return sink.getvalue()


def places_of(data, column, window=2**20):
    footer = read_footer(data, name="file")
    chunk = footer.chunks[0, column]
    start, length = int(chunk_starts(chunk)), int(chunk["total_compressed_size"])

    def read(offset, size):
        return data[offset : offset + size]

    return find_places(read, start, length, ROWS, name="file", window=window), chunk, (start, length, ROWS)


@given(
    rows=st.integers(1, 2 * ROWS),
    window=st.sampled_from([64, 100, 1000, 2**20]),
    version=st.sampled_from(["1.0", "2.0"]),
    dictionary=st.booleans(),
    column=st.integers(0, 1),
)
def test_places_are_those_of_the_offset_index(rows, window, version, dictionary, column):
    data = written(
        max_rows_per_page=rows,
        data_page_version=version,
        use_dictionary=dictionary,
        dictionary_pagesize_limit=2000,
        write_batch_size=64,
    )
    places, chunk, _ = places_of(data, column, window)
    start, length = int(chunk["offset_index_offset"]), int(chunk["offset_index_length"])
    index = parse_offset_index(data[start : start + length], name="file")
    assert places.offsets.tolist() == index.offsets.tolist()
    assert places.compressed_sizes.tolist() == index.compressed_sizes.tolist()
    assert places.first_rows.tolist() == index.first_rows.tolist()


def test_a_record_is_read_as_it_was_written():
    places, _, of_chunk = places_of(written(max_rows_per_page=100), 0)
    found = decode_places(encode_places(places), *of_chunk)
    assert np.array_equal(found.offsets, places.offsets)
    assert np.array_equal(found.compressed_sizes, places.compressed_sizes)
    assert np.array_equal(found.first_rows, places.first_rows)


def test_a_record_of_another_chunk_is_as_good_as_none():
    places, _, (start, length, rows) = places_of(written(max_rows_per_page=100), 0)
    data = encode_places(places)
    assert decode_places(data, start + 10**6, length, rows) is None
    assert decode_places(data, start, length - 1, rows) is None
    assert decode_places(data, start, length, 10) is None


@pytest.mark.parametrize("damage", [b"", b"WRPAGES0", b"WRPAGES1", b"WRPAGES1" + bytes(7), b"WRPAGES1" + bytes(48)])
def test_a_record_that_is_none_is_refused(damage):
    assert decode_places(damage, 4, 1000, 10) is None


@given(place=st.integers(0, 400), value=st.integers(0, 255), window=st.sampled_from([64, 2**20]))
def test_damaged_headers_are_refused_or_describe_pages_within_reach(place, value, window):
    data = bytearray(written(max_rows_per_page=100, compression="none"))
    data[4 + place] = value
    footer = read_footer(written(max_rows_per_page=100, compression="none"), name="file")
    chunk = footer.chunks[0, 0]
    start, length = int(chunk_starts(chunk)), int(chunk["total_compressed_size"])
    with suppress(Damaged):
        places = find_places(
            lambda offset, size: bytes(data[offset : offset + size]), start, length, ROWS, name="file", window=window
        )
        assert (places.offsets + places.compressed_sizes <= start + length).all()

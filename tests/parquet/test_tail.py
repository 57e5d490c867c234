"""The end of a Parquet file is read once, or twice where the footer is large."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged
from windrow.parquet.footer import TAIL_SIZE, parse_footer, read_footer
from windrow.parquet.tail import complete_tail


@pytest.fixture
def data():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": range(100), "b": range(100)}), sink)
    return sink.getvalue().to_pybytes()


class File:
    def __init__(self, data):
        self.data, self.reads = data, []

    def read(self, start, length):
        self.reads.append((start, length))
        return self.data[start : start + length]


def test_a_footer_that_came_along_needs_no_read(data):
    file = File(data)
    tail = complete_tail(data, len(data), file.read, name="a")
    assert (tail.data, file.reads) == (data, [])
    assert read_footer(tail.footer, name="a").num_rows == parse_footer(tail.metadata, name="a").num_rows == 100


@pytest.mark.parametrize("first", [TAIL_SIZE, TAIL_SIZE + 1, 100])
def test_of_a_larger_footer_only_the_rest_is_read(data, first):
    file = File(data)
    whole = complete_tail(data, len(data), file.read, name="a").footer
    tail = complete_tail(data[-first:], len(data), file.read, name="a")
    assert tail.data == tail.footer == whole
    assert file.reads == [(len(data) - len(whole), len(whole) - first)]


def test_what_is_no_parquet_file_is_refused_by_its_name(data):
    read = File(b"").read
    with pytest.raises(Damaged, match="a: 4 bytes are no Parquet file"):
        complete_tail(b"PAR1", 4, read, name="a")
    with pytest.raises(Damaged, match="a"):
        complete_tail(bytes(8), 8, read, name="a")
    with pytest.raises(Damaged, match="a: the footer claims .* bytes, the file has 50"):
        complete_tail(data[-50:], 50, read, name="a")

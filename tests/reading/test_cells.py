"""Cells: ranges of rows come out as they are in the file, whatever pages they lie in and however these are encoded."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parquet.test_page_reader import GROUP, PACKED, TABLE, TEXTS, chunks_of, written

from windrow.errors import Damaged
from windrow.parquet.page_reader import Coded, scan_pages, unpack
from windrow.reading.cells import Cells, DecimalPages, FixedPages, Missing, TextPages

ENCODINGS = {
    "dictionary": {},
    "dictionaries that are left early": {"dictionary_pagesize_limit": 500},
    "plain": {"use_dictionary": False},
    "packed": {"use_dictionary": False, "column_encoding": PACKED},
    "headers of version 2": {"data_page_version": "2.0"},
    "small pages": {"data_page_size": 300, "write_batch_size": 50},
    "no nulls allowed": {"use_dictionary": ["grid"]},
}
GROUPS = -(-TABLE.num_rows // GROUP)


@cache
def file_of(encoding):
    table = TABLE
    if encoding == "no nulls allowed":
        schema = [each.with_nullable(bool(TABLE[each.name].null_count)) for each in TABLE.schema]
        table = TABLE.cast(pa.schema(schema))
    return written(table, **ENCODINGS[encoding])


def filled(name, encoding, order):
    """The pages of a column, of row groups that came in some order, some of them twice."""
    kind = TABLE.schema.field(name).type
    found = (
        TextPages()
        if name in TEXTS
        else FixedPages(f"{'f' if pa.types.is_floating(kind) else 'i'}{kind.bit_width // 8}")
    )
    data = file_of(encoding)
    chunks = chunks_of(data, name)
    for group in order:
        own = chunks[slice(group, group + 1)]
        unpacked = unpack(memoryview(data), scan_pages(np.frombuffer(data, np.uint8), own), own)
        starts = (group << 32) + np.cumsum(unpacked.page_rows) - unpacked.page_rows
        if name in TEXTS:
            found.add(starts, unpacked.page_rows, unpacked.coded())
        else:
            found.add(starts, unpacked)
    return found


def ranges_of(data):
    """Ranges of rows of row groups, in any order, which do not overlap."""
    ranges = []
    for group in data.draw(st.permutations(range(GROUPS))):
        rows = min(GROUP, TABLE.num_rows - group * GROUP)
        edges = sorted(data.draw(st.sets(st.integers(0, rows), min_size=2, max_size=8)))
        ranges += [(group, first, stop) for first, stop in zip(edges[::2], edges[1::2], strict=False)]
    return ranges


def rows_of(name, ranges):
    column = TABLE[name].to_pylist()
    return [column[group * GROUP + row] for group, first, stop in ranges for row in range(first, stop)]


def addresses(ranges):
    return np.array([((group << 32) + first, (group << 32) + stop) for group, first, stop in ranges]).reshape(-1)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", TABLE.column_names)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_ranges_of_rows_come_out_as_they_are_in_the_file(name, encoding, data):
    order = [*data.draw(st.permutations(range(GROUPS))), data.draw(st.integers(0, GROUPS - 1))]
    pages, ranges = filled(name, encoding, order), ranges_of(data)
    values, is_set = pages.take(addresses(ranges))
    if name in TEXTS:
        values = [pages.texts[code].as_py() if code >= 0 else None for code in values.tolist()]
    else:
        values = values.tolist()
    found = [
        value if there else None
        for value, there in zip(values, [True] * len(values) if is_set is None else is_set, strict=True)
    ]
    assert found == rows_of(name, ranges)


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_rows_whose_text_passes_are_those_of_the_file(name, data):
    pages, ranges = filled(name, data.draw(st.sampled_from([*ENCODINGS])), range(GROUPS)), ranges_of(data)
    passing = np.random.default_rng(data.draw(st.integers(0, 99))).random(len(pages.texts)) < 0.3
    kept = {text for text, passes in zip(pages.texts.to_pylist(), passing.tolist(), strict=True) if passes}
    found = pages.narrow(passing, addresses(ranges)).reshape(-1, 2)
    rows = [(group, row) for group, first, stop in ranges for row in range(first, stop)]
    column = TABLE[name].to_pylist()
    expected = [(group, row) for group, row in rows if column[group * GROUP + row] in kept]
    assert [(row >> 32, row & 0xFFFFFFFF) for low, high in found.tolist() for row in range(low, high)] == expected
    assert (found[1:, 0] != found[:-1, 1]).all()  # neighbours are one range


@pytest.mark.parametrize("name", ["run", "grid", "wide"])
def test_rows_that_are_in_no_page_are_missing(name):
    pages = filled(name, "dictionary", [1])
    begin = 1 << 32
    assert pages.has(np.array([begin, begin + GROUP])).tolist() == [True]
    assert pages.has(np.array([0, GROUP, begin, begin + GROUP, 5, 5])).tolist() == [False, True, True]
    for first, stop in (
        (begin - 1, begin + 1),
        (begin + GROUP - 1, begin + GROUP + 1),
        (0, 1),
        (2 << 32, (2 << 32) + 1),
    ):
        with pytest.raises(Missing):
            pages.take(np.array([first, stop]))
    for empty in (FixedPages("i8"), TextPages(), DecimalPages("V16")):
        with pytest.raises(Missing):
            empty.take(np.array([0, 1]))


def test_pages_that_come_again_are_cached_once():
    pages = filled("grid", "dictionary", [0, 1])
    before = len(pages.starts)
    again = filled("grid", "dictionary", [0, 1, 1, 0])
    assert len(again.starts) == before
    assert (again.take(np.array([5, 900]))[0] == pages.take(np.array([5, 900]))[0]).all()


@pytest.mark.parametrize("name", ["grid", "wide", "float"])
@pytest.mark.parametrize("encoding", ["dictionary", "plain", "packed"])
def test_damaged_pages_are_refused_or_decode_to_something(name, encoding):
    refused, random = 0, np.random.default_rng(5)
    for _ in range(60):
        pages = filled(name, encoding, range(GROUPS))
        own = pages._bytes.values
        own[random.integers(0, len(own), 20)] = random.integers(0, 256, 20)
        try:
            assert len(pages.take(np.array([0, GROUP, 1 << 32, (1 << 32) + 200]))[0]) == GROUP + 200
        except Damaged:
            refused += 1
    assert refused or encoding == "plain" or name == "grid"


def test_bytes_that_are_no_text_are_refused():
    found = Coded(np.zeros(1, np.int32), np.ones(1, np.int64), pa.array([b"\xff"], pa.large_binary()))
    with pytest.raises(pa.ArrowInvalid):
        TextPages().add(np.zeros(1, np.int64), np.ones(1, np.int64), found)


def test_a_file_is_hot_when_it_is_requested_again():
    cells, one, other = Cells(1000), ("/lake", "a", 0), ("/lake", "b", 0)
    assert [cells.are_hot([one]), cells.are_hot([one, other]), cells.are_hot([other, one])] == [False, False, True]


def test_row_groups_have_addresses_of_their_own_until_all_is_let_go():
    cells, keys = Cells(1000), [("/lake", "a", group) for group in range(3)]
    assert (cells.addresses(keys) >> 32).tolist() == [0, 1, 2]
    assert (cells.addresses([keys[2], keys[0]]) >> 32).tolist() == [2, 0]
    cells.shrink()
    assert (cells.addresses(keys[2:]) >> 32).tolist() == [0]

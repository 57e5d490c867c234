"""Cells: what is put in comes out again, in any order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.parquet.page_reader import Coded, CodedRows, Fixed
from windrow.reading.cells import Cells, FixedCells, TextCells

TEXTS = st.lists(st.lists(st.sampled_from(["a", "b", "", None]), max_size=6), min_size=1, max_size=5)
NUMBERS = st.lists(st.lists(st.none() | st.integers(-5, 5), max_size=6), min_size=1, max_size=5)


def coded(values, *, by_row):
    """The rows as they are decoded: runs of codes of sorted texts."""
    texts = sorted({value for value in values if value is not None})
    codes = np.array([-1 if value is None else texts.index(value) for value in values], np.int32)
    arrow = pa.array([text.encode() for text in texts], pa.large_binary())
    if by_row:
        return CodedRows(codes, arrow)
    last = np.flatnonzero(np.append(codes[1:] != codes[:-1], True)) if len(codes) else np.empty(0, np.int64)
    return Coded(codes[last], last + 1, arrow)


def lengths(cells):
    return np.array([len(cell) for cell in cells], np.int64)


@given(TEXTS, TEXTS, st.booleans(), st.randoms())
def test_texts_come_out_as_they_went_in(first, second, by_row, random):
    kept, cells = TextCells(), [*first, *second]
    for start, some in ((0, first), (len(first), second)):
        numbers = np.arange(start, start + len(some))
        kept.add(numbers, lengths(some), coded([value for cell in some for value in cell], by_row=by_row))
    order = np.array(random.sample(range(len(cells)), len(cells)))
    codes, counts = kept.runs(order)
    found = [None if code < 0 else kept.arrow[int(code)].as_py() for code in np.repeat(codes, counts)]
    assert found == [value for number in order for value in cells[number]]


@given(NUMBERS, NUMBERS, st.randoms())
def test_values_come_out_as_they_went_in(first, second, random):
    kept, cells = FixedCells("i8"), [*first, *second]
    for start, some in ((0, first), (len(first), second)):
        flat = [value for cell in some for value in cell]
        valid = np.array([value is not None for value in flat], np.uint8)
        values = np.array([value or 0 for value in flat], np.int64).view(np.uint64)
        numbers = np.arange(start, start + len(some))
        kept.add(numbers, lengths(some), Fixed(values, None if valid.all() else valid))
    order = np.array(random.sample(range(len(cells)), len(cells)))
    places = np.array([(at, row) for at, n in enumerate(order) for row in range(len(cells[n]))], np.int64).reshape(
        -1, 2
    )
    values, valid = kept.take(order, places[:, 0], places[:, 1])
    is_set = [True] * len(values) if valid is None else valid.tolist()
    found = [value if there else None for value, there in zip(values.tolist(), is_set, strict=True)]
    assert found == [value for number in order for value in cells[number]]


def test_bytes_that_are_no_text_are_refused():
    found = Coded(np.zeros(1, np.int32), np.ones(1, np.int64), pa.array([b"\xff"], pa.large_binary()))
    with pytest.raises(pa.ArrowInvalid):
        TextCells().add(np.arange(1), np.ones(1, np.int64), found)


def test_a_file_is_hot_when_it_is_asked_about_again():
    cells, one, other = Cells(1000), ("/lake", "a", 0, -1, -1), ("/lake", "b", 0, -1, -1)
    assert [cells.are_hot([one]), cells.are_hot([one, other]), cells.are_hot([other, one])] == [False, False, True]


def test_cells_have_numbers_of_their_own_until_all_is_let_go():
    cells, keys = Cells(1000), [("/lake", "a", 0, first, first + 1) for first in range(3)]
    assert cells.numbers(keys).tolist() == [0, 1, 2]
    assert cells.numbers([keys[2], keys[0]]).tolist() == [2, 0]
    cells.shrink()
    assert cells.numbers(keys[2:]).tolist() == [0]

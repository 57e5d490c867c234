"""Numbers go between numpy and Arrow as Arrow's own ways take them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.model.numbers import from_arrow, longs, to_arrow, validity


@pytest.mark.parametrize("kind", ["i1", "u2", "i4", "u8", "f4", "f8", "?"])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("count", [0, 1, 17])
def test_numbers_become_what_arrow_makes_of_them(kind, nulls, count):
    numbers = np.arange(count).astype(kind)[::-1]
    null = np.arange(count) % 3 == 0 if nulls else None
    assert to_arrow(numbers, null).equals(pa.array(numbers, mask=null))


@pytest.mark.parametrize("first", [0, 3, 9])
def test_numbers_come_back_from_any_part_of_an_array(first):
    whole = pa.array([1, None, 3, 4, None, 6, 7, 8, 9, None, 11])
    part = whole.slice(first)
    assert validity(part).tolist() == [value is not None for value in part.to_pylist()]
    known = from_arrow(part, np.int64)[validity(part)]
    assert known.tolist() == [value for value in part.to_pylist() if value is not None]
    assert longs(part, null=-1).tolist() == [-1 if value is None else value for value in part.to_pylist()]


def test_chunks_are_one_behind_the_other():
    chunks = [pa.array([1, 2], pa.int8()), pa.array([], pa.int8()), pa.array([None, 3], pa.int8())]
    assert longs(pa.chunked_array(chunks), null=9).tolist() == [1, 2, 9, 3]
    assert longs(pa.chunked_array([], pa.int8())).tolist() == []

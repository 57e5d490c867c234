"""Granule indexes: what is written is read, and nothing is read that is not there."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import Damaged, InvalidInput
from windrow.sidecar.granules import GranuleIndex, decode_granules, encode_granules, first_keys


@st.composite
def indexes(draw: st.DrawFn) -> GranuleIndex:
    columns, count, keys = draw(st.integers(1, 4)), draw(st.integers(0, 5)), draw(st.integers(0, 2))
    nested = draw(st.lists(st.integers(0, columns - 1), unique=True, max_size=columns))
    values = st.one_of(st.none(), st.binary(max_size=9))
    return GranuleIndex(
        np.arange(count, dtype="<u4"),
        np.arange(columns * count, dtype="<u8").reshape(columns, count),
        np.arange(columns * count, dtype="<u4").reshape(columns, count),
        tuple(
            first_keys(key % columns, draw(st.lists(values, min_size=count, max_size=count)))
            for key in range(min(keys, columns))
        ),
        np.array(nested, "<u4"),
        np.arange(len(nested) * count, dtype="<u4").reshape(len(nested), count),
    )


@settings(max_examples=100, deadline=None)
@given(indexes(), st.integers(0, 7))
def test_an_index_survives_a_round_trip_at_any_place(index: GranuleIndex, offset: int) -> None:
    data = bytes(offset) + encode_granules(index)
    read = decode_granules(data, offset, len(data), len(index.page_offsets), "t")
    for field in ("rows", "page_offsets", "page_sizes", "nested_columns", "nested_values"):
        assert np.array_equal(getattr(read, field), getattr(index, field))
    assert [(key.column, key.values()) for key in read.keys] == [(key.column, key.values()) for key in index.keys]


@settings(max_examples=100, deadline=None)
@given(indexes(), st.integers(1, 40), st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 255)), max_size=3))
def test_cut_or_changed_bytes_are_refused_or_read(
    index: GranuleIndex, cut: int, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(encode_granules(index))
    whole = len(data)
    for place, value in changes:
        data[place % whole] = value
    with contextlib.suppress(Damaged):
        decode_granules(bytes(data), 0, whole, len(index.page_offsets), "t")
    with pytest.raises(Damaged):
        decode_granules(encode_granules(index), 0, max(whole - cut, 0), len(index.page_offsets), "t")


def test_counts_that_do_not_belong_together_are_not_written() -> None:
    pages = np.zeros((1, 2), "<u8")
    with pytest.raises(InvalidInput, match="2 granules|3 granules"):
        encode_granules(GranuleIndex(np.zeros(3, "<u4"), pages, pages.astype("<u4")))
    with pytest.raises(InvalidInput, match="one entry for each"):
        encode_granules(GranuleIndex(np.zeros(2, "<u4"), pages, pages.astype("<u4"), (first_keys(0, [b"a"]),)))


def test_fixed_width_keys_are_one_run_of_bytes() -> None:
    keys = first_keys(0, [(7).to_bytes(8, "little"), (9).to_bytes(8, "little")])
    assert np.frombuffer(keys.data, "<i8").tolist() == [7, 9]
    assert keys.ends.tolist() == [8, 16]

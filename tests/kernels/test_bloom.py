from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.bloom import contains, hash_values, insert


def hashes(values: list[bytes]) -> np.ndarray:
    source = np.frombuffer(b"".join(values), np.uint8)
    return hash_values(source, np.cumsum([0, *map(len, values)]).astype(np.int64))


@pytest.mark.parametrize("length", [*range(70), 255, 1000])
def test_bytes_of_every_length_have_their_xxhash(length):
    value = bytes(n * 37 % 251 for n in range(length))
    assert hashes([value]).tolist() == [xxhash.xxh64_intdigest(value)]


@given(st.lists(st.binary(max_size=50)))
@settings(deadline=None)  # the first call compiles
def test_many_values_are_hashed_at_once(values):
    assert hashes(values).tolist() == [xxhash.xxh64_intdigest(value) for value in values]


@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=1), st.integers(1, 8))
@settings(deadline=None)  # the first call compiles
def test_what_was_inserted_is_found(numbers, blocks):
    bits, values = np.zeros((blocks, 8), np.uint32), np.array(numbers, np.uint64)
    insert(bits, values)
    assert contains(bits, values).all()


@given(st.integers(0, (1 << 64) - 1), st.integers(1, 8))
@settings(deadline=None)  # the first call compiles
def test_a_value_sets_one_bit_in_each_word_of_one_block(number, blocks):
    bits = np.zeros((blocks, 8), np.uint32)
    insert(bits, np.array([number], np.uint64))
    touched = bits.any(axis=1)
    assert touched.sum() == 1
    assert np.bitwise_count(bits[touched]).tolist() == [[1] * 8]
    assert np.flatnonzero(touched)[0] == (number >> 32) * blocks >> 32


def test_an_empty_filter_holds_nothing():
    assert not contains(np.zeros((1, 8), np.uint32), np.arange(100, dtype=np.uint64)).any()

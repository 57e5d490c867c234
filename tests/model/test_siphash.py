"""SipHash-2-4 against a plain implementation and against a library."""

import numpy as np
import pytest
import siphash24 as library
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.model.siphash import siphash24

MASK = 2**64 - 1


def by_library(message):
    return int.from_bytes(library.siphash24(message, key=bytes(16)).digest(), "little")


def rotated(word, bits):
    return ((word << bits) | (word >> (64 - bits))) & MASK


def mixed(v0, v1, v2, v3):
    v0, v2 = (v0 + v1) & MASK, (v2 + v3) & MASK
    v1, v3 = rotated(v1, 13) ^ v0, rotated(v3, 16) ^ v2
    v0 = rotated(v0, 32)
    v2, v0 = (v2 + v1) & MASK, (v0 + v3) & MASK
    v1, v3 = rotated(v1, 17) ^ v2, rotated(v3, 21) ^ v0
    return v0, v1, rotated(v2, 32), v3


def by_hand(message):
    state = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v0, v1, v2, v3 = mixed(*mixed(*state[:3], state[3] ^ word))
        state = (v0 ^ word, v1, v2, v3)
    v0, v1, v2, v3 = mixed(*mixed(*mixed(*mixed(*state[:2], state[2] ^ 0xFF, state[3]))))
    return v0 ^ v1 ^ v2 ^ v3


@pytest.mark.parametrize("length", [*range(18), 63, 64, 255, 256, 257, 5000])
def test_a_message_of_any_length(length):
    message = bytes(position * 7 % 256 for position in range(length))
    assert siphash24([message]).tolist() == [by_hand(message)] == [by_library(message)]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40)))
def test_messages_of_different_lengths_hash_as_they_do_alone(messages):
    hashes = siphash24(messages)
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == [by_library(message) for message in messages]

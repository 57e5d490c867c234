"""CRC-32 by folding and by tables is that of zlib; checksums of pieces join to that of the whole."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.checksums import crc32, first_mismatch, joined, tabled_crc32


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 63, 64, 65, 127, 128, 200, 4096, 100_003])
@pytest.mark.parametrize("checksum", [crc32, tabled_crc32], ids=["the fastest", "tables"])
def test_bytes_of_every_length_have_the_checksum_of_zlib(size, checksum):
    data = np.random.default_rng(size).integers(0, 256, size + 3, dtype=np.uint8)
    for at in range(4):
        assert checksum(0, data, at, size) == zlib.crc32(data[at : at + size].tobytes())


@given(st.binary(max_size=400), st.integers(0, 400))
@settings(deadline=None)  # the first call compiles
def test_a_checksum_goes_on_where_another_ends_and_pieces_join(data, cut):
    first, second = data[:cut], data[cut:]
    array = np.frombuffer(data, np.uint8)
    for checksum in (crc32, tabled_crc32):
        begun = checksum(0, array, 0, len(first))
        assert checksum(begun, array, len(first), len(second)) == zlib.crc32(data)
    assert joined(zlib.crc32(first), zlib.crc32(second), len(second)) == zlib.crc32(data)


def test_the_first_page_that_differs_is_named_and_pages_without_a_checksum_are_not_looked_at():
    data = np.arange(200, dtype=np.uint8)
    bodies, sizes = np.array([0, 70, 140]), np.array([70, 70, 60])
    stated = np.array([zlib.crc32(data[at : at + size].tobytes()) for at, size in zip(bodies, sizes, strict=True)])
    assert first_mismatch(data, bodies, sizes, stated) == -1
    data[150] ^= 1
    assert first_mismatch(data, bodies, sizes, stated) == 2
    data[75] ^= 128
    assert first_mismatch(data, bodies, sizes, stated) == 1
    assert first_mismatch(data, bodies, sizes, np.array([stated[0], -1, -1])) == -1

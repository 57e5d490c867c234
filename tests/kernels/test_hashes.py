"""Hashes are put together as plain Python does it."""

import numpy as np
import pytest

from windrow.kernels.hashes import add_salted, mix, sum_elements

ODD = 0x9E3779B97F4A7C15


def plain_mix(value):
    value = (value ^ value >> 32) * 0xD6E8FEB86659FD93 % 2**64
    value = (value ^ value >> 29) * ODD % 2**64
    return value ^ value >> 32


@pytest.mark.parametrize("value", [0, 1, 2**32, 2**64 - 1, ODD])
def test_every_bit_is_spread(value):
    assert int(mix(np.uint64(value))) == plain_mix(value)


def test_columns_add_up_to_rows_and_a_null_adds_nothing():
    rng = np.random.default_rng(1)
    values, rows = rng.integers(0, 2**63, (2, 50)).astype(np.uint64)
    valid = rng.random(50) < 0.7
    expected = [
        (int(row) + (plain_mix((int(value) + 7) % 2**64) if is_set else 0)) % 2**64
        for row, value, is_set in zip(rows, values, valid, strict=True)
    ]
    add_salted(values, valid, np.uint64(7), rows)
    assert rows.tolist() == expected


def test_elements_count_by_their_place_in_a_list():
    elements = np.array([5, 6, 6, 5, 9], np.uint64)
    lists = np.empty(4, np.uint64)
    sum_elements(elements, np.array([0, 2, 2, 4, 5]), lists)
    assert lists.tolist() == [
        sum(plain_mix((value + place * ODD) % 2**64) for place, value in enumerate(part, 1)) % 2**64
        for part in ([5, 6], [], [6, 5], [9])
    ]

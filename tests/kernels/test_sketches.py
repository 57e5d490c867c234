"""Coupons are those of DataSketches, and tables and registers hold what a plain loop would put there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.sketches import coupons_of_numbers, coupons_of_texts, gather_coupons, raise_registers

datasketches = pytest.importorskip("datasketches")

WORD = (1 << 64) - 1


def murmur(data: bytes, seed: int = 9001) -> tuple[int, int]:
    """MurmurHash3, x64, 128 bits, as it is written down."""

    def turned(value, bits):
        return (value << bits | value >> (64 - bits)) & WORD

    def first(word):
        return turned(word * 0x87C37B91114253D5 & WORD, 31) * 0x4CF5AD432745937F & WORD

    def second(word):
        return turned(word * 0x4CF5AD432745937F & WORD, 33) * 0x87C37B91114253D5 & WORD

    def finished(value):
        value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & WORD
        value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & WORD
        return value ^ value >> 33

    one, other = seed, seed
    blocks = len(data) // 16 * 16
    for at in range(0, blocks, 16):
        one = (turned(one ^ first(int.from_bytes(data[at : at + 8], "little")), 27) + other) * 5 + 0x52DCE729 & WORD
        word = second(int.from_bytes(data[at + 8 : at + 16], "little"))
        other = (turned(other ^ word, 31) + one) * 5 + 0x38495AB5 & WORD
    other ^= second(int.from_bytes(data[blocks + 8 :], "little"))
    one ^= first(int.from_bytes(data[blocks : blocks + 8], "little"))
    one, other = one ^ len(data), other ^ len(data)
    one = one + other & WORD
    other = other + one & WORD
    one, other = finished(one), finished(other)
    one = one + other & WORD
    return one, other + one & WORD


def coupon(data: bytes) -> int:
    one, other = murmur(data)
    return min(64 - other.bit_length(), 62) + 1 << 26 | one & (1 << 26) - 1


def of_texts(values: list[bytes], before: bytes = b"") -> list[int]:
    data = np.frombuffer(before + b"".join(values), np.uint8)
    bounds = np.cumsum([len(before), *map(len, values)]).astype(np.int64)
    out = np.empty(len(values), np.uint32)
    coupons_of_texts(data, data[: data.size // 8 * 8].view(np.uint64), bounds, out)
    return out.tolist()


@pytest.mark.parametrize("length", [*range(70), 255, 1000])
def test_bytes_of_every_length_have_their_coupon_wherever_they_lie(length):
    value = bytes(n * 37 % 251 for n in range(length))
    assert of_texts([value]) == of_texts([value], b"12345") == [coupon(value)]


@given(st.lists(st.binary(max_size=40)))
@settings(deadline=None)  # the first call compiles
def test_many_texts_have_their_coupons_at_once(values):
    assert of_texts(values) == [coupon(value) for value in values]


@given(st.lists(st.integers(0, WORD)))
@settings(deadline=None)
def test_numbers_have_the_coupons_of_their_bytes(values):
    out = np.empty(len(values), np.uint32)
    coupons_of_numbers(np.array(values, np.uint64), out)
    assert out.tolist() == [coupon(value.to_bytes(8, "little")) for value in values]


def test_coupons_are_those_of_the_library():
    sketch = datasketches.hll_sketch(12)
    for value in (b"one", b"some text of more than sixteen bytes", b"\xff" * 16):
        sketch.update(value.decode("latin-1"))
    sketch.update(-5)
    stored = np.frombuffer(sketch.serialize_compact()[8:], "<u4")
    values = [v.decode("latin-1").encode() for v in (b"one", b"some text of more than sixteen bytes", b"\xff" * 16)]
    assert stored.tolist() == [*map(coupon, values), coupon((-5).to_bytes(8, "little", signed=True))]


COUPONS = st.lists(st.integers(1, 40).flatmap(lambda high: st.integers(high << 26, (high << 26) + 300)))


@given(COUPONS, st.integers(1, 20))
@settings(deadline=None)
def test_a_table_takes_coupons_until_it_is_full(values, most):
    table, seen, stopped = np.zeros(64, np.uint32), set(), len(values)
    for place, value in enumerate(values):
        if value not in seen and len(seen) == most:
            stopped = place
            break
        seen.add(value)
    assert gather_coupons(np.array(values, np.uint32), 0, table, 0, most) == (stopped, len(seen))
    assert set(table[table != 0].tolist()) == seen


@given(COUPONS)
@settings(deadline=None)
def test_registers_hold_the_greatest_number_that_came(values):
    registers, expected, hip = np.zeros(16, np.uint8), [0] * 16, 0.0
    found = raise_registers(np.array(values, np.uint32), 0, registers, 0.0, 16.0)
    for value in values:
        if value >> 26 > expected[value % 16]:
            hip += 16 / sum(0.5**each for each in expected)
            expected[value % 16] = value >> 26
    assert registers.tolist() == expected
    assert found == pytest.approx((hip, sum(0.5**each for each in expected)))

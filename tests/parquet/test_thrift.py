from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.parquet import thrift as t


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (t.struct(), "00"),
        (t.struct(t.i32(1, 0)), "15 00 00"),
        (t.struct(t.i32(1, -1), t.i64(2, 64)), "15 01 16 80 01 00"),
        (t.struct(t.i32(15, 1), t.i32(31, 1)), "f5 02 05 3e 02 00"),
        (t.struct(t.boolean(1, value=True), t.boolean(3, value=False)), "11 22 00"),
        (t.struct(t.binary(4, b"ab")), "48 02 61 62 00"),
        (t.struct(t.nested(2, t.struct(t.i32(1, 1)))), "2c 15 02 00 00"),
        (t.struct(t.list_of(1, 5, [t.zigzag(1), t.zigzag(-2)])), "19 25 02 03 00"),
        (t.struct(t.list_of(1, 8, [t.prefixed(b"x")] * 15)), "19 f8 0f" + " 01 78" * 15 + " 00"),
        (t.struct(t.verbatim(2, b"\x15\x02")), "29 15 02 00"),
        (t.fields(t.i32(9, 1), after=7), "25 02"),
        (t.header(12, 12, after=11), "1c"),
        (t.header(12, 12, after=12), "0c 18"),
    ],
)
def test_structs_are_written_as_the_compact_protocol_says(written, expected):
    assert written == bytes.fromhex(expected)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_number_is_zigzag_in_groups_of_seven_bits(number):
    written = t.zigzag(number)
    assert all(byte & 128 for byte in written[:-1])
    assert not written[-1] & 128
    value = sum((byte & 127) << 7 * place for place, byte in enumerate(written))
    assert (value >> 1) ^ -(value & 1) == number
    assert len(written) == max(1, -(-value.bit_length() // 7))

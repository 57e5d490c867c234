"""Stored values from the bytes of a file, and the bytes that a bloom filter is asked for."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest

from windrow.pruning.encoding import cells_of, stored_values
from windrow.pruning.types import BINARY, FLOAT, OPAQUE, SIGNED, TEXT, UNSIGNED, WHOLE, ColumnType, decimal

HERE = np.array([True, True])
WIDE = decimal(2, wide=True)
INT32, INT64, SINGLE, DOUBLE = (np.dtype(name) for name in ("<i4", "<i8", "<f4", "<f8"))


def strings(*values: bytes) -> np.ndarray:
    made = np.empty(len(values), object)
    made[:] = values
    return made


class TestStoredValues:
    """Bounds in the type that they are compared in."""

    @pytest.mark.parametrize(
        ("raw", "column_type", "values"),
        [
            (np.array([-1, 5], "<i4"), SIGNED, [-1, 5]),
            (np.array([-1, 5], "<i4"), UNSIGNED, [2**32 - 1, 5]),
            (np.array([-1, 5], "<i8"), UNSIGNED, [2**64 - 1, 5]),
            (np.array([0, 1], "u1"), UNSIGNED, [0, 1]),
            (np.array([-1, 5], "<i4"), WHOLE, [-1, 5]),
            (np.array([1.5, -0.0], "<f4"), FLOAT, [1.5, 0.0]),
            (strings(b"a", b""), TEXT, [b"a", b""]),
            (strings(b"\xff", b"\x00\xff"), WIDE, [-1, 255]),
        ],
    )
    def test_numbers_are_widened_and_text_is_as_it_is(
        self, raw: np.ndarray, column_type: ColumnType, values: list[Any]
    ) -> None:
        stored, present = stored_values(raw, HERE, column_type)
        assert stored.tolist() == values
        assert stored.dtype == column_type.dtype
        assert present.tolist() == [True, True]

    def test_halves_are_floats(self) -> None:
        raw = strings(struct.pack("<e", 1.5), b"")
        stored, present = stored_values(raw, np.array([True, False]), FLOAT, 2)
        assert stored[0] == 1.5
        assert present.tolist() == [True, False]

    def test_a_number_of_another_length_is_none(self) -> None:
        _, present = stored_values(strings(b"\0\0\1", b"\0\1"), HERE, WIDE, 3)
        assert present.tolist() == [True, False]
        _, present = stored_values(strings(b"\0\0\1", b"\0\1"), HERE, FLOAT, 2)
        assert present.tolist() == [False, True]

    def test_a_shortened_binary_value_is_a_bound_still(self) -> None:
        _, present = stored_values(strings(b"abc", b"ab"), HERE, BINARY, 3)
        assert present.tolist() == [True, True]

    @pytest.mark.parametrize("raw", [np.array([1, 2], "<i4"), strings(b"a", b"b")])
    def test_values_without_an_order_are_not_there(self, raw: np.ndarray) -> None:
        assert stored_values(raw, HERE, OPAQUE)[1].tolist() == [False, False]


class TestCells:
    """What stands for a value in a file."""

    @pytest.mark.parametrize(
        ("point", "column_type", "width", "length", "cells"),
        [
            (-2, SIGNED, INT32, None, [b"\xfe\xff\xff\xff"]),
            (-2, SIGNED, INT64, None, [b"\xfe" + b"\xff" * 7]),
            (2**32 - 1, UNSIGNED, INT32, None, [b"\xff" * 4]),
            (2**31, SIGNED, INT32, None, []),
            (2**31, WHOLE, INT32, None, [b"\0\0\0\x80"]),
            (-(2**31), WHOLE, INT32, None, [b"\0\0\0\x80"]),
            (2**32, WHOLE, INT32, None, []),
            (2**32, UNSIGNED, INT32, None, []),
            (1.5, FLOAT, SINGLE, None, [struct.pack("<f", 1.5)]),
            (1.5, FLOAT, DOUBLE, None, [struct.pack("<d", 1.5)]),
            (1.5, FLOAT, None, 2, [struct.pack("<e", 1.5)]),
            (0.1, FLOAT, SINGLE, None, []),
            (1e300, FLOAT, SINGLE, None, []),
            (math.inf, FLOAT, SINGLE, None, [struct.pack("<f", math.inf)]),
            (0.0, FLOAT, DOUBLE, None, [bytes(8), bytes(7) + b"\x80"]),
            (b"ab", TEXT, None, None, [b"ab"]),
            (b"ab", BINARY, None, 2, [b"ab"]),
            (b"ab", BINARY, None, 3, []),
            (-1, WIDE, None, 5, [b"\xff" * 5]),
            (256, WIDE, None, 3, [b"\x00\x01\x00"]),
            (2**23, WIDE, None, 3, []),
        ],
    )
    def test_a_value_has_its_bytes_or_cannot_be_there(
        self, point: Any, column_type: ColumnType, width: Any, length: int | None, cells: list[bytes]
    ) -> None:
        assert cells_of((point,), column_type, width, length) == cells

    def test_many_values_have_many(self) -> None:
        assert cells_of((1, 2**40, 2), SIGNED, INT32) == [b"\x01\0\0\0", b"\x02\0\0\0"]

    def test_nan_has_many_forms(self) -> None:
        assert cells_of((1.0, math.nan), FLOAT, DOUBLE) is None

    def test_so_has_a_decimal_of_any_length(self) -> None:
        assert cells_of((1,), WIDE, None) is None

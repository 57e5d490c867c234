"""A column widens only to a type that holds every value of both types exactly."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.widening import plain, widened

CASES = [
    ("int8", "int32", "int32"),
    ("uint8", "uint64", "uint64"),
    ("uint8", "int8", "int16"),
    ("uint32", "int8", "int64"),
    ("uint64", "int8", None),
    ("int16", "float32", "float32"),
    ("int32", "float32", "float64"),
    ("int32", "float64", "float64"),
    ("int64", "float64", None),
    ("float16", "float64", "float64"),
    ("int8", "float16", "float64"),
    ("string", "int64", None),
    ("string", "large_string", "string"),
    ("bool", "int8", None),
    ("null", "string", "string"),
    ("date32", "timestamp[us]", None),
    ("timestamp[ms]", "timestamp[ns]", "timestamp[ns]"),
]


@pytest.mark.parametrize(("one", "other", "both"), CASES)
def test_what_two_types_become(one, other, both):
    kinds = [pa.type_for_alias(name) for name in (one, other)]
    expected = None if both is None else pa.type_for_alias(both)
    assert widened(*kinds) == widened(*reversed(kinds)) == expected


def test_zones_are_kept_apart_from_none_and_the_first_zone_stays():
    berlin, utc, naive = (pa.timestamp("us", tz) for tz in ("Europe/Berlin", "UTC", None))
    assert widened(berlin, naive) is None
    assert widened(berlin, pa.timestamp("ns", "UTC")) == pa.timestamp("ns", "Europe/Berlin")
    assert widened(utc, utc) == utc


def test_decimals_keep_all_digits_on_both_sides():
    assert widened(pa.decimal128(10, 2), pa.decimal128(8, 6)) == pa.decimal128(14, 6)
    assert widened(pa.decimal128(38, 0), pa.decimal128(38, 38)) == pa.decimal256(76, 38)
    assert widened(pa.decimal256(76, 0), pa.decimal256(76, 1)) is None


def test_how_values_lie_in_memory_is_no_difference():
    assert plain(pa.dictionary(pa.int8(), pa.large_string())) == pa.string()
    assert plain(pa.run_end_encoded(pa.int32(), pa.binary_view())) == pa.binary()


NUMBERS = [pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
NUMBERS += [pa.float32(), pa.float64()]


@given(st.sampled_from(list(itertools.permutations(NUMBERS, 2))), st.integers(-(2**63), 2**64 - 1))
def test_a_widened_integer_reads_back_exactly(kinds, value):
    both = widened(*kinds)
    try:
        number = pa.scalar(value, kinds[0])
    except (pa.ArrowInvalid, OverflowError):
        return
    if both is not None and number.as_py() == value:
        assert number.cast(both).as_py() == value

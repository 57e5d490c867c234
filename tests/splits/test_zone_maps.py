"""Zone maps bound every value of a column, and prove nothing where they cannot."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.sort_schema import SortSchema
from windrow.model.zones import NULL, SortColumnValue, ValueKind
from windrow.splits.zone_maps import column_zone, zone_maps


def zone_of(values, kind=None):
    return column_zone(pa.chunked_array([pa.array(values, kind)]))


texts = st.lists(st.one_of(st.none(), st.text(max_size=200)), min_size=1, max_size=30)


@given(texts)
def test_text_bounds_enclose_every_value_and_the_regex_matches_it(values):
    zone = zone_of(values, pa.string())
    present = [value for value in values if value is not None]
    assert zone.null_count == len(values) - len(present)
    for value in present if zone.minimum is not NULL else []:
        assert zone.minimum.value <= value <= zone.maximum.value
        assert zone.regex is None or re2.fullmatch(zone.regex, value)


def test_long_text_is_shortened_outwards():
    zone = zone_of(["a" * 500, "z" * 500])
    assert zone.minimum.value == "a" * 64
    assert zone.maximum.value == "z" * 63 + "{"


def test_a_text_that_has_no_short_upper_bound_proves_nothing():
    zone = zone_of(["\U0010ffff" * 70])
    assert (zone.minimum, zone.maximum, zone.null_count) == (NULL, NULL, 0)


def test_the_character_before_the_surrogates_is_followed_by_the_one_after_them():
    assert zone_of(["x" * 63 + "\ud7ff" + "x"]).maximum.value == "x" * 63 + "\ue000"


@given(st.lists(st.one_of(st.none(), st.floats()), min_size=1))
def test_float_bounds_leave_nan_out(values):
    zone = zone_of(values, pa.float64())
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    if numbers:
        assert (zone.minimum.value, zone.maximum.value) == (min(numbers), max(numbers))
    else:
        assert zone.minimum is NULL


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@given(ticks=st.lists(st.integers(-(10**12), 10**12), min_size=1))
def test_times_are_microseconds_rounded_down(unit, ticks):
    zone = zone_of(ticks, pa.timestamp(unit, "Europe/Berlin"))
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    assert zone.minimum.value == min(ticks) * 10**6 // per_second
    assert zone.maximum.value == max(ticks) * 10**6 // per_second


CASES = [
    ([1, None, 3], pa.int32(), SortColumnValue(ValueKind.I64, 1), SortColumnValue(ValueKind.I64, 3), 1),
    ([2**64 - 1, 5], pa.uint64(), SortColumnValue(ValueKind.I64, 5), SortColumnValue(ValueKind.U64, 2**64 - 1), 0),
    ([True, False], pa.bool_(), SortColumnValue(ValueKind.I64, 0), SortColumnValue(ValueKind.I64, 1), 0),
    (
        [date(1970, 1, 2)],
        pa.date32(),
        SortColumnValue(ValueKind.I64, 86_400_000_000),
        SortColumnValue(ValueKind.I64, 86_400_000_000),
        0,
    ),
    ([None, None], pa.string(), NULL, NULL, 2),
    ([Decimal("1.5")], pa.decimal128(5, 2), NULL, NULL, 0),
    ([b"x"], pa.binary(), NULL, NULL, 0),
    ([1], pa.time64("us"), NULL, NULL, 0),
    ([1], pa.duration("s"), NULL, NULL, 0),
    ([[1]], pa.list_(pa.int32()), NULL, NULL, 0),
]


@pytest.mark.parametrize(("values", "kind", "low", "high", "nulls"), CASES, ids=lambda case: str(case)[:20])
def test_each_type_has_bounds_or_says_that_it_has_none(values, kind, low, high, nulls):
    zone = zone_of(values, kind)
    assert (zone.minimum, zone.maximum, zone.null_count) == (low, high, nulls)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str)
@given(values=texts, place=st.integers(0, 30))
def test_the_type_that_holds_a_text_does_not_matter(kind, values, place):
    chunks = [pa.array(part, pa.string()).cast(kind) for part in (values[:place], values[place:])]
    assert column_zone(pa.chunked_array(chunks)) == zone_of(values, pa.string())


def test_a_dictionary_counts_by_what_its_rows_use():
    values = pa.DictionaryArray.from_arrays(pa.array([1, 3, None, 4, 1]), pa.array(["a", "b", "c", None, "b", "z"]))
    zone = column_zone(pa.chunked_array([values]))
    assert (zone.minimum.value, zone.maximum.value, zone.null_count, zone.regex) == ("b", "b", 2, "(?s)b")


def test_a_dictionary_of_numbers_is_bounded_too():
    zone = column_zone(pa.chunked_array([pa.array([3, None, 1]).dictionary_encode()]))
    assert (zone.minimum.value, zone.maximum.value, zone.null_count) == (1, 3, 1)


@pytest.mark.parametrize("shared", ["host-", "x" * 300, ""])
def test_a_column_of_many_values_still_has_an_expression(shared):
    values = [shared + f"{number * 2_654_435_761 % 2**32:032b}" for number in range(20_000)]
    zone = zone_of([*values, shared + "01"])
    assert [value for value in [*values, shared + "01"] if not re2.fullmatch(zone.regex, value)] == []
    assert not re2.fullmatch(zone.regex, "h" + values[0])


def test_huge_values_are_bounded_by_their_first_characters():
    values = ["x" * 2_000_000, "x" * 1_999_999 + "y"]
    zone = zone_of(values)
    assert (zone.minimum.value, zone.maximum.value) == ("x" * 64, "x" * 63 + "y")
    assert all(re2.fullmatch(zone.regex, value) for value in values)


def test_there_is_one_zone_for_each_schema_column_and_a_missing_column_is_null():
    rows = pa.table({"timestamp": [datetime(2024, 1, 1, tzinfo=UTC)], "region": ["eu"]})
    host, timestamp, region = zone_maps(rows, SortSchema.parse("host|timestamp&region/V2"))
    assert (host.minimum, host.null_count) == (NULL, 1)
    assert timestamp.minimum.kind is ValueKind.I64
    assert region.regex is not None

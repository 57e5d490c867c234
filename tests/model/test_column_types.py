"""The records of column types: one for each type, and what rooms find in it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from windrow.model.column_types import TypeFamily, type_of

TYPES = [
    *(pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary(3), pa.bool_()),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Oslo")),
    *(pa.duration("s"), pa.decimal32(5, 2), pa.decimal128(38, 10), pa.decimal256(60, 2), pa.uuid(), pa.null()),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_type_has_a_record(kind):
    record = type_of(kind)
    assert record is type_of(kind)
    assert type_of(pa.dictionary(pa.int32(), kind)).family is record.family
    assert len(record.fit((1, "x"))) == 2


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_numbers_of_zone_maps_have_the_order_of_the_values(kind):
    record = type_of(kind)
    if record.zone_numbers is None:
        assert record.family not in (TypeFamily.WHOLE, TypeFamily.FLOAT, TypeFamily.INSTANT, TypeFamily.DAY)
        return
    small, large = (pa.array([value], pa.int64()).cast(_number(kind)).cast(kind) for value in (0, 1))
    low, high = (record.zone_numbers(pa.chunked_array([each]))[0].as_py() for each in (small, large))
    assert low < high


def _number(kind):
    return pa.int32() if pa.types.is_date32(kind) else pa.float32() if pa.types.is_float16(kind) else pa.int64()


def test_nan_is_in_no_bound():
    numbers = type_of(pa.float32()).zone_numbers(pa.chunked_array([pa.array([math.nan, 1.0], pa.float32())]))
    assert pc.min_max(numbers).as_py() == {"min": 1.0, "max": 1.0}


@pytest.mark.parametrize(
    ("kind", "delta", "spark"),
    [
        (pa.uint8(), "short", pa.int16()),
        (pa.uint64(), "long", pa.decimal128(20, 0)),
        (pa.timestamp("ns"), "timestamp_ntz", pa.timestamp("us")),
        (pa.timestamp("s", "Europe/Oslo"), "timestamp", pa.timestamp("us", "UTC")),
        (pa.decimal32(5, 2), "decimal(5,2)", pa.decimal128(5, 2)),
        (pa.decimal256(60, 2), None, pa.decimal256(60, 2)),
        (pa.binary(4), "binary", pa.binary()),
        (pa.time32("ms"), None, pa.int64()),
        (pa.dictionary(pa.int32(), pa.string()), None, pa.string()),
    ],
    ids=str,
)
def test_types_of_delta_and_spark(kind, delta, spark):
    assert (type_of(kind).delta, type_of(kind).spark) == (delta, spark)


@pytest.mark.parametrize(
    ("kind", "given", "fitted"),
    [
        (pa.string(), "x", "x"),
        (pa.string(), 1, None),
        (pa.int64(), 1.5, 1.5),
        (pa.float64(), Decimal("0.1"), 0.1),
        (pa.timestamp("us"), date(2026, 1, 1), datetime(2026, 1, 1)),  # noqa: DTZ001
        (pa.date32(), "2026-01-01", date(2026, 1, 1)),
        (pa.date32(), datetime(2026, 1, 1), date(2026, 1, 1)),  # noqa: DTZ001
        (pa.date32(), datetime(2026, 1, 1, 12), None),  # noqa: DTZ001
        (pa.date32(), datetime(2026, 1, 1, tzinfo=UTC), None),
        (pa.date64(), "2026-01-01", None),
        (pa.decimal128(5, 2), Decimal("1.5"), Decimal("1.5")),
        (pa.decimal128(5, 2), 1.5, None),
        (pa.bool_(), 1, None),
        (pa.list_(pa.int64()), 1, None),
    ],
    ids=str,
)
def test_values_of_a_query_fit_or_do_not(kind, given, fitted):
    assert type_of(kind).fit((given,)) == [fitted]


def test_a_value_of_a_query_is_a_number_of_decoded_rows():
    assert type_of(pa.int32()).decoded_number(2**31) == 2**31
    assert type_of(pa.int64()).decoded_number(2**63) is None
    assert type_of(pa.int64()).decoded_number(1.0) is None
    assert type_of(pa.timestamp("us", "UTC")).decoded_number(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)) == 10**6
    assert type_of(pa.float64()).decoded_number(1.0) is None

"""Equal values have one coupon, whatever array and whatever type of the same domain they stand in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.statistics.hashing import coupons_of, domain_of
from windrow.statistics.sketch import Sketch, united
from windrow.statistics.values import used_values

datasketches = pytest.importorskip("datasketches")


def coupons(values: pa.Array) -> list[int]:
    return coupons_of(used_values(values)).tolist()


def theirs(values) -> list[int]:
    """The coupons that the library has for values, one by one."""
    found = []
    for value in values:
        sketch = datasketches.hll_sketch(12)
        sketch.update(value)
        found += np.frombuffer(sketch.serialize_compact()[8:], "<u4").tolist()
    return found


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
@settings(deadline=None)
def test_whole_numbers_are_hashed_as_the_library_does(values):
    assert coupons(pa.array(values, pa.int64())) == theirs(values)


@given(st.lists(st.floats()))
@settings(deadline=None)
def test_floats_are_hashed_as_the_library_does(values):
    assert coupons(pa.array(values, pa.float64())) == theirs(values)


@given(st.lists(st.text(min_size=1)))
@settings(deadline=None)
def test_texts_are_hashed_as_the_library_does(values):
    assert coupons(pa.array(values, pa.string())) == theirs(values)


@pytest.mark.parametrize("size", [2**20 - 1, 2**20, 2**20 + 7])
def test_texts_of_a_megabyte_are_hashed_as_the_library_does(size):
    texts = ["x" * size, "x" * (size - 1) + "y"]
    assert coupons(pa.array(texts, pa.string())) == theirs(texts)
    assert coupons(pa.array(texts, pa.large_string()).dictionary_encode()) == theirs(texts)


def test_an_empty_text_is_a_value():
    assert len(set(coupons(pa.array(["", "a"])))) == 2


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
def test_a_whole_number_is_the_same_in_every_width(kind):
    assert coupons(pa.array([0, 5, 100], kind)) == coupons(pa.array([0, 5, 100], pa.int64()))
    assert domain_of(kind) == domain_of(pa.int64()) == domain_of(pa.decimal128(9, 0))


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)]
)
def test_a_text_is_the_same_in_every_layout(kind):
    assert coupons(pa.array(["abc", "def"]).cast(pa.binary()).cast(kind)) == coupons(pa.array(["abc", "def"]))
    assert domain_of(kind) == domain_of(pa.string())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_an_instant_is_the_same_in_every_unit(unit):
    moments = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(1901, 5, 6, tzinfo=dt.UTC)]
    assert coupons(pa.array(moments, pa.timestamp(unit))) == coupons(pa.array(moments, pa.timestamp("us")))


def test_nanoseconds_differ():
    assert len(set(coupons(pa.array(range(1000, 3000), pa.timestamp("ns"))))) == 2000


def test_days_times_and_truths_are_hashed_as_numbers():
    days = [dt.date(1970, 1, 2), dt.date(1970, 1, 11)]
    assert coupons(pa.array(days, pa.date32())) == coupons(pa.array(days, pa.date64())) == theirs([1, 10])
    times = pa.array([7, 8], pa.int32()).cast(pa.time32("s"))
    assert coupons(times) == coupons(times.cast(pa.time64("ns"))) == theirs([7_000_000, 8_000_000])
    assert coupons(pa.array([True, False])) == theirs([1, 0])
    assert coupons(pa.array([3], pa.duration("ms"))) == theirs([3000])


@pytest.mark.parametrize("kind", [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(70, 2)])
def test_a_decimal_is_the_same_in_every_width(kind):
    values = [Decimal("1.50"), Decimal("-3.25"), Decimal("0.00")]
    assert coupons(pa.array(values, kind)) == theirs([150, -325, 0])
    assert coupons(pa.array([None, *values], kind).slice(2)) == theirs([-325, 0])


def test_wide_decimals_differ_and_leave_narrow_ones_alone():
    values = [Decimal(10) ** 30, Decimal(10) ** 30 + 2**64, Decimal(5), Decimal(-(10**30))]
    found = coupons(pa.array(values, pa.decimal128(38, 0)))
    assert len(set(found)) == 4
    assert found[2:3] == theirs([5])
    assert coupons(pa.array(values, pa.decimal256(60, 0))) == found


def test_scales_zones_and_families_are_domains_of_their_own():
    kinds = [pa.decimal128(9, 2), pa.decimal128(9, 3), pa.int64(), pa.float32(), pa.bool_(), pa.date32(), pa.string()]
    kinds += [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.time32("s"), pa.null()]
    assert len({domain_of(kind) for kind in kinds}) == len(kinds)
    assert domain_of(pa.list_(pa.int64())) is domain_of(pa.struct([])) is None


@given(st.lists(st.sampled_from(["a", "b", "c", None]), max_size=20), st.integers(0, 5))
@settings(deadline=None)
def test_of_a_dictionary_the_used_entries_count_once(values, start):
    dictionary = pa.array(["unused", *values], pa.string()).dictionary_encode().slice(1 + start)
    found = coupons(dictionary)
    assert len(found) == len(set(found))
    assert set(found) == set(coupons(pa.array(values[start:], pa.string())))


def test_an_array_of_nulls_has_no_coupons():
    assert not coupons(pa.nulls(3))
    assert not coupons(pa.nulls(3, pa.string()))
    assert not coupons(pa.array([], pa.binary(2)))


@given(st.lists(st.one_of(st.none(), st.text(max_size=20)), max_size=30), st.integers(0, 10), st.integers(0, 10))
@settings(deadline=None)
def test_a_slice_has_the_coupons_of_its_values(values, start, length):
    part = pa.array(values, pa.string()).slice(start, length)
    assert coupons(part) == coupons(pa.array(values[start : start + length], pa.string()))


def random_column(kind: str, rows: int, random: np.random.Generator) -> pa.Array:
    span = int(10 ** random.uniform(0, 6))
    whole = random.integers(-span, span + 1, rows)
    makers = {
        "int64": lambda: pa.array(whole),
        "double": lambda: pa.array(whole * random.random()),
        "text": lambda: pa.array(np.char.add("value ", whole.astype(str))),
        "dictionary": lambda: pa.array((whole % 5000).astype(str)).dictionary_encode(),
        "instant": lambda: pa.array(whole, pa.int64()).cast(pa.timestamp("ms")),
        "nanoseconds": lambda: pa.array(whole, pa.int64()).cast(pa.timestamp("ns", "UTC")),
        "day": lambda: pa.array(whole.astype(np.int32)).cast(pa.date32()),
        "decimal": lambda: pa.array(whole).cast(pa.decimal128(21, 2)),
        "int16": lambda: pa.array((whole % 30_000).astype(np.int16)),
        "uint64": lambda: pa.array(whole.astype(np.uint64)),
        "float": lambda: pa.array((whole * random.random()).astype(np.float32)),
        "bytes": lambda: pa.array([each.tobytes() for each in whole], pa.binary(8)),
        "time of day": lambda: pa.array(abs(whole) % 86_400_000, pa.int64()).cast(pa.time64("us")),
        "duration": lambda: pa.array(whole).cast(pa.duration("s")),
        "boolean": lambda: pa.array(whole % 2 == 0),
    }
    return makers[kind]()


KINDS = (
    *("int64", "double", "text", "dictionary", "instant", "nanoseconds", "day", "decimal", "int16", "uint64", "float"),
    *("bytes", "time of day", "duration", "boolean"),
)


def sketch_in_parts(column: pa.Array, parts: int) -> Sketch:
    """The sketch of a column; of several parts one that was united from theirs."""
    sketches, size = [], -(-len(column) // parts)
    for start in range(0, len(column), size):
        sketches.append(Sketch())
        sketches[-1].add(coupons_of(used_values(column.slice(start, size))))
    return united(sketches)


def relative_errors(columns: int, parts: int) -> np.ndarray:
    """Errors in units of the standard error that theory gives; of few values all are counted, and none errs.

    DataSketches reads each sketch, and estimates the same.
    """
    random, errors = np.random.default_rng(parts), []
    unit = (0.8326 if parts == 1 else 1.04) / 64
    for number in range(columns):
        column = random_column(KINDS[number % len(KINDS)], int(10 ** random.uniform(3, 5)), random)
        sketch, count = sketch_in_parts(column, parts), len(column.unique())
        if sketch.is_exact:
            assert round(sketch.estimate) == count
        else:
            errors.append((sketch.estimate - count) / count / unit)
        theirs = datasketches.hll_sketch.deserialize(sketch.to_bytes())
        assert theirs.get_estimate() == pytest.approx(sketch.estimate, rel=0.005)
        assert Sketch.from_bytes(theirs.serialize_compact()).to_bytes() == sketch.to_bytes()
    return np.array(errors)


@pytest.mark.parametrize("parts", [1, 4])
def test_columns_of_all_types_are_estimated_within_the_error_of_theory(parts):
    errors = relative_errors(60, parts)
    # so few tell the true error to a tenth
    assert float(np.sqrt((errors**2).mean())) <= 1.3
    assert (abs(errors) <= 3).mean() >= 0.95


@pytest.mark.long
@pytest.mark.parametrize("parts", [1, 4])
def test_a_thousand_columns_are_estimated_within_the_error_of_theory(parts):
    errors = relative_errors(1000, parts)
    rms, within = float(np.sqrt((errors**2).mean())), float((abs(errors) <= 3).mean())
    print(f"{parts} parts, {errors.size} with registers: RMS {rms:.3f} of theory's, {within:.1%} within three sigma")
    assert rms <= 1.1
    assert within >= 0.99

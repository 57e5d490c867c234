"""Time windows: which durations there are, and which window a point lies in, to the nanosecond."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from math import floor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.model.window import (
    COLD_HOURS,
    VALID_MINUTES,
    Window,
    cold_duration,
    time_bounds_us,
    window_duration,
    window_start,
    window_starts,
)

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@pytest.mark.parametrize("minutes", VALID_MINUTES)
def test_a_duration_is_written_in_minutes_or_seconds_or_as_a_number(minutes):
    seconds = 60 * minutes
    for value in (f"{minutes}m", f"{seconds}s", seconds, timedelta(minutes=minutes)):
        assert window_duration(value) == seconds


def test_an_hour_is_a_duration():
    assert window_duration("1h") == 3600


REFUSED = [0, 1, 7, 11, 13, 17, 59, 61, 700, 1000, 1500, 2000, 2400, 7200, -900, True, 900.0, None, np.int64(900)]
REFUSED += ["", "15", "m", "-15m", "+15m", "15 m", " 15m", "15m\n", "15M", "15min", "0m", "015m", "1.5m", "7m", "2h"]
REFUSED += ["1d", "90m", "99999999999m", "\u0661\u0665m", timedelta(0), timedelta(minutes=-15), timedelta(minutes=7)]
REFUSED += [timedelta(minutes=15, microseconds=1), timedelta(days=1)]


@pytest.mark.parametrize("value", REFUSED, ids=repr)
def test_any_other_duration_is_refused_with_the_valid_ones(value):
    with pytest.raises(InvalidInput, match="use one of 1m, 2m, 3m, 4m, 5m, 6m, 10m, 12m, 15m, 20m, 30m, 60m"):
        window_duration(value)


@pytest.mark.parametrize(
    ("second", "duration", "start"),
    [(0, 900, 0), (899, 900, 0), (900, 900, 900), (-1, 900, -900), (-900, 900, -900), (-3601, 3600, -7200)],
)
def test_a_window_starts_at_or_before_the_second(second, duration, start):
    assert window_start(second, duration) == start
    assert Window.of(second, duration) == Window(start, duration)


@pytest.mark.parametrize("duration", [0, -900, 7, 5400, 169 * 3600, 86_401])
def test_a_window_has_a_valid_duration(duration):
    for build in (Window, Window.of, window_start):
        with pytest.raises(InvalidInput, match="does not divide an hour"):
            build(0, duration)


@pytest.mark.parametrize(
    ("value", "hours"),
    [("2h", 2), ("12h", 12), ("1d", 24), ("7d", 168), ("1w", 168), (7200, 2), (timedelta(days=1), 24)],
)
def test_a_cold_window_lasts_whole_hours(value, hours):
    assert cold_duration(value) == 3600 * hours
    assert Window.of(-1, 3600 * hours) == Window(-3600 * hours, 3600 * hours)
    assert Window.of(-1, 3600 * hours).is_cold


@pytest.mark.parametrize("value", ["1h", "60m", "90m", "8d", "169h", 0, 3600, 7201, timedelta(hours=2, seconds=1)])
def test_any_other_cold_window_is_refused_with_some_that_are_none(value):
    with pytest.raises(InvalidInput, match="cold_window: .* whole number of hours from 2 to 168 .* 6h, 12h, 1d or 7d"):
        cold_duration(value)


def test_points_without_a_timestamp_are_in_no_cold_window():
    with pytest.raises(InvalidInput, match="never gathered"):
        Window.overflow_of(7200)


@given(
    st.integers(-(10**9), 10**9), st.sampled_from([*(60 * each for each in VALID_MINUTES)]), st.sampled_from(COLD_HOURS)
)
def test_a_cold_window_holds_windows_of_every_duration_whole(second, duration, hours):
    cold, window = Window.of(second, 3600 * hours), Window.of(second, duration)
    assert cold.holds(window)
    assert cold.start <= window.start
    assert window.end <= cold.end
    assert not cold.holds(Window(cold.end, duration))
    assert not cold.holds(Window.overflow_of(duration))
    assert not window.holds(cold)


@pytest.mark.parametrize("start", [1, -1, 899, 0.0, None, True, 900 * 2**62])
def test_a_window_starts_at_a_multiple_of_its_duration(start):
    with pytest.raises(InvalidInput, match=r"build the window with Window\.of"):
        Window(start, 900)


def test_a_window_ends_where_the_next_one_starts():
    assert Window(900, 900).end == 1800


def test_the_overflow_window_is_not_the_window_at_the_epoch():
    overflow = Window.overflow_of(900)
    assert overflow == Window(0, 900, overflow=True)
    assert overflow != Window(0, 900)
    with pytest.raises(InvalidInput, match=r"use Window\.overflow_of"):
        Window(900, 900, overflow=True)


def test_windows_are_ordered_by_time():
    windows = [Window(1800, 900), Window.overflow_of(900), Window(-900, 900), Window(0, 900)]
    assert sorted(windows) == [Window(-900, 900), Window(0, 900), Window.overflow_of(900), Window(1800, 900)]


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Window(1_700_000_100, 300), "2023-11-14T22:15:00Z/PT5M"),
        (Window(86_400, 86_400), "1970-01-02T00:00:00Z/PT1440M"),
        (Window(-900, 900), "1969-12-31T23:45:00Z/PT15M"),
        (Window(253_402_300_800, 3600), "10000-01-01T00:00:00Z/PT60M"),
        (Window.overflow_of(900), "overflow/PT15M"),
    ],
)
def test_a_window_prints_as_an_interval_in_utc(window, text):
    assert str(window) == text


def starts_of(values, kind, duration=900, unit=None):
    starts, is_null = window_starts(pa.array(values, kind), duration, unit=unit)
    assert (starts.dtype, is_null.dtype) == (np.int64, np.bool_)
    return [None if null else start for start, null in zip(starts.tolist(), is_null.tolist(), strict=True)]


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kathmandu", "-03:30"])
@pytest.mark.parametrize("unit", PER_SECOND)
def test_the_last_tick_before_an_edge_is_in_the_window_before_it(unit, zone):
    edge = 900 * PER_SECOND[unit]
    ticks = [edge, edge - 1, 0, -1, -edge, -edge - 1, None]
    expected = [900, 0, 0, -900, -900, -1800, None]
    assert starts_of(ticks, pa.timestamp(unit, zone)) == expected
    assert starts_of(ticks, pa.int64(), unit=unit) == expected


def test_dates_lie_in_the_window_at_midnight():
    days = [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), None]
    expected = [0, -86_400, 1_709_164_800, None]
    assert starts_of(days, pa.date32(), 3600) == expected
    assert starts_of(days, pa.date64(), 3600) == expected


def test_the_greatest_and_least_dates_have_a_window():
    assert starts_of([2**31 - 1, -(2**31)], pa.date32()) == [(2**31 - 1) * 86_400, -(2**31) * 86_400]


def test_chunks_are_taken_together():
    chunks = pa.chunked_array([[900, None], [], [-1]], pa.timestamp("s"))
    starts, is_null = window_starts(chunks, 900)
    assert starts.tolist() == [900, 0, -900]
    assert is_null.tolist() == [False, True, False]


@pytest.mark.parametrize("values", [[], [None, None]])
def test_nothing_and_nulls_have_no_window(values):
    assert starts_of(values, pa.timestamp("us")) == values
    assert starts_of(values, pa.uint64(), unit="ns") == values


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
def test_integers_of_any_width_count_in_the_given_unit(kind):
    assert starts_of([0, 61, 120, None], kind, 60, "s") == [0, 60, 120, None]


@pytest.mark.parametrize("unit", [None, "m", "seconds", ""])
def test_integers_without_a_known_unit_are_refused(unit):
    for read in (lambda array: window_starts(array, 900, unit=unit), lambda array: time_bounds_us(array, unit=unit)):
        with pytest.raises(InvalidInput, match="set timestamp_unit to one of s, ms, us, ns"):
            read(pa.array([1]))


def test_unsigned_integers_beyond_64_bits_with_a_sign_are_refused():
    assert starts_of([INT64_MAX], pa.uint64(), unit="ns") == [INT64_MAX // 10**9 // 900 * 900]
    with pytest.raises(InvalidInput, match="unsigned values above"):
        window_starts(pa.array([2**63], pa.uint64()), 900, unit="ns")


@pytest.mark.parametrize("array", [pa.array(["2024-01-01"]), pa.array([1.5]), pa.array([True]), pa.array([[1]])])
def test_other_types_tell_no_time(array):
    with pytest.raises(InvalidInput, match="tells no time"):
        window_starts(array, 900, unit="s")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_extremes_of_64_bits_have_a_window(unit):
    extremes = [INT64_MIN, INT64_MAX]
    assert starts_of(extremes, pa.timestamp(unit)) == [start_by_fractions(ticks, unit, 900) for ticks in extremes]


def test_a_window_that_64_bits_cannot_hold_is_refused():
    first = -(2**63 // 900) * 900
    assert starts_of([first, INT64_MAX], pa.timestamp("s")) == [first, INT64_MAX - INT64_MAX % 900]
    with pytest.raises(InvalidInput, match="before the first window"):
        window_starts(pa.array([first - 1], pa.timestamp("s")), 900)


def test_the_duration_is_checked_here_too():
    with pytest.raises(InvalidInput, match="does not divide an hour"):
        window_starts(pa.array([1], pa.timestamp("s")), 7)


def start_by_fractions(ticks, unit, duration):
    return floor(Fraction(ticks, PER_SECOND[unit] * duration)) * duration


# the seconds of the first window that no 64 bits hold are left out
any_ticks = st.integers(INT64_MIN + 3600, INT64_MAX) | st.integers(-(10**13), 10**13)
near_an_edge = st.builds(
    lambda edge, unit, off: (edge * 60 * PER_SECOND[unit]) + off,
    st.integers(-(10**5), 10**5),
    st.sampled_from(list(PER_SECOND)),
    st.integers(-1, 1),
)
tick_lists = st.lists(st.none() | any_ticks | near_an_edge, max_size=20)


@settings(deadline=None)
@given(tick_lists, st.sampled_from(list(PER_SECOND)), st.sampled_from(VALID_MINUTES))
def test_windows_agree_with_exact_fractions(ticks, unit, minutes):
    duration = 60 * minutes
    expected = [None if tick is None else start_by_fractions(tick, unit, duration) for tick in ticks]
    assert starts_of(ticks, pa.timestamp(unit, "UTC"), duration) == expected
    assert starts_of(ticks, pa.int64(), duration, unit) == expected


@settings(deadline=None)
@given(tick_lists, st.sampled_from(list(PER_SECOND)))
def test_bounds_agree_with_exact_fractions(ticks, unit):
    known = [Fraction(tick * 10**6, PER_SECOND[unit]) for tick in ticks if tick is not None]
    array = pa.array(ticks, pa.timestamp(unit))
    if not known:
        assert time_bounds_us(array) is None
    elif floor(min(known)) < INT64_MIN or floor(max(known)) > INT64_MAX:
        with pytest.raises(InvalidInput, match="do not fit into 64 bits"):
            time_bounds_us(array)
    else:
        assert time_bounds_us(array) == (floor(min(known)), floor(max(known)))


def test_bounds_are_rounded_down_to_microseconds():
    assert time_bounds_us(pa.array([1, 1999, None], pa.timestamp("ns"))) == (0, 1)
    assert time_bounds_us(pa.array([-1, -1999], pa.timestamp("ns"))) == (-2, -1)
    assert time_bounds_us(pa.array([-1999, 1000]), unit="ns") == (-2, 1)


def test_bounds_of_dates_and_chunks():
    moment = datetime(2024, 2, 29, tzinfo=UTC)
    microseconds = int(moment.timestamp()) * 10**6
    assert time_bounds_us(pa.array([date(2024, 2, 29)])) == (microseconds, microseconds)
    assert time_bounds_us(pa.chunked_array([[3], [1], [2]]), unit="s") == (10**6, 3 * 10**6)


@pytest.mark.parametrize("extreme", [INT64_MIN, INT64_MAX])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_bounds_beyond_64_bits_are_refused(unit, extreme):
    with pytest.raises(InvalidInput, match="do not fit into 64 bits"):
        time_bounds_us(pa.array([0, extreme], pa.timestamp(unit)))

"""Durations, sizes, moments and ids as people write and read them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.model.ids import check_name, time_ordered_id
from windrow.model.units import format_bytes, format_seconds, parse_bytes, parse_moment, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("1h", 3600), ("30d", 2592000), ("2w", 1209600), (7, 7), (timedelta(hours=1), 3600)],
)
def test_durations(text, seconds):
    assert parse_seconds(text, "retention") == seconds


@pytest.mark.parametrize("text", ["", "h", "1.5h", "-1h", "1 hour", -5, True, 1.5, None, timedelta(microseconds=5)])
def test_no_duration(text):
    with pytest.raises(InvalidInput, match="^retention: "):
        parse_seconds(text, "retention")


@given(st.integers(0, 10**9))
def test_the_short_writing_of_a_duration_is_exact(seconds):
    assert parse_seconds(format_seconds(seconds), "x") == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("64KiB", 65536), ("1 GiB", 2**30), ("5MB", 5 * 10**6), ("12", 12), ("12B", 12), (9, 9)]
)
def test_sizes(text, size):
    assert parse_bytes(text, "target_split_size") == size


@pytest.mark.parametrize("text", ["", "MiB", "1.5MiB", "-1", "1 mile", -5, True, None])
def test_no_size(text):
    with pytest.raises(InvalidInput, match="^target_split_size: "):
        parse_bytes(text, "target_split_size")


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**30, "1.0 GiB"), (2**51, "2048.0 TiB")]
)
def test_sizes_for_people(count, text):
    assert format_bytes(count) == text


@given(
    st.integers(0, 2**48 - 1),
    st.integers(0, 2**48 - 1),
    st.binary(min_size=10, max_size=10),
    st.binary(min_size=10, max_size=10),
)
def test_ids_sort_by_time_and_are_26_characters(one, two, first, second):
    a, b = time_ordered_id(one, first), time_ordered_id(two, second)
    assert len(a) == len(b) == 26
    assert (a < b) == ((one, first) < (two, second))


@pytest.mark.parametrize("name", ["metrics", "M", "a_1", "a" * 128])
def test_table_names(name):
    assert check_name(name) is None


@pytest.mark.parametrize("name", ["", "1a", "_a", "a-b", "a b", "a/b", "..", "a" * 129, "größe", "a\n"])
def test_no_table_names(name):
    assert "is not a table name" in check_name(name)


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        (7, 7),
        (-7, -7),
        ("1970-01-01", 0),
        (" 1970-01-01T00:00:01Z ", 10**6),
        ("1970-01-01 01:00:00.000003+01:00", 3),
        (date(1970, 1, 2), 86_400 * 10**6),
        (datetime(1970, 1, 1, 0, 0, 1), 10**6),  # noqa: DTZ001 (one without a zone)
        (datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=-1))), 3600 * 10**6),
        (datetime(2242, 3, 16, 12, 56, 31, 999_999, tzinfo=UTC), 8_589_934_591_999_999),
    ],
)
def test_moments(value, microseconds):
    assert parse_moment(value, "timestamp") == microseconds


@pytest.mark.parametrize(
    "value", ["", "rubbish", "2000", "2000-13-01", "yesterday", 1.5, True, None, b"2000-01-01", []]
)
def test_no_moment(value):
    with pytest.raises(InvalidInput, match="^timestamp: .* is no moment; give a datetime"):
        parse_moment(value, "timestamp")


def test_moments_of_pandas_are_moments_and_its_missing_one_is_none():
    pandas = pytest.importorskip("pandas")
    assert parse_moment(pandas.Timestamp("1970-01-01T00:00:01.000001999"), "timestamp") == 1_000_001
    with pytest.raises(InvalidInput, match="no moment"):
        parse_moment(pandas.NaT, "timestamp")

"""Coalescing against a plain oracle: the bytes are right, and no request more than needed is made."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput, StorageError
from windrow.storage import ByteRange, Fetch, coalesce, gap_for
from windrow.storage.kinds import AZURE, GCS, HTTP, LOCAL_GAP, MEMORY, S3
from windrow.storage.ranges import read_ranges

DATA = bytes(range(251)) * 2
ranges = st.lists(
    st.builds(
        lambda start, length: ByteRange(start, min(length, len(DATA) - start)),
        st.integers(0, len(DATA)),
        st.one_of(st.integers(0, 12), st.integers(0, len(DATA))),
    ),
    max_size=12,
)
gaps = st.integers(0, 60)


def spans(fetches):
    return [(fetch.start, fetch.length) for fetch in fetches]


@pytest.mark.parametrize(
    ("wanted", "gap", "expected"),
    [
        ([], 10, []),
        ([(5, 0)], 10, []),
        ([(5, 3)], 0, [(5, 3)]),
        ([(0, 5), (5, 5)], 0, [(0, 10)]),
        ([(0, 5), (6, 5)], 0, [(0, 5), (6, 5)]),
        ([(0, 5), (6, 5)], 1, [(0, 11)]),
        ([(0, 5), (15, 5)], 10, [(0, 20)]),
        ([(0, 5), (16, 5)], 10, [(0, 5), (16, 5)]),
        ([(50, 5), (0, 5)], 10, [(0, 5), (50, 5)]),
        ([(0, 100), (10, 5), (105, 5)], 5, [(0, 110)]),
        ([(0, 5), (0, 5), (0, 5)], 0, [(0, 5)]),
        ([(0, 5), (50, 0), (100, 5)], 50, [(0, 5), (100, 5)]),
    ],
)
def test_ranges_are_joined_over_gaps_that_pay(wanted, gap, expected):
    assert spans(coalesce([ByteRange(*each) for each in wanted], gap)) == expected


def needed_offsets(wanted, gap):
    """The oracle, byte by byte: what is wanted, and runs of at most `gap` unwanted bytes between wanted ones."""
    wanted_offsets = sorted({offset for each in wanted for offset in range(each.start, each.end)})
    offsets = set(wanted_offsets)
    for before, after in pairwise(wanted_offsets):
        if after - before - 1 <= gap:
            offsets |= set(range(before, after))
    return offsets


@settings(deadline=None)
@given(ranges, gaps)
def test_fetches_cover_what_is_needed_and_nothing_else(wanted, gap):
    fetches = coalesce(wanted, gap)
    covered = [offset for fetch in fetches for offset in range(fetch.start, fetch.start + fetch.length)]
    assert sorted(covered) == covered == sorted(needed_offsets(wanted, gap))


@settings(deadline=None)
@given(ranges, gaps)
def test_no_two_fetches_could_be_one(wanted, gap):
    fetches = coalesce(wanted, gap)
    for one, other in pairwise(fetches):
        assert other.start - (one.start + one.length) > gap


@settings(deadline=None)
@given(ranges, gaps)
def test_every_range_gets_its_bytes_in_the_callers_order(wanted, gap):
    read = lambda fetches: [memoryview(DATA)[f.start : f.start + f.length] for f in fetches]  # noqa: E731
    assert read_ranges("data", wanted, gap, read) == [DATA[each.start : each.end] for each in wanted]


def test_empty_ranges_are_answered_without_reading():
    def read(fetches):
        pytest.fail(f"read {fetches}")

    assert read_ranges("data", [ByteRange(5, 0), ByteRange(9, 0)], 0, read) == [b"", b""]


def test_short_bytes_are_an_error_and_never_handed_on():
    with pytest.raises(StorageError, match="data: 20 bytes were asked for at offset 5 and only 19 are there"):
        read_ranges("data", [ByteRange(5, 10), ByteRange(20, 5)], 5, lambda fetches: [bytes(19)])


def test_bytes_that_are_wanted_whole_are_not_copied():
    data = bytes(100)
    [(place, piece)] = Fetch(5, 100, ((3, ByteRange(5, 100)),)).cut(data)
    assert place == 3
    assert piece is data


@pytest.mark.parametrize(
    ("latency", "rate", "expected"), [(0, 1e9, 0), (0.1, 0, 0), (0.1, 1e8, 10_000_000), (1e-5, 1e9, 10_000)]
)
def test_a_gap_is_what_comes_in_the_time_of_a_request(latency, rate, expected):
    assert gap_for(latency, rate) == expected


@pytest.mark.parametrize(
    ("latency", "rate"), [(-1, 1), (1, -1), (-1, -1), (float("nan"), 1), (float("inf"), 1), (1e300, 1e300)]
)
def test_a_gap_needs_numbers_that_were_measured(latency, rate):
    with pytest.raises(InvalidInput, match="give finite numbers from 0 on"):
        gap_for(latency, rate)


def test_the_further_the_store_the_wider_the_gap():
    assert MEMORY.gap == 0
    assert 4_000 < LOCAL_GAP < 100_000
    for kind in (S3, GCS, AZURE, HTTP):
        assert 500_000 < kind.gap < 10_000_000

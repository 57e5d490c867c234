"""Work is dealt out to tasks evenly by its size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windrow.runners.dealing import dealt


def dealt_sizes(sizes, tasks):
    return dealt(sizes, tasks, lambda size: size)


def test_small_ones_share_a_task_and_large_ones_do_not():
    assert dealt_sizes([100, 1, 1, 1, 1, 90, 1, 1], 3) == [[100], [90], [1] * 6]


def test_of_one_size_they_keep_their_order():
    assert dealt("abcdef", 2, lambda _: 1) == [["a", "c", "e"], ["b", "d", "f"]]


def test_no_task_is_without_work():
    assert dealt_sizes([], 3) == []
    assert dealt_sizes([1, 1], 3) == [[1], [1]]


@given(st.lists(st.integers(0, 1000)), st.integers(1, 20))
def test_each_is_dealt_out_once_and_no_task_has_more_than_an_even_share_and_one_item(sizes, tasks):
    shares = dealt_sizes(sizes, tasks)
    assert sorted(size for share in shares for size in share) == sorted(sizes)
    even = sum(sizes) / max(len(shares), 1)
    assert all(sum(share) <= even + max(sizes) for share in shares)

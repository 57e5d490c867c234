"""What a run would take: each merge by itself, and bytes."""

from __future__ import annotations

from windrow.compaction.forecast import Forecast, Rates

MEBIBYTE = 2**20


def of(merges, size):
    return Forecast.of(100, 10, 2, merges, size, Rates())


def test_small_merges_take_time_too():
    assert of(59, 492_062).seconds >= 59 * 0.028


def test_where_nothing_is_merged_nothing_is_spent():
    assert of(0, 0).seconds == 0.0


def test_more_bytes_take_longer():
    assert of(1, 1000 * MEBIBYTE).seconds > of(1, MEBIBYTE).seconds

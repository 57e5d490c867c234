"""What a run would take: compiling, each merge by itself, and bytes."""

from __future__ import annotations

from windrow.compaction.forecast import Forecast, Rates

MEBIBYTE = 2**20


def of(merges, size, *, compiling=0.0):
    return Forecast.of(100, 10, 2, merges, size, Rates(), compiling)


def test_small_merges_take_time_too():
    assert of(59, 492_062).seconds >= 59 * 0.028


def test_kernels_that_are_not_compiled_yet_are_part_of_it():
    cold, warm = of(1, 9_600, compiling=30.0), of(1, 9_600)
    assert cold.compiling_seconds == 30.0
    assert warm.compiling_seconds == 0.0
    assert cold.seconds == 30.0 + warm.seconds


def test_where_nothing_is_merged_nothing_is_compiled():
    assert of(0, 0, compiling=30.0).seconds == 0.0


def test_more_bytes_take_longer():
    assert of(1, 1000 * MEBIBYTE).seconds > of(1, MEBIBYTE).seconds

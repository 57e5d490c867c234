from __future__ import annotations

import numpy as np
import pytest

from windrow.kernels.merge import merge_rows
from windrow.kernels.sorting import changes, sort_rows


@pytest.mark.parametrize("bits", [1, 11, 12, 40, 64])
@pytest.mark.parametrize("tail", [0, 3, 10, 64])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_sorted_and_merged_alike_and_stably(seed, tail, bits):
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(0, 300, int(rng.integers(1, 20))))
    keys = rng.integers(0, 2**bits, int(ends[-1]), dtype=np.uint64, endpoint=False) >> np.uint64(rng.integers(0, bits))
    for part in np.split(keys, ends[:-1]):
        part.sort()
    order = np.argsort(keys, kind="stable")
    for ordered, rows in (sort_rows(keys, ends, bits, tail), merge_rows(keys, ends)):
        assert rows.tolist() == order.tolist()
        assert ordered.tolist() == keys[order].tolist()


@pytest.mark.parametrize("swaps", [0, 10, 4000])
@pytest.mark.parametrize("shuffled", [False, True])
def test_inputs_that_follow_each_other_in_time_and_those_that_do_not_are_sorted_alike(swaps, shuffled):
    rng = np.random.default_rng(swaps)
    times, series = np.divmod(np.arange(20_000), 400)
    times[rng.integers(0, times.size, swaps)] = rng.integers(0, 2**12, swaps)
    keys = series.astype(np.uint64) << np.uint64(12) | times.astype(np.uint64) // np.uint64(2)
    inputs = [np.sort(part) for part in np.split(keys, 40)]
    if shuffled:
        rng.shuffle(inputs)
    keys, ends = np.concatenate(inputs), np.arange(500, 20_001, 500)
    ordered, rows = sort_rows(keys, ends, 22, 12)
    assert rows.tolist() == np.argsort(keys, kind="stable").tolist()
    assert ordered.tolist() == sorted(keys.tolist())


@pytest.mark.parametrize(
    ("keys", "bits", "expected"),
    [([], 3, []), ([5], 3, [1]), ([0, 1, 8, 9, 9, 64], 3, [2, 5, 6]), ([1, 2, 3], 0, [1, 2, 3]), ([1, 2**63], 64, [2])],
)
def test_changes_are_where_keys_differ_in_more_than_their_last_bits(keys, bits, expected):
    ends = np.empty(len(keys) + 1, np.int64)
    assert ends[: changes(np.array(keys, np.uint64), bits, ends)].tolist() == expected

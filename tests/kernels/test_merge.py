from __future__ import annotations

import numpy as np
import pytest

from windrow.kernels.merge import merge_rows, sort_rows


@pytest.mark.parametrize("bits", [1, 11, 12, 40, 64])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_sorted_and_merged_alike_and_stably(seed, bits):
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(0, 300, int(rng.integers(1, 20))))
    keys = rng.integers(0, 2**bits, int(ends[-1]), dtype=np.uint64, endpoint=False) >> np.uint64(rng.integers(0, bits))
    for part in np.split(keys, ends[:-1]):
        part.sort()
    order = np.argsort(keys, kind="stable")
    for ordered, rows in (sort_rows(keys, bits), merge_rows(keys, ends)):
        assert rows.tolist() == order.tolist()
        assert ordered.tolist() == keys[order].tolist()

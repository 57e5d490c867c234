"""Columns go through an order by runs or by rows, and come out as if they were indexed."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels import runs


def as_runs(codes):
    codes = np.array(codes, np.int32)
    last = np.append(np.flatnonzero(codes[1:] != codes[:-1]), len(codes) - 1)
    return codes[last], last + 1


def order_of(rows):
    """An order that interleaves inputs of so many rows, jump by jump."""
    rng = np.random.default_rng(sum(rows))
    at, starts, counts, owners = list(np.cumsum([0, *rows])[:-1]), [], [], []
    ends = np.cumsum(rows)
    while any(a < e for a, e in zip(at, ends, strict=True)):
        owner = int(rng.choice([n for n in range(len(rows)) if at[n] < ends[n]]))
        count = int(rng.integers(1, ends[owner] - at[owner] + 1))
        starts.append(at[owner])
        counts.append(count)
        owners.append(owner)
        at[owner] += count
    return np.array(starts, np.int64), np.array(counts, np.int64), np.array(owners, np.int32)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(1, 6), st.integers(0, 2**32))
@settings(deadline=None)  # the first call compiles
def test_gathering_by_runs_and_by_rows_is_gathering_by_index(rows, distinct, seed):
    codes = np.random.default_rng(seed).integers(-1, distinct, sum(rows)).astype(np.int32)
    starts, counts, owners = order_of(rows)
    index = np.concatenate([np.arange(s, s + c) for s, c in zip(starts, counts, strict=True)])
    short, ends = as_runs(codes)
    out, out_ends = np.empty(len(codes), np.int32), np.empty(len(codes), np.int64)
    cursors = np.searchsorted(ends, np.cumsum(rows) - np.array(rows), side="right")
    count = runs.gather_codes(starts, counts, owners, cursors, short, ends, out, out_ends)
    expected, expected_ends = as_runs(codes[index])
    assert out[:count].tolist() == expected.tolist()
    assert out_ends[:count].tolist() == expected_ends.tolist()
    count = runs.gather_rows(starts, counts, codes, out, out_ends)
    assert out[:count].tolist() == expected.tolist()
    assert out_ends[:count].tolist() == expected_ends.tolist()
    values = np.arange(len(codes), dtype=np.uint64)
    gathered = np.empty_like(values)
    runs.gather_fixed(starts, counts, values, gathered)
    assert gathered.tolist() == index.tolist()
    single = index.astype(np.int32)
    count = runs.take_codes(single, codes, out, out_ends)
    assert out[:count].tolist() == expected.tolist()
    assert out_ends[:count].tolist() == expected_ends.tolist()
    runs.take_fixed(single, values, gathered)
    assert gathered.tolist() == index.tolist()

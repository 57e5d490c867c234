"""Columns go through an order by runs, and come out of the hybrid encoding as they went in."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels import runs
from windrow.kernels.hybrid import next_run, signed


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


def unpacked(data, count):
    """The numbers of a width byte and the hybrid encoding behind it."""
    words = np.frombuffer(data + bytes(-len(data) % 8 + 16), np.uint64)
    width, at, out = data[0], 1, []
    while len(out) < count:
        left, value, bit, at = next_run(words, at, len(data), width)
        assert at > 0
        if bit < 0:
            out += [value] * left
        else:
            bits = int.from_bytes(data[bit // 8 :], "little")
            out += [bits >> (width * n) & ((1 << width) - 1) for n in range(left)]
    return out[:count]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=40))
@settings(deadline=None)  # the first call compiles
def test_packed_codes_unpack(pairs):
    codes = np.repeat([code for code, _ in pairs], [length for _, length in pairs]).astype(np.int32)
    bounds = np.array([0, len(codes) // 2, len(codes)])
    out, sizes = np.zeros(4 * len(codes) + 200, np.uint8), np.zeros(2, np.int64)
    coded = np.ones(2, np.uint8)
    total = runs.pack_codes(codes, bounds, coded, 41, out, sizes)
    assert total == sizes.sum()
    data = out.tobytes()
    halves = data[: sizes[0]], data[sizes[0] : total]
    for half, (low, high) in zip(halves, ((0, bounds[1]), (bounds[1], bounds[2])), strict=True):
        assert unpacked(half, int(high - low)) == codes[low:high].tolist()


@pytest.mark.parametrize("distinct", [1, 2, 3, 200])
def test_values_that_repeat_are_coded_and_others_are_not(distinct):
    rng = np.random.default_rng(0)
    repeated = rng.integers(0, distinct, 2000).astype(np.uint64)
    unique = np.arange(10_000, 12_000, dtype=np.uint64)
    values = np.concatenate([unique, repeated, unique, repeated])
    codes, entries = np.zeros(8000, np.int32), np.zeros(1024, np.uint64)
    coded = np.zeros(4, np.uint8)
    count = runs.code_fixed(values, np.arange(0, 8001, 2000), codes, entries, coded)
    assert coded.tolist() == [0, 1, 0, 1]
    assert sorted(entries[:count].tolist()) == sorted(set(repeated.tolist()))
    assert entries[codes[2000:4000]].tolist() == repeated.tolist()
    assert entries[codes[6000:]].tolist() == repeated.tolist()


def test_numbers_that_kernels_calculate_with_are_signed():
    assert signed(np.uint64(7)) == 7

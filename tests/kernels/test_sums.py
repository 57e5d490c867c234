"""Columns are summed by rows or by runs, with places or weights, to the same numbers."""

import numpy as np
import pytest

from windrow.kernels.sums import cumulate, mixed, sum_codes, sum_runs, sum_values, weigh

NOTHING, ALL_SET = np.zeros(0, np.uint64), np.zeros(0, np.uint8)


def plain(hashes, weights, rows):
    """The sums in Python's numbers; no hash is a null."""
    chosen = [row for row in rows if hashes[row] is not None]
    content, placed = sum(hashes[row] for row in chosen), sum(hashes[row] * weights[row] for row in chosen)
    return [content % 2**64, placed % 2**64, len(rows) - len(chosen)]


def order(rng, sizes):
    """An order that takes all rows of some inputs, as runs, and the weight of each row at place 5 and on."""
    begins = np.cumsum(sizes) - sizes
    owners = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = np.concatenate([[begins[o] + np.count_nonzero(owners[:n] == o)] for n, o in enumerate(owners)]).astype(int)
    weights = np.zeros(rows.size, np.int64)
    weights[rows] = 2 * (np.arange(rows.size) + 5) + 1
    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    starts = np.append(0, cuts)
    return rows, rows[starts], np.diff(np.append(starts, rows.size)), weights.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_all_ways_to_sum_give_the_sums_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 40, 4)
    rows, starts, counts, weights = order(rng, sizes)
    own = np.zeros(rows.size + 1, np.uint64)
    again = own.copy()
    assert weigh(starts.astype(np.int32), counts.astype(np.int32), rows.size, 5, own) == -1
    assert weigh(rows.astype(np.int32), np.zeros(0, np.int32), rows.size, 5, again) == -1
    assert own.tolist() == again.tolist() == [0, *weights]
    firsts = (np.cumsum(sizes) - sizes).astype(np.int64)
    assert cumulate(own, firsts, firsts + sizes) == -1
    codes = np.sort(rng.integers(-1, 4, rows.size)).astype(np.int32)
    known = rng.integers(0, 2**63, 4).astype(np.uint64)
    ends = np.append(np.flatnonzero(np.diff(codes)) + 1, rows.size).astype(np.int64)
    some = firsts, firsts + sizes // 2
    chosen = [row for first, last in zip(*some, strict=True) for row in range(first, last)]
    for cumulated, weight in ((own, weights), (NOTHING, (2 * np.arange(rows.size) + 1).tolist())):
        expected = plain([None if code < 0 else int(known[code]) for code in codes], weight, chosen)
        by_runs, by_rows, by_values = (np.zeros(3, np.uint64) for _ in range(3))
        sum_runs(codes[ends - 1], ends, known, cumulated, *some, by_runs)
        sum_codes(codes, known, cumulated, *some, by_rows)
        assert by_runs.tolist() == by_rows.tolist() == expected
        sum_values(codes.view(np.uint32), (codes >= 0).view(np.uint8), cumulated, *some, by_values)
        hashes = [None if code < 0 else int(mixed(np.uint64(code))) for code in codes]
        assert by_values.tolist() == plain(hashes, weight, chosen)
        all_set = np.zeros(3, np.uint64)
        sum_values(codes.view(np.uint32), ALL_SET, cumulated, *some, all_set)
        assert all_set.tolist() == plain(
            [int(mixed(np.uint64(code))) for code in codes.view(np.uint32)], weight, chosen
        )


@pytest.mark.parametrize(
    ("starts", "counts", "wrong"),
    [([0, 1], [2, 2], 1), ([0, 0], [], 1), ([0, 3], [2, 2], 1), ([-1, 0], [1, 1], 0), ([0], [3], 1)],
    ids=["a run that overlaps", "a row twice", "a run beyond the last row", "a row before the first", "too few rows"],
)
def test_an_order_that_does_not_take_each_row_once_gets_no_weights(starts, counts, wrong):
    weights = np.zeros(5, np.uint64)
    assert weigh(np.array(starts, np.int32), np.array(counts, np.int32), 4, 0, weights) == wrong


def test_only_the_rows_of_the_ranges_have_weights():
    def trouble(weights, firsts, lasts):
        return cumulate(np.array([0, *weights], np.uint64), np.array(firsts), np.array(lasts))

    assert trouble([1, 3, 0, 5], [0, 3], [2, 4]) == -1
    assert trouble([1, 0, 0, 5], [0, 3], [2, 4]) == 1
    assert trouble([1, 3, 7, 5], [0, 3], [2, 4]) == 2
    assert trouble([1, 3, 0, 5], [0], [2]) == 3

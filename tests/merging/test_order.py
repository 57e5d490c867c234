"""Keys compare as values do, and the order of a merge is that of a stable sort."""

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import InvariantViolation
from windrow.merging.order import Key, key_of, merge_order
from windrow.model.ordering import comparable
from windrow.model.sort_schema import Direction, SortColumn
from windrow.parquet.page_reader import Coded, Fixed

NUMBERS = {
    "int64": np.array([-(2**63), -1, 0, 1, 2**63 - 1]),
    "int32": np.array([-(2**31), -1, 0, 2**31 - 1], np.int32),
    "uint64": np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
    "uint32": np.array([0, 2**31, 2**32 - 1], np.uint32),
    "float64": np.array([-np.inf, -1.5, -0.0, 0.0, 1e-300, np.inf, np.nan, -np.nan]),
    "float32": np.array([-np.inf, -1.5, -0.0, 0.0, np.inf, np.nan], np.float32),
}


def signs(keys):
    return np.sign(np.subtract.outer(keys.astype(object), keys.astype(object)).astype(float)).tolist()


def expected_signs(values, direction):
    ranks = {value: rank for rank, value in enumerate(sorted({comparable(each) for each in values}, key=_sortable))}
    found = np.array([ranks[comparable(each)] for each in values])
    return signs(found if direction is Direction.ASCENDING else -found)


def _sortable(pair):
    return pair[0], 0 if pair[1] is None else pair[1]


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("with_null", [False, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_keys_of_numbers_compare_as_the_numbers_do(name, with_null, direction):
    numbers = NUMBERS[name]
    values = [*numbers.tolist(), *([None] if with_null else [])]
    stored = np.append(numbers, numbers[:1]) if with_null else numbers
    valid = np.append(np.ones(len(numbers)), 0).astype(np.uint8) if with_null else None
    key = key_of(Fixed(stored.view(f"u{stored.itemsize}"), valid), stored.dtype, SortColumn("x", direction))
    assert signs(key.numbers) == expected_signs(values, direction)
    assert int(key.numbers.max()).bit_length() <= key.bits


@pytest.mark.parametrize("direction", Direction)
def test_keys_of_texts_are_their_ranks_and_null_is_the_greatest(direction):
    texts = Coded(np.array([1, -1, 0], np.int32), np.array([2, 3, 5]), pa.array([b"a", b"b"], pa.large_binary()))
    key = key_of(texts, None, SortColumn("x", direction))
    assert key.ends.tolist() == [2, 3, 5]
    assert signs(key.numbers) == expected_signs([b"b", None, b"a"], direction)


def _merged(keys, rows, series_columns):
    return merge_order(keys, [f"input-{number}" for number in range(len(rows))], rows, series_columns)


@pytest.mark.parametrize("scattered", [False, True], ids=["runs", "rows"])
@pytest.mark.parametrize("seed", range(40))
def test_the_order_is_that_of_a_stable_sort(seed, scattered):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, rng.choice([3, 40, 400]), int(rng.integers(1, 12))).tolist()
    columns = int(rng.integers(1, 4))
    width = int(rng.choice([1, 5, 60]))
    numbers = [rng.integers(0, rng.choice([2, 10, 1000]), sum(rows)).astype(np.uint64) for _ in range(columns)]
    start = 0
    for count in rows:
        part = np.lexsort([column[start : start + count] for column in numbers][::-1]) + start
        for column in numbers:
            column[start : start + count] = column[part]
        start += count
    # keys that claim to be wide are ranked before they are packed
    merged = _merged([Key(column, None, max(width, 10), scattered) for column in numbers], rows, columns - 1)
    order = merged.order
    found = np.concatenate([np.arange(s, s + c) for s, c in zip(order.starts, order.lengths, strict=True)] or [[]])
    assert found.astype(int).tolist() == np.lexsort(numbers[::-1]).tolist()
    owners = np.repeat(order.inputs, order.lengths)
    assert owners.tolist() == np.searchsorted(np.cumsum(rows), found, side="right").tolist()
    prefix = np.stack([column[found.astype(int)] for column in numbers[:-1]] or [np.zeros(sum(rows))])
    changes = np.flatnonzero((prefix[:, 1:] != prefix[:, :-1]).any(axis=0)) + 1
    assert merged.series_starts.tolist() == changes.tolist()
    places = {row: place for place, row in enumerate(found.astype(int).tolist())}
    for row in rng.integers(0, max(sum(rows), 1), 5 if sum(rows) else 0).tolist():
        assert merged.place_of_row(row) == places[row]
        key = merged.key_at(row)
        first = min(places[other] for other in range(sum(rows)) if merged.key_at(other) == key)
        assert merged.place_of(key) == first
    assert order.indices.tolist() == found.astype(int).tolist()
    for place in rng.integers(0, sum(rows) + 1, 3).tolist():
        assert order.rows_before(place).tolist() == np.bincount(owners[:place], minlength=len(rows)).tolist()
    assert order.rows_before(sum(rows)).tolist() == rows


@pytest.mark.parametrize("bits", [20, 60], ids=["words", "runs"])
@pytest.mark.parametrize("seed", range(10))
def test_rows_of_a_series_that_lie_in_each_other_are_merged_one_by_one(seed, bits):
    rng = np.random.default_rng(seed)
    inputs, rows = int(rng.integers(2, 9)), 300
    series = np.concatenate([np.sort(rng.integers(0, 5, rows)) for _ in range(inputs)]).astype(np.uint64)
    times = rng.integers(0, 50 if seed % 2 else 2**20, inputs * rows).astype(np.uint64)
    for start in range(0, inputs * rows, rows):
        part = np.lexsort([times[start : start + rows], series[start : start + rows]]) + start
        times[start : start + rows] = times[part]
    order = _merged([Key(series, None, 3), Key(times, None, bits)], [rows] * inputs, 1).order
    # a word does not hold a key of 60 bits and a place
    assert (order.counts is None) == (bits == 20)
    assert order.indices.tolist() == np.lexsort([times, series]).tolist()


@pytest.mark.parametrize("scattered", [False, True], ids=["runs", "rows"])
def test_a_part_of_an_order_is_the_order_of_a_part(scattered):
    first = np.array([0, 0, 1, 1, 0, 1, 1], np.uint64)
    keys = [Key(first, None, 1, scattered), Key(np.arange(7, dtype=np.uint64), None, 3)]
    order = _merged(keys, [4, 3], 1).order
    rows = np.concatenate([np.arange(s, s + c) for s, c in zip(order.starts, order.lengths, strict=True)])
    for first in range(8):
        for last in range(first, 8):
            part = order.slice(first, last)
            spans = zip(part.starts, part.lengths, strict=True)
            assert [row for s, c in spans for row in range(s, s + c)] == rows[first:last].tolist()
            rest = order.without([(first, last)]) if first < last else order
            assert rest.indices.tolist() == [*rows[:first].tolist(), *rows[last:].tolist()] or first == last
    assert [order.row_at(place) for place in range(7)] == order.rows_at(np.arange(7)).tolist() == rows.tolist()


def test_a_place_is_found_by_its_key():
    keys = [Key(np.array([0, 2, 2, 0, 2], np.uint64), None, 2), Key(np.array([5, 1, 3, 6, 3], np.uint64), None, 3)]
    merged = _merged(keys, [3, 2], 1)
    assert [merged.key_at(row) for row in (0, 1, 4)] == [(0, 5), (2, 1), (2, 3)]
    assert [merged.place_of(key) for key in ((0, 0), (0, 6), (1, 0), (2, 3), (2, 4))] == [0, 1, 2, 3, 5]


def test_a_step_back_names_the_input_and_its_row():
    numbers = Key(np.array([0, 1, 1, 0], np.uint64), None, 1)
    with pytest.raises(InvariantViolation, match=r"SS-1.*input-1 is not sorted: row 1 "):
        _merged([numbers, Key(np.zeros(4, np.uint64), None, 1)], [2, 2], 1)
    with pytest.raises(InvariantViolation, match=r"input-0 is not sorted: row 1 "):
        _merged([Key(np.array([1, 0], np.uint64), None, 1)], [2], 0)

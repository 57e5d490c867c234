"""Radix passes give the order that the plain sort gives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.ordering import packed_keys, sort_indices
from windrow.model.sort_schema import SortSchema
from windrow.splits.sorting import radix_order, sorted_rows

numbers = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))
SCHEMA = SortSchema.parse("a|b-|timestamp/V2")


@given(
    st.integers(1, 60).flatmap(
        lambda rows: st.lists(st.lists(numbers, min_size=rows, max_size=rows), min_size=1, max_size=3)
    )
)
def test_it_is_the_stable_order_of_the_keys(columns):
    keys = [np.array(column, np.uint64) for column in columns]
    assert radix_order(keys).tolist() == np.lexsort(keys[::-1]).tolist()


def random_rows(count):
    random = np.random.default_rng(count)
    return pa.table(
        {
            "a": pa.array(random.integers(0, 9, count).astype(str)),
            "b": pa.array(random.normal(size=count).round(1), mask=random.random(count) < 0.1),
            "timestamp": pa.array(random.integers(-(2**62), 2**62, count), pa.timestamp("ns")),
            "row": pa.array(np.arange(count)),
        }
    )


@pytest.mark.parametrize("count", [0, 1, 1000, 30_000])
def test_few_rows_and_many_rows_are_sorted_alike(count):
    rows = random_rows(count)
    assert sorted_rows(rows, SCHEMA)["row"].to_pylist() == sort_indices(rows, SCHEMA).tolist()


def test_rows_without_any_sort_column_stay_as_they_are():
    rows = pa.table({"other": [3, 1, 2]})
    assert packed_keys(rows, SCHEMA) == []
    assert sorted_rows(rows, SCHEMA) == rows

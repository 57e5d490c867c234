"""What is known of a table, as values."""

from __future__ import annotations

import math
from datetime import date

import pyarrow as pa
import pytest

from windrow.statistics.table_statistics import DistinctCount, TableStatistics, exact_statistics

ROWS = pa.table(
    {
        "k": [1, 2, 3, 4],
        "day": [date(2024, 1, 2), None, date(2024, 1, 1), date(2024, 1, 2)],
        "v": [math.nan, 1.5, None, -2.0],
        "nothing": pa.nulls(4, pa.string()),
        "nan": [math.nan] * 4,
        "parts": [[1], [2], None, []],
        "name": pa.array(["a", "b", "a", None]).dictionary_encode(),
    }
)


@pytest.mark.parametrize(
    ("name", "distinct", "nulls", "low", "high"),
    [
        ("k", 4, 0, 1, 4),
        ("day", 2, 1, date(2024, 1, 1), date(2024, 1, 2)),
        ("v", 3, 1, -2.0, 1.5),
        ("nothing", 0, 4, None, None),
        ("nan", 1, 0, None, None),
        ("name", 2, 1, "a", "b"),
    ],
)
def test_exact_statistics_count_every_value(name, distinct, nulls, low, high):
    column = exact_statistics(ROWS).column(name)
    assert column.distinct == DistinctCount(distinct, is_exact=True)
    assert (column.null_count, column.minimum, column.maximum) == (nulls, low, high)


def test_a_column_of_lists_has_its_nulls_alone():
    column = exact_statistics(ROWS).column("parts")
    assert (column.distinct, column.null_count) == (None, 1)


def test_the_sample_has_whole_rows():
    statistics = exact_statistics(ROWS, [3, 1])
    assert statistics.sampled(["k", "name"]).select(["k", "name"]).to_pylist() == [
        {"k": 2, "name": "b"},
        {"k": 4, "name": None},
    ]
    assert statistics.sampled(["k", "else"]) is None
    assert exact_statistics(ROWS).sampled(["k"]) is None
    assert exact_statistics(ROWS, range(4)).is_whole_sample


def test_an_unknown_column_knows_nothing():
    column = TableStatistics(10).column("k")
    assert column.distinct is column.null_count is column.minimum is column.maximum is None


def test_two_standard_errors_bound_a_count():
    count = DistinctCount(1000, error=0.02)
    assert (count.lowest, count.highest) == (960, 1040)
    assert DistinctCount(10, error=0.9).lowest == 0

"""Keys that tables seem to have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.statistics.keys import DeclaredKeys, ForeignKey, foreign_key, primary_key
from windrow.statistics.table_statistics import ColumnStatistics, DistinctCount, TableStatistics, exact_statistics

ROWS = 2000
PARTS, SUPPLIERS = np.divmod(np.arange(ROWS), 4)
OFFERS = pa.table({"part": PARTS, "supplier": (PARTS * 4 + SUPPLIERS * 7) % 100, "cost": np.arange(ROWS) % 13})
KNOWN = exact_statistics(OFFERS, range(0, ROWS, 3))


def test_one_column_with_as_many_values_as_rows_is_a_key():
    orders = exact_statistics(pa.table({"customer": [1, 1, 2], "order": [7, 8, 9]}))
    assert primary_key("orders", orders, ["customer", "order"]) == ("order",)


def test_the_first_column_of_the_table_wins():
    both = exact_statistics(pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}))
    assert primary_key("t", both, ["a", "b"]) == ("a",)


def test_two_columns_may_be_a_key_together():
    assert primary_key("offers", KNOWN, ["part", "supplier"]) == ("part", "supplier")


def test_a_pair_that_the_sample_has_twice_is_none():
    assert primary_key("offers", KNOWN, ["part", "cost"]) in (None, ("part", "cost"))
    assert primary_key("offers", KNOWN, ["supplier", "cost"]) is None


@pytest.mark.parametrize("estimate", [985, 1000, 1012])
def test_a_sketch_may_err(estimate):
    table = TableStatistics(1000, {"k": ColumnStatistics(DistinctCount(estimate, error=0.016), 0)})
    assert primary_key("t", table, ["k"]) == ("k",)


@pytest.mark.parametrize(
    "column",
    [
        ColumnStatistics(DistinctCount(900, error=0.016), 0),
        ColumnStatistics(DistinctCount(999, is_exact=True), 0),
        ColumnStatistics(DistinctCount(1000, is_vague=True), 0),
        ColumnStatistics(DistinctCount(999, error=0.016), 1),
        ColumnStatistics(),
    ],
    ids=["too few", "exactly one less", "vague", "a null", "unknown"],
)
def test_what_is_no_key(column):
    assert primary_key("t", TableStatistics(1000, {"k": column}), ["k"]) is None


def test_a_value_that_the_sample_has_twice_refutes_a_sketch():
    column = ColumnStatistics(DistinctCount(1000, error=0.016), 0)
    table = TableStatistics(1000, {"k": column}, pa.table({"k": [1, 2, 2]}))
    assert primary_key("t", table, ["k"]) is None


def test_a_declared_key_wins():
    declared = DeclaredKeys({"offers": ("cost", "part")})
    assert primary_key("offers", KNOWN, ["part", "supplier"], declared) == ("cost", "part")


SIDE, KEY = ("lines", ("order",)), ("orders", ("id",))


@pytest.mark.parametrize(
    ("share", "found"),
    [
        (0.97, ForeignKey("lines", ("order",), "orders", ("id",), 0.97)),
        (1.2, ForeignKey("lines", ("order",), "orders", ("id",), 1.0)),
        (0.3, None),
        (-0.1, None),
        (None, None),
    ],
)
def test_contained_values_are_a_foreign_key(share, found):
    assert foreign_key(SIDE, KEY, lambda _, __: share) == found


def test_a_declared_foreign_key_wins():
    declared = ForeignKey("lines", ("order",), "orders", ("id",), 0.5)
    assert foreign_key(SIDE, KEY, lambda _, __: 0.0, DeclaredKeys(foreign=(declared,))) == declared


def test_every_column_of_a_pair_must_be_contained():
    shares = {"part": 1.0, "supplier": 0.1}
    pair = ("part", "supplier")
    assert foreign_key(("lines", pair), ("offers", pair), lambda one, _: shares[one[1]]) is None

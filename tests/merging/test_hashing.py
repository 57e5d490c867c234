"""What rows hash to does not depend on their order, and on nothing but their contents."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from windrow.merging.hashing import row_hashes, sum_of_rows

COLUMNS = {
    "text": pa.array(["a", "", None, "a" * 100, "b"]),
    "bytes": pa.array([b"\0", b"", None, b"\0\0", b"x"]),
    "number": pa.array([1, -1, None, 2**62, 0]),
    "small": pa.array([1, -1, None, 5, 0], pa.int8()),
    "float": pa.array([0.0, -0.0, None, float("nan"), 1.5]),
    "half": pa.array(np.array([0, 1, 2, 3, 4], np.float16)),
    "truth": pa.array([True, False, None, True, False]),
    "time": pa.array([1, 2, None, 3, 4], pa.timestamp("us", tz="UTC")),
    "decimal": pa.array([Decimal("1.10"), Decimal("-1.1"), None, Decimal(0), Decimal(7)], pa.decimal128(9, 2)),
    "code": pa.array(["a", "b", None, "a", "c"]).dictionary_encode(),
    "list": pa.array([[1, 2], [], None, [2, 1], [None]]),
    "map": pa.array([[("k", 1)], [], None, [("k", 2)], [("l", 1)]], pa.map_(pa.string(), pa.int64())),
    "struct": pa.array([{"x": 1, "y": None}, {"x": None, "y": 1}, None, {"x": 1, "y": 1}, {"x": 0, "y": 0}]),
    "fixed": pa.array([b"ab", b"cd", None, b"ef", b"gh"], pa.binary(2)),
    "nothing": pa.nulls(5),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_kind_of_value_tells_different_rows_apart(name):
    hashes = row_hashes(pa.table({name: COLUMNS[name]}), [name])
    expected = {"text": 5, "truth": 3, "code": 4, "nothing": 1}.get(name, 5)
    assert len(set(hashes.tolist())) == expected


@pytest.mark.parametrize("name", COLUMNS)
def test_slices_and_orders_hash_alike(name):
    table = pa.table({name: COLUMNS[name]})
    backwards = table.take(pa.array([4, 3, 2, 1, 0]))
    assert sum_of_rows(backwards, [name]) == sum_of_rows(table, [name])
    hashes = row_hashes(table, [name])
    assert row_hashes(table.slice(1, 3), [name]).tolist() == hashes[1:4].tolist()
    pieces = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    assert sum_of_rows(pieces, [name]) == sum_of_rows(table, [name])


def test_a_row_that_comes_twice_counts_twice():
    once, twice = pa.table({"x": [1, 2]}), pa.table({"x": [1, 1, 2, 2]})
    assert sum_of_rows(twice, ["x"]) == 2 * sum_of_rows(once, ["x"]) % 2**128
    assert sum_of_rows(pa.table({"x": [1, 1]}), ["x"]) != 0


def test_a_missing_column_is_a_null_one():
    assert sum_of_rows(pa.table({"x": [1]}), ["x", "y"]) == sum_of_rows(pa.table({"x": [1], "y": [None]}), ["x", "y"])


def test_values_that_change_places_change_the_sum():
    table = pa.table({"x": [1, 2], "y": [1, 2]})
    swapped = pa.table({"x": [1, 2], "y": [2, 1]})
    assert sum_of_rows(table, ["x", "y"]) != sum_of_rows(swapped, ["x", "y"])
    assert sum_of_rows(table, ["x"]) != sum_of_rows(table, ["y"])


def test_text_hashes_alike_in_all_its_types():
    text = pa.array(["a", None, "bb"])
    kinds = [text, text.cast(pa.large_string()), text.dictionary_encode(), text.cast(pa.binary())]
    assert len({sum_of_rows(pa.table({"x": kind}), ["x"]) for kind in kinds}) == 1


def test_the_names_of_a_table_are_listed_once_however_many_columns_are_hashed():
    class Listed:
        """A table that counts who lists its names: that takes as long as there are columns."""

        def __init__(self, table):
            self.table, self.lists = table, 0

        @property
        def column_names(self):
            self.lists += 1
            return self.table.column_names

        def __getattr__(self, name):
            return getattr(self.table, name)

        def __getitem__(self, name):
            return self.table[name]

    names = [f"column{number}" for number in range(100)]
    table = Listed(pa.table({name: [1, 2] for name in names}))
    assert row_hashes(table, names).tolist() == row_hashes(table.table, names).tolist()
    assert table.lists == 1

"""What is known of a table is what is known of its files together; what is not, is left out or vague."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.statistics.files import VALUES, columns, layout_of, learnt

from windrow.statistics.table_statistics import exact_statistics
from windrow.statistics.table_summary import table_statistics

# Arrow does not take from views, so the oracle has none.
KINDS = tuple(kind for kind in VALUES if kind not in (pa.null(), pa.string_view()))


def summed(parts, names=("x",), only=None):
    """The statistics of a table of files, each of which is a table of one row group."""
    files, known = {}, {}
    for at, part in enumerate(parts):
        layout = layout_of([part.num_rows], f"file {at}")
        files[layout.key] = part.num_rows
        if only is None or at in only:
            found = {
                name: learnt(part[name].combine_chunks(), [part.num_rows], name=name, layout=layout)
                for name in part.column_names
                if name in names
            }
            known[layout.key] = {name: summary for name, summary in found.items() if summary is not None}
    return table_statistics(files, known, names)


@given(columns(KINDS), st.integers(1, 3))
@example((pa.array([0.0, -0.0]), (2,)), 1)
@settings(deadline=None)
def test_small_tables_are_known_exactly(found, count):
    column, _ = found
    cuts = np.linspace(0, len(column), count + 1).astype(int)
    parts = [pa.table({"x": column.slice(a, b - a)}) for a, b in pairwise(cuts)]
    if not len(column):
        return
    statistics, exact = summed(parts), exact_statistics(pa.table({"x": column})).column("x")
    ours = statistics.column("x")
    assert statistics.row_count == len(column)
    assert ours.distinct.estimate == exact.distinct.estimate
    assert ours.null_count == exact.null_count
    assert statistics.is_whole_sample
    if not (pa.types.is_string(column.type) or pa.types.is_large_binary(column.type)):
        assert (ours.minimum, ours.maximum) == (exact.minimum, exact.maximum)


def test_bounds_are_values_of_python():
    rows = {
        "day": [dt.date(2026, 1, 2), dt.date(2026, 5, 6)],
        "moment": [dt.datetime(2026, 1, 2, tzinfo=dt.UTC), dt.datetime(2026, 1, 2, 5, tzinfo=dt.UTC)],
        "price": [Decimal("-1.50"), Decimal("2.00")],
        "text": ["ä" * 50, "ö"],
        "flag": [False, True],
    }
    statistics = summed([pa.table(rows)], tuple(rows))
    for name, (low, high) in rows.items():
        found = statistics.column(name)
        assert (found.minimum, found.maximum) == ((low, high) if name != "text" else ("ä" * 32, "ö"))


class TestPartlyKnown:
    def table(self, values):
        return [pa.table({"x": part}) for part in np.array_split(values, 4)]

    def test_columns_of_few_values_stay_so_and_keys_grow(self):
        few = summed(self.table(np.arange(40_000) % 50), only={0, 1}).column("x")
        key = summed(self.table(np.arange(40_000)), only={0, 1}).column("x")
        assert few.distinct.estimate == pytest.approx(50, rel=0.1)
        assert key.distinct.estimate == pytest.approx(40_000, rel=0.1)
        assert few.distinct.is_vague
        assert key.distinct.is_vague

    def test_bounds_and_nulls_of_some_rows_are_not_those_of_all(self):
        found = summed(self.table(np.arange(400)), only={1}).column("x")
        assert (found.null_count, found.minimum, found.maximum) == (None, None, None)

    def test_columns_that_nobody_read_are_missing(self):
        assert summed(self.table(np.arange(400)), ("y",)).columns == {}
        assert summed(self.table(np.arange(400)), only=()).columns == {}
        assert summed([], ("x",)).row_count == 0


class TestSamples:
    def test_rows_of_the_sample_are_rows_of_the_table(self):
        numbers = np.arange(50_000)
        table = pa.table({"x": numbers, "y": pa.array((numbers % 7).astype(str)), "z": numbers * 2})
        parts = [table.slice(0, 40_000), table.slice(40_000)]
        sample = summed(parts, ("x", "y", "z")).sample
        assert sample.num_rows == 1024
        assert all(row["z"] == 2 * row["x"] and row["y"] == str(row["x"] % 7) for row in sample.to_pylist())
        share = (sample["x"].to_numpy() >= 40_000).mean()
        assert share == pytest.approx(0.2, abs=5 * 0.4 / 32)

    def test_files_of_another_type_are_left_out(self):
        parts = [pa.table({"x": [1, 2]}), pa.table({"x": ["a"]})]
        statistics = summed(parts)
        assert statistics.sample["x"].to_pylist() == [1, 2]
        assert statistics.column("x").distinct.is_vague

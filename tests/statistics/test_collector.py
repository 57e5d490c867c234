"""A collector learns each row group once, from rows in any pieces, and within its budget."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics.files import columns, layout_of, learnt, parts_of

from windrow.errors import InvalidInput
from windrow.statistics.collector import MOST_COLUMNS, Budget, FileCollector, RowGroupValues, collects
from windrow.statistics.encoding import encode
from windrow.statistics.layout import MOST_ROW_GROUPS
from windrow.statistics.sample import joined_sample, sample_positions


@given(columns(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_pieces_in_any_order_tell_the_same_as_whole_row_groups(found, random):
    column, rows = found
    whole = learnt(column, rows)
    collector, pieces = FileCollector(layout_of(rows)), []
    for row_group, part in enumerate(parts_of(column, rows)):
        cuts = sorted(random.sample(range(len(part) + 1), min(3, len(part))))
        edges = [0, *cuts, len(part)]
        pieces += [(row_group, a, part.slice(a, b - a)) for a, b in pairwise(edges) if b > a]
    random.shuffle(pieces)
    for row_group, first, part in pieces:
        collector.add(row_group, first, {"x": part.dictionary_encode() if first % 2 else part})
    changed = collector.changed.get("x")
    if changed is not None:
        assert changed.synopses.facts == whole.synopses.facts
        assert changed.is_complete
        assert changed.sketch.coupons.tolist() == whole.sketch.coupons.tolist()
        assert repr(changed.sample.values.to_pylist()) == repr(whole.sample.values.to_pylist())


def test_a_sample_has_the_values_at_its_rows_the_same_for_every_column():
    rows, layout = [2500, 2500], layout_of([2500, 2500])
    collector = FileCollector(layout)
    for row_group in (1, 0):
        numbers = pa.array(np.arange(2500) + 2500 * row_group)
        collector.add(row_group, 0, {"number": numbers, "text": numbers.cast(pa.string()).dictionary_encode()})
    table = joined_sample({name: summary.sample for name, summary in collector.changed.items()})
    assert table["number"].to_pylist() == sample_positions(layout.fingerprint, sum(rows)).tolist()
    assert table["text"].to_pylist() == table["number"].cast(pa.string()).to_pylist()


class TestCoverage:
    def test_row_groups_that_were_skipped_stay_open(self):
        summary = learnt(pa.array(range(30)), [10, 10, 10], only={0, 2})
        assert summary.covered.tolist() == [True, False, True]
        assert (summary.known_rows, summary.is_complete) == (20, False)

    def test_they_are_learnt_when_a_query_reads_them(self):
        column, rows = pa.array(range(30)), [10, 10, 10]
        first = learnt(column, rows, only={0, 2})
        before = encode(first)
        collector = FileCollector(layout_of(rows), {"x": first})
        assert [collector.wants("x", row_group) for row_group in range(3)] == [False, True, False]
        collector.add(1, 0, {"x": column.slice(10, 10)})
        assert collector.changed["x"].is_complete
        assert round(collector.changed["x"].sketch.estimate) == 30
        assert encode(first) == before

    def test_a_row_group_that_was_not_read_to_its_end_is_not_covered(self):
        collector = FileCollector(layout_of([10]))
        collector.add(0, 0, {"x": pa.array(range(9))})
        assert not collector.changed

    def test_rows_that_were_seen_do_not_count_again(self):
        collector = FileCollector(layout_of([10]))
        for first, count in ((0, 5), (0, 5), (2, 5), (4, 1)):
            collector.add(0, first, {"x": pa.array([None] * count, pa.int64())})
        assert not collector.changed
        collector.add(0, 5, {"x": pa.array([1] * 5)})
        assert collector.changed["x"].synopses.whole.null_count == 5

    def test_what_is_complete_is_not_learnt_again(self):
        known = {"x": learnt(pa.array(range(10)), [10])}
        collector = FileCollector(layout_of([10]), known)
        collector.add(0, 0, {"x": pa.array([99] * 10)})
        assert not collector.changed

    def test_a_column_of_another_type_is_learnt_anew(self):
        known = {"x": learnt(pa.array(range(20)), [10, 10], only={0})}
        collector = FileCollector(layout_of([10, 10]), known)
        collector.add(1, 0, {"x": pa.array([f"{n}" for n in range(10)])})
        assert collector.changed["x"].type == pa.string()
        assert collector.changed["x"].covered.tolist() == [False, True]

    def test_layouts_of_texts_are_one_type(self):
        collector, values = FileCollector(layout_of([1] * 4)), pa.array(["a"])
        kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))
        for row_group, kind in enumerate(kinds):
            collector.add(row_group, 0, {"x": values.cast(kind)})
        assert collector.changed["x"].is_complete

    def test_rows_that_the_file_has_not_are_refused(self):
        with pytest.raises(InvalidInput, match="row group 0, which has 3"):
            FileCollector(layout_of([3])).add(0, 1, {"x": pa.array([1, 2, 3])})


class TestDictionaries:
    def test_a_dictionary_stands_for_the_rows_of_its_row_group(self):
        column = pa.array(["b", "a", None, "b", "a", None])
        rows, entries = [3, 3], column.dictionary_encode().dictionary
        collector = FileCollector(layout_of(rows))
        for row_group in range(2):
            collector.add_row_groups("x", [RowGroupValues(row_group, entries, 1, None)])
        found, expected = collector.changed["x"], learnt(column, rows)
        assert found.synopses.facts == expected.synopses.facts
        assert found.sketch.to_bytes() == expected.sketch.to_bytes()
        assert found.is_complete
        assert not found.sample.known.any()

    def test_it_replaces_rows_that_were_seen_in_part(self):
        collector = FileCollector(layout_of([3]))
        collector.add(0, 0, {"x": pa.array([None, 1])})
        collector.add_row_groups("x", [RowGroupValues(0, pa.array([1]), 1, None)])
        collector.add(0, 2, {"x": pa.array([1])})
        assert collector.changed["x"].synopses.whole.null_count == 1

    def test_a_budget_of_zero_takes_none(self):
        collector = FileCollector(layout_of([3]), budget=Budget(bytes=0))
        collector.add_row_groups("x", [RowGroupValues(0, pa.array([1]), 1, None)])
        assert not collector.changed


class TestBudget:
    @pytest.mark.parametrize("budget", [Budget(bytes=0), Budget(seconds=0)])
    def test_with_none_nothing_is_collected(self, budget):
        collector = FileCollector(layout_of([10]), budget=budget)
        assert not collector.wants("x", 0)
        collector.add(0, 0, {"x": pa.array(range(10))})
        assert not collector.changed

    def test_bytes_are_spent_until_none_are_left(self):
        budget = Budget(bytes=200)
        collector = FileCollector(layout_of([10] * 5), budget=budget)
        for row_group in range(5):
            collector.add(row_group, 0, {"x": pa.array(range(10))})
        assert collector.changed["x"].covered.tolist() == [True, True, False, False, False]
        assert budget.bytes == 40

    def test_seconds_are_spent_until_none_are_left(self):
        ticks = iter(range(100))
        collector = FileCollector(layout_of([1] * 5), budget=Budget(seconds=2.5, clock=lambda: next(ticks)))
        for row_group in range(5):
            collector.add(row_group, 0, {"x": pa.array([row_group])})
        assert collector.changed["x"].covered.tolist() == [True, True, True, False, False]


class TestWhatIsNotCollected:
    def test_nested_columns_are_passed_over(self):
        collector = FileCollector(layout_of([1]))
        collector.add(0, 0, {"x": pa.array([[1]]), "y": pa.array([{"a": 1}]), "z": pa.array([1])})
        assert list(collector.changed) == ["z"]

    def test_files_of_too_many_row_groups_are_passed_over(self):
        assert collects(layout_of([1] * MOST_ROW_GROUPS), pa.int64())
        assert not collects(layout_of([1] * (MOST_ROW_GROUPS + 1)), pa.int64())

    def test_columns_beyond_the_most_are_passed_over(self):
        collector = FileCollector(layout_of([1]))
        collector.add(0, 0, {f"c{number}": pa.array([1]) for number in range(MOST_COLUMNS + 5)})
        assert len(collector.changed) == MOST_COLUMNS

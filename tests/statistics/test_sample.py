"""Samples are the same rows for every column, every choice is as likely, and a merge draws as from all rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.statistics.sample import SAMPLE_ROWS, ColumnSample, joined_sample, redrawn, sample_positions


def full(draw: bytes, values: pa.Array) -> ColumnSample:
    return ColumnSample.empty(draw, values.type, len(values)).with_values(np.arange(len(values)), values)


class TestPositions:
    @given(st.binary(max_size=16), st.integers(0, 10**12))
    def test_they_are_different_rows_of_the_file_in_order(self, draw, rows):
        positions = sample_positions(draw, rows)
        assert positions.size == min(rows, SAMPLE_ROWS)
        assert (np.diff(positions) > 0).all()
        assert not rows or 0 <= positions[0] <= positions[-1] < rows

    def test_they_follow_from_the_name_alone_and_never_change(self):
        assert sample_positions(b"a", 10**9)[:4].tolist() == [170944, 987637, 1814156, 4029372]
        assert not np.array_equal(sample_positions(b"b", 10**9), sample_positions(b"a", 10**9))

    def test_every_row_is_as_likely(self):
        counts = np.zeros(20)
        for name in range(4000):
            counts[sample_positions(str(name).encode(), 20, 5)] += 1
        # a binomial count of 1,000 with a deviation of 27
        assert abs(counts - 1000).max() < 5 * 27

    def test_almost_all_rows_can_be_drawn(self):
        assert sample_positions(b"x", SAMPLE_ROWS + 1).size == SAMPLE_ROWS


class TestValues:
    def test_rows_are_filled_in_any_order(self):
        empty = ColumnSample.empty(b"d", pa.string(), 4)
        one = empty.with_values(np.array([3, 1]), pa.array(["three", None]))
        both = one.with_values(np.array([0, 2]), pa.array(["zero", "two"]).dictionary_encode())
        assert one.known.tolist() == [False, True, False, True]
        assert both.values.to_pylist() == ["zero", None, "two", "three"]
        assert both.known.all()

    def test_two_that_know_different_rows_are_united(self):
        empty = ColumnSample.empty(b"d", pa.int64(), 3)
        one, other = (empty.with_values(np.array([at]), pa.array([at])) for at in (0, 2))
        assert one.union(other).values.to_pylist() == other.union(one).values.to_pylist() == [0, None, 2]
        drawn = full(b"e", pa.array([7, 8]))
        assert one.union(drawn) is drawn.union(one) is drawn

    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
    def test_texts_of_a_megabyte_are_cut(self, kind):
        values = pa.array(["ä" * 2**20, "short", None]).cast(pa.binary()).cast(kind)
        sample = full(b"d", values)
        assert sample.values.nbytes < 2000
        assert sample.values.type in (pa.string(), pa.binary())
        assert sample.values[1:].to_pylist() == values[1:].to_pylist()

    def test_a_sample_of_long_texts_stays_small(self):
        assert full(b"d", pa.array(["x" * 200] * SAMPLE_ROWS)).values.nbytes < 64 * 1024

    def test_samples_of_the_same_rows_join_up(self):
        hosts = full(b"d", pa.array(["a", "b", "c"]))
        half = ColumnSample.empty(b"d", pa.int64(), 3).with_values(np.array([2, 0]), pa.array([3, 1]))
        table = joined_sample({"host": hosts, "value": half})
        assert table.to_pylist() == [{"host": "a", "value": 1}, {"host": "c", "value": 3}]
        assert joined_sample({"host": hosts, "value": full(b"e", pa.array([1, 2, 3]))}) is None


class TestMerges:
    def parts(self, *sizes: int, count: int = 50) -> list[tuple[int, ColumnSample]]:
        """Samples of files that hold the numbers from 0 on, one after the other."""
        starts = [0, *np.cumsum(sizes).tolist()]
        return [
            (size, full(f"{start}".encode(), pa.array(start + sample_positions(f"{start}".encode(), size, count))))
            for start, size in zip(starts, sizes, strict=False)
        ]

    def test_a_row_of_any_file_is_as_likely(self):
        """The share of each of 100 buckets of rows, over many merges of a small and a large file."""
        counts = np.zeros(100)
        for name in range(600):
            parts = [
                (rows, full(b"%d" % name, pa.array(start + sample_positions(b"%d.%d" % (name, start), rows, 50))))
                for start, rows in ((0, 200), (200, 800))
            ]
            drawn = redrawn(parts, b"%d" % name, 50)
            counts += np.bincount(drawn.values.to_numpy() // 10, minlength=100)
        assert counts.sum() == 600 * 50
        # a count of 300 with a deviation of about 17
        assert abs(counts - 300).max() < 5 * 17.4

    def test_columns_get_the_same_rows(self):
        parts = self.parts(400, 90, 1000)
        names = [(rows, full(sample.draw, sample.values.cast(pa.string()))) for rows, sample in parts]
        table = joined_sample({"number": redrawn(parts, b"m", 50), "text": redrawn(names, b"m", 50)})
        assert table["number"].cast(pa.string()).to_pylist() == table["text"].to_pylist()
        assert table.num_rows == 50

    def test_small_files_are_taken_as_a_whole(self):
        drawn = redrawn(self.parts(3, 4, 5), b"m", 50)
        assert sorted(drawn.values.to_pylist()) == list(range(12))

    def test_unknown_rows_stay_unknown(self):
        part = ColumnSample.empty(b"d", pa.int64(), 2).with_values(np.array([1]), pa.array([5]))
        drawn = redrawn([(2, part), (1, full(b"e", pa.array([7])))], b"m", 50)
        assert drawn.known.tolist() == [False, True, True]

    def test_of_a_sample_that_is_too_small_less_is_drawn(self):
        short = (10_000, full(b"d", pa.array(range(20))))
        drawn = redrawn([short, (10_000, full(b"e", pa.array(range(50))))], b"m", 50)
        assert 10 < drawn.known.size <= 45

    def test_columns_with_samples_of_other_rows_do_not_join_up(self):
        one = redrawn(self.parts(400, 90), b"m", 50)
        other = redrawn([(400, full(b"other", pa.array(range(50)))), self.parts(400, 90)[1]], b"m", 50)
        assert joined_sample({"one": one, "other": other}) is None

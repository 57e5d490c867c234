"""Statistics of files that were merged are those of the new file, within the error of sketches, and no row is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics.files import columns, layout_of, learnt

from windrow.errors import InvalidInput
from windrow.statistics.collector import FileCollector
from windrow.statistics.column_summary import merged_summary
from windrow.statistics.encoding import decode, encode
from windrow.statistics.sample import joined_sample


def a_part(values, key: str, **more):
    return learnt(values, [len(values)], layout=layout_of([len(values)], key), **more)


def numbers(count: int, low: int, high: int, seed: int) -> pa.Array:
    return pa.array(np.random.default_rng(seed).integers(low, high, count))


def test_estimates_are_those_of_statistics_collected_anew():
    parts = [numbers(4000, 0, 3000, 1), numbers(9000, 2000, 9000, 2), numbers(500, -5, 5, 3)]
    merged = merged_summary([a_part(part, f"{at}") for at, part in enumerate(parts)], layout_of([8000, 5500], "new"))
    rows = pa.concat_arrays(parts)
    anew = learnt(rows, [8000, 5500], layout=layout_of([8000, 5500], "new"))
    count = len(rows.unique())
    assert merged.sketch.estimate == pytest.approx(count, rel=4 * merged.sketch.error)
    assert anew.sketch.estimate == pytest.approx(count, rel=4 * anew.sketch.error)
    assert merged.is_complete
    assert merged.known_rows == 13_500
    assert merged.synopses.whole == anew.synopses.whole
    assert merged.sample.known.sum() == 1024
    shares = [(np.array(each.sample.values) < 2000).mean() for each in (merged, anew)]
    assert shares == pytest.approx([(np.array(rows) < 2000).mean()] * 2, abs=5 * 0.5 / 32)


@given(st.lists(columns(kinds=(pa.int64(), pa.string())), min_size=1, max_size=3))
@settings(deadline=None)
def test_bounds_nulls_and_counts_are_those_of_all_rows(found):
    kinds = {column.type for column, _ in found}
    parts = [learnt(column, rows, layout=layout_of(rows, f"{at}")) for at, (column, rows) in enumerate(found)]
    if len(kinds) > 1 or None in parts or not any(rows for _, rows in found if sum(rows)):
        return
    whole = pa.concat_arrays([column for column, _ in found])
    merged, anew = merged_summary(parts, layout_of([len(whole)], "new")), learnt(whole, [len(whole)])
    assert merged.synopses.whole == anew.synopses.whole
    assert np.array_equal(merged.sketch.coupons, anew.sketch.coupons)
    assert sorted(map(repr, merged.sample.values.to_pylist())) == sorted(map(repr, anew.sample.values.to_pylist()))


def test_columns_of_one_merge_have_the_same_rows():
    merged = {}
    for name, kind in (("number", pa.int64()), ("text", pa.string())):
        parts = [
            a_part(pa.array(np.arange(size) + 10_000 * at).cast(kind), f"{at}") for at, size in enumerate((3000, 5000))
        ]
        merged[name] = merged_summary(parts, layout_of([8000], "new"))
    table = joined_sample({name: summary.sample for name, summary in merged.items()})
    assert table["number"].cast(pa.string()).to_pylist() == table["text"].to_pylist()
    assert table.num_rows == 1024


def test_what_some_inputs_know_is_not_lost():
    known, half = (
        a_part(numbers(1000, 0, 100, 1), "a"),
        learnt(numbers(2000, 0, 100, 2), [1000, 1000], layout=layout_of([1000, 1000], "b"), only={1}),
    )
    merged = merged_summary([known, half], layout_of([3000], "new"))
    assert (merged.known_rows, merged.is_complete) == (2000, False)
    assert round(merged.sketch.estimate) == 100
    assert merged.synopses.whole.is_empty
    collector = FileCollector(merged.layout, {"x": merged})
    collector.add(0, 0, {"x": pa.array(range(3000))})
    assert collector.changed["x"].is_complete
    assert collector.changed["x"].sample.known.all()


def test_merged_statistics_are_stored_like_others():
    merged = merged_summary([a_part(pa.array([1, 2]), "a"), a_part(pa.array([3]), "b")], layout_of([3], "new"))
    found = decode(encode(merged), merged.layout.file)
    assert found.known_rows == 3
    assert found.sample.draw == merged.sample.draw


class TestNothingIsKnown:
    def test_of_inputs_of_several_types(self):
        parts = [a_part(pa.array([1]), "a"), a_part(pa.array(["a"]), "b")]
        assert merged_summary(parts, layout_of([2], "new")) is None

    def test_of_a_file_of_more_or_fewer_rows(self):
        assert merged_summary([a_part(pa.array([1]), "a")], layout_of([2], "new")) is None

    def test_of_no_inputs(self):
        assert merged_summary([], layout_of([0], "new")) is None


def test_statistics_of_two_files_are_not_united():
    with pytest.raises(InvalidInput, match="of two columns"):
        a_part(pa.array([1]), "a").union(a_part(pa.array([1]), "b"))

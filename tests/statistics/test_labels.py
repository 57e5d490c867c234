"""Labels and series of a file are those of its rows, in bounded room, and what files know passes to merged ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import Damaged
from windrow.statistics.label_collector import LabelCollector
from windrow.statistics.label_encoding import MOST_BYTES, decode_labels, encode_labels
from windrow.statistics.label_summary import MOST_LABELS, MOST_METRICS, MOST_SERIES, merged_labels
from windrow.statistics.layout import FileId

FILE = FileId("split-1", "1000 bytes")
TAGS = ("host", "rack", "zone")
TEXTS = st.sampled_from([None, "", "a", "b", "ab", "\xff", "é", "a" * 300, "a" * 301])
ROWS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.sampled_from(["cpu", "mem", None])), max_size=30)


def table_of(rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return pa.table(
        {name: pa.array(values, pa.string()) for name, values in zip((*TAGS, "metric_name"), columns, strict=True)}
    )


def learnt(table: pa.Table, tags=TAGS, pieces: int = 2, file: FileId = FILE):
    collector, size = LabelCollector(tags), max(1, -(-table.num_rows // pieces))
    for start in range(0, table.num_rows, size):
        part = table.slice(start, size)
        collector.add({name: part.column(name).combine_chunks() for name in collector.columns(part.column_names)})
    return collector.summary(file, table.num_rows)


def many(series: int, labels: int = 2, name: str = "host") -> pa.Table:
    """One row for each series, with as many values of each label."""
    numbers = [str(number) for number in range(series)]
    return pa.table({f"{name}{place}": [f"{name}{place}-{number}" for number in numbers] for place in range(labels)})


def count(sketch) -> int:
    return round(sketch.estimate)


@given(ROWS, st.booleans(), st.integers(1, 3))
@settings(deadline=None)
def test_counts_are_those_of_the_rows(rows, coded, pieces):
    table = table_of(rows)
    if coded:
        table = pa.table({name: table.column(name).dictionary_encode() for name in table.column_names})
    found = learnt(table, pieces=pieces)
    for one, other in combinations(TAGS, 2):
        values = {(row[TAGS.index(one)], row[TAGS.index(other)]) for row in rows}
        assert count(found.pairs[one, other]) == len([pair for pair in values if None not in pair])
    for place, name in enumerate(TAGS):
        assert set(found.values[name]) == {row[place] for row in rows} - {None}
    assert count(found.series) == len({(*row[:3], row[3] or "") for row in rows}) == found.series_ids.size
    expected = {metric: {row[:3] for row in rows if row[3] == metric} for metric in ("cpu", "mem")}
    assert {name: count(each) for name, each in found.metrics.items()} == {
        name: len(series) for name, series in expected.items() if series
    }


@given(ROWS)
@settings(deadline=None, max_examples=50)
def test_a_record_is_read_as_it_was_written(rows):
    found = learnt(table_of(rows))
    data = encode_labels(found)
    again = decode_labels(data, FILE)
    assert encode_labels(again) == data
    assert (again.labels, again.values, again.rows) == (found.labels, found.values, found.rows)
    assert again.series_ids.tolist() == found.series_ids.tolist()
    assert decode_labels(data, FileId("split-1", "1001 bytes")) is None
    for damaged in (data[:-1], data[:20], b"", data[:40] + b"\0" + data[41:]):
        with pytest.raises(Damaged):
            decode_labels(damaged, FILE)


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.uint64()])
def test_ids_of_series_count_where_a_file_has_them(kind):
    table = pa.table(
        {"timeseries_id": pa.array([5, 5, 7, 8, 5], kind), "metric_name": list("aaabb"), "host": list("xxyxx")}
    )
    found = learnt(table, tags=("host", "service"), pieces=1)
    assert found.series_ids.tolist() == [5, 7, 8]
    assert {name: count(each) for name, each in found.metrics.items()} == {"a": 2, "b": 2}


def test_series_are_the_same_in_every_file_whatever_labels_it_lacks():
    one = pa.table({"metric_name": ["m", "m"], "host": ["a", "b"]})
    other = pa.table({"metric_name": ["m", "m"], "host": ["b", "c"], "rack": pa.array([None, None], pa.string())})
    merged = merged_labels([learnt(one, TAGS), learnt(other, TAGS)], FileId("new", ""), 4)
    assert (count(merged.series), merged.series_ids.size) == (3, 3)


def test_ids_that_are_no_numbers_count_as_well():
    found = learnt(pa.table({"timeseries_id": ["x", "y", "x"], "metric_name": ["a", "b", "b"]}), tags=())
    assert count(found.series) == 2
    assert count(found.metrics["b"]) == 2


class TestBounds:
    @pytest.mark.parametrize("series", [100, 380, 5000, 30_000])
    def test_a_record_is_bounded_however_many_values_there_are(self, series):
        table = many(series, labels=20)
        found = learnt(table, tags=table.column_names)
        data = encode_labels(found)
        assert len(data) <= MOST_BYTES
        again = decode_labels(data, FILE)
        assert again.labels == tuple(table.column_names[:MOST_LABELS])
        assert len(again.pairs) == MOST_LABELS * (MOST_LABELS - 1) // 2
        errors = [each.estimate / series - 1 for each in again.pairs.values()]
        assert max(map(abs, errors)) < 4 * max(each.error for each in again.pairs.values())
        assert again.series.estimate == pytest.approx(series, rel=0.05)

    def test_metrics_of_most_series_are_counted(self):
        names = [f"metric {place:03}" for place in range(300) for _ in range(2 if place < 10 else 1)]
        found = learnt(
            pa.table({"metric_name": names, "host": [str(place) for place in range(len(names))]}), tags=("host",)
        )
        assert (len(found.metrics), found.other_metrics) == (MOST_METRICS, 300 - MOST_METRICS)
        assert {count(found.metrics[f"metric {place:03}"]) for place in range(10)} == {2}
        assert len(encode_labels(found)) <= MOST_BYTES

    @pytest.mark.parametrize(("series", "exact"), [(MOST_SERIES, True), (MOST_SERIES + 1, False)])
    def test_few_series_and_values_are_on_record_in_full(self, series, exact):
        found = learnt(many(series), tags=("host0", "host1"))
        assert (found.series_ids is not None) == exact
        assert (len(found.values) == 2) == exact

    def test_values_of_a_megabyte_are_counted_and_not_stored(self):
        texts = ["x" * 2**20 + str(place) for place in range(3)]
        found = learnt(pa.table({"host": texts, "rack": ["a", "b", "c"]}), tags=("host", "rack"))
        assert count(found.pairs["host", "rack"]) == 3
        assert set(found.values) == {"rack"}
        assert len(encode_labels(found)) < 1000

    def test_rows_without_labels_have_no_series_on_record(self):
        found = learnt(pa.table({"value": [1.0, 2.0]}))
        assert (found.series_ids, count(found.series)) == (None, 0)

    def test_all_null_labels_have_no_values(self):
        found = learnt(pa.table({"host": pa.nulls(5, pa.string()), "rack": ["a"] * 5}), tags=("host", "rack"))
        assert (found.values["host"], count(found.pairs["host", "rack"]), count(found.series)) == ((), 0, 1)


class TestMerges:
    def test_a_merged_file_has_the_labels_of_all_its_parts(self):
        table = pa.table({"host": [str(n % 40) for n in range(600)], "rack": [str(n % 7) for n in range(600)]})
        parts = [learnt(table.slice(start, 200), ("host", "rack")) for start in (0, 200, 400)]
        merged, anew = merged_labels(parts, FILE, 600), learnt(table, ("host", "rack"))
        assert encode_labels(merged) == encode_labels(anew)

    def test_what_some_parts_know_counts_as_rows_that_are_known(self):
        known = learnt(many(10), ("host0", "host1"))
        merged = merged_labels([known, None], FILE, 30)
        assert (merged.known_rows, merged.rows, merged.is_complete) == (10, 30, False)
        assert (merged.series_ids, merged.values) == (None, {})
        assert count(merged.pairs["host0", "host1"]) == 10
        assert merged_labels([None, None], FILE, 30) is None

    def test_pairs_that_one_part_lacks_are_left_out(self):
        one, other = learnt(many(5, 3), ("host0", "host1")), learnt(many(5, 3), ("host0", "host1", "host2"))
        assert merged_labels([one, other], FILE, 10).labels == ("host0", "host1")


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=50))
@settings(deadline=None, max_examples=30)
def test_long_files_in_order_and_shuffled_tell_the_same(ids):
    rows = np.repeat(ids, 3)
    table = pa.table({"timeseries_id": rows, "host": pc.cast(pa.array(rows % 5), pa.string())})
    shuffled = table.take(np.random.default_rng(1).permutation(len(rows)))
    one, other = learnt(table, ("host",)), learnt(shuffled, ("host",))
    assert one.series_ids.tolist() == other.series_ids.tolist()
    assert one.values == other.values

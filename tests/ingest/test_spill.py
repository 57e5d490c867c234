"""A task with little memory writes what a task with enough memory writes."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from windrow.errors import InvalidInput
from windrow.ingest.late import ArrivalRule
from windrow.ingest.spill import in_budget
from windrow.ingest.task_reports import RowCounts
from windrow.ingest.write_task import WriteTask
from windrow.metastore import TableColumn
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.parquet.footer import read_footer

SETTINGS = TableSettings.of(sort="host|timestamp+/V2", window="5m", partition_by=["tenant"])
TYPES = {
    "timestamp": pa.timestamp("s"),
    "tenant": pa.string(),
    "host": pa.string(),
    "value": pa.float64(),
    "note": pa.string(),
}
COLUMNS = {name: TableColumn(name, kind, place) for place, (name, kind) in enumerate(TYPES.items(), 1)}
TEXTS = [pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_string())]

points = st.tuples(
    st.one_of(st.none(), st.integers(-700, 700)),
    st.sampled_from(["a", "b", None]),
    st.sampled_from(["web", "db", "", None]),
    st.floats(width=32),
)


def batch(drawn, *, noted, host=TYPES["host"]):
    columns = dict(zip(("timestamp", "tenant", "host", "value"), zip(*drawn, strict=True), strict=True))
    if noted:
        columns["note"] = [f"{number % 3}" for number in range(len(drawn))]
    types = TYPES | {"host": host}
    return pa.record_batch({name: pa.array(values, types[name]) for name, values in columns.items()})


def task(folder, **changes):
    made = WriteTask(str(folder), "events", "t1", SETTINGS, "c1", 1, "default", 0, ArrivalRule(10**9), COLUMNS)
    return replace(made, **changes)


def written(folder, batches, **changes):
    """The splits of a task by tenant and window with the rows of each, and the counts."""
    reports = list(task(folder, **changes).run(batches, 7))
    splits = [report for report in reports if isinstance(report, SplitMetadata)]
    counts = sum((report for report in reports if isinstance(report, RowCounts)), RowCounts())
    rows = {
        (split.scope.partition_id, split.window): pq.ParquetFile(Path(folder, split.key)).read() for split in splits
    }
    assert len(rows) == len(splits), "a tenant and window has one split"
    return splits, rows, counts


@settings(max_examples=10)
@given(
    st.lists(
        st.tuples(st.lists(points, min_size=1, max_size=30), st.booleans(), st.sampled_from(TEXTS)),
        min_size=2,
        max_size=4,
    )
)
def test_the_same_rows_in_the_same_order_with_any_budget(drawn):
    batches = [batch(rows, noted=noted, host=host) for rows, noted, host in drawn]
    with tempfile.TemporaryDirectory() as plain, tempfile.TemporaryDirectory() as spilled:
        _, expected, counted = written(plain, batches)
        splits, found, counts = written(spilled, batches, held_rows=1)
        assert counts == counted
        assert found.keys() == expected.keys()
        for group, rows in found.items():
            # a column that all rows of a run lack is not in its file
            names = set(rows.column_names) | set(expected[group].column_names)
            for name in names:
                ours = rows[name].to_pylist() if name in rows.column_names else [None] * rows.num_rows
                assert str(ours) == str(
                    expected[group][name].to_pylist() if name in expected[group].column_names else [None] * len(ours)
                )
        assert all(split.generation == 0 and not split.replaces for split in splits)


def test_scratch_is_gone_whatever_happens(tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    rows = [batch([(number, "a", "web", 1.0)], noted=False) for number in range(3)]
    splits, _, _ = written(tmp_path / "lake", rows, held_rows=1)
    assert [split.row_count for split in splits] == [3]
    wrong = pa.record_batch({"timestamp": pa.array([1], pa.timestamp("s")), "tenant": ["a"], "host": [b"\xff"]})
    with pytest.raises(InvalidInput, match="'host'"):
        written(tmp_path / "lake", [*rows, wrong], held_rows=1)
    assert list(scratch.iterdir()) == []


def test_spilled_groups_keep_their_bloom_filters(tmp_path):
    rows = [batch([(number, "a", f"web-{number}", 1.0)], noted=False) for number in range(3)]
    chosen = SETTINGS.changed(bloom_filters=["host"])
    for folder, budget in ((tmp_path / "plain", 2**20), (tmp_path / "spilled", 1)):
        (split,), _, _ = written(folder, rows, settings=chosen, held_rows=budget)
        footer = read_footer(Path(folder, split.key).read_bytes(), name="split")
        filtered = [leaf.path[0] for leaf in footer.leaves if footer.chunks[0, leaf.index]["bloom_length"] > 0]
        assert filtered == ["host"]


def test_batches_are_held_up_to_the_budget():
    rows = [pa.record_batch({"a": pa.array([0] * count, pa.int64())}) for count in (2, 2, 0, 9, 1)]
    counts = [([each.num_rows for each in held], last) for held, last, _ in in_budget(rows, 200)]
    assert counts == [([2, 2], False), ([9], False), ([1], True)]
    assert list(in_budget([rows[2]], 200)) == []


def test_the_budget_is_a_word_that_users_say(tmp_path):
    with windrow.connect(str(tmp_path / "lake")) as lake:
        table = lake.create_table("events", sort="host|timestamp+/V2", window="5m")
        rows = pa.Table.from_batches([batch([(number, "a", "web", 1.0)], noted=False) for number in range(3)])
        assert table.ingest(rows, memory_budget=1).splits == 1
        with pytest.raises(InvalidInput, match="memory_budget: 'much' is not a size"):
            table.ingest(rows, memory_budget="much")

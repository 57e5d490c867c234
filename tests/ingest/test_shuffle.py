"""Rows that are gathered by tenant and window first are the same rows, in fewer files."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from windrow.errors import InvalidInput
from windrow.ingest.shuffle import decide, routed, unpacked
from windrow.model.settings import TableSettings
from windrow.model.window import Window, window_start

SETTINGS = TableSettings.of(cold_window="1d", sort="host|timestamp/V2", window="5m", partition_by=["tenant"])

points = st.tuples(
    st.one_of(st.none(), st.integers(-700, 700)), st.sampled_from(["a", "b", None]), st.sampled_from(["web", "db"])
)


def batch(drawn, first=0):
    return pa.record_batch(
        {
            "timestamp": pa.array([second for second, _, _ in drawn], pa.timestamp("s")),
            "tenant": pa.array([tenant for _, tenant, _ in drawn], pa.string()),
            "host": pa.array([host for _, _, host in drawn], pa.string()),
            "number": pa.array(range(first, first + len(drawn)), pa.int64()),
        }
    )


def sorted_rows(batches):
    return sorted((row for each in batches for row in each.to_pylist()), key=lambda row: row["number"])


@given(st.lists(st.lists(points, max_size=20), max_size=4), st.sampled_from([(0, 300), (10**9, 86_400)]))
def test_no_row_changes_and_all_of_a_tenant_and_window_go_one_way(drawn, closed):
    closed_before, duration = closed
    batches = [batch(rows, 100 * place) for place, rows in enumerate(drawn)]
    pieces = list(routed(batches, SETTINGS, closed_before))
    assert sorted_rows(unpacked(pieces)) == sorted_rows(batches)
    ways = {}
    for piece in pieces:
        for row in (row for each in unpacked([piece]) for row in each.to_pylist()):
            seconds = row["timestamp"]
            start = None if seconds is None else window_start(int(seconds.timestamp()), duration)
            ways.setdefault((row["tenant"], start), set()).add(piece["destination"][0].as_py())
    assert all(len(found) == 1 for found in ways.values())


def test_what_is_no_point_is_routed_with_its_notes():
    lines = pa.record_batch({"line": ["a,b"]}, metadata={"windrow.problem": "torn"})
    untimed = pa.record_batch({"timestamp": ["noon"], "tenant": ["a"]})
    pieces = list(routed([lines, untimed], SETTINGS, 0))
    assert [piece["destination"].to_pylist() for piece in pieces] == [[0], [0]]
    found = list(unpacked(pieces))
    assert found[0].schema.metadata == {b"windrow.problem": b"torn"}
    assert [each.to_pylist() for each in found] == [[{"line": "a,b"}], [{"timestamp": "noon", "tenant": "a"}]]


def some(first, count):
    return frozenset((0, Window(300 * number, 300)) for number in range(first, first + count))


MIB = 2**20


@pytest.mark.parametrize(
    ("samples", "tasks", "size", "shuffle", "files", "groups"),
    [
        ([some(0, 3)] * 4, 100, MIB, False, 300, 3),  # few files
        ([some(0, 96)] * 4, 100, 900 * MIB, True, 9600, 96),  # every task sees all windows of a day
        ([some(0, 96)], 100, None, True, 9600, 96),  # a DataFrame: one task is looked at, and no size is known
        ([some(0, 96)] * 4, 100, 9600 * 64 * MIB, False, 9600, 96),  # large files
        ([some(96 * task, 96) for task in range(4)], 100, MIB, False, 9600, 9600),  # every task has its own day
        ([some(48 * task, 96) for task in range(4)], 100, MIB, False, 9600, 4848),
        ([], 4, 0, False, 0, 0),
    ],
)
def test_the_decision_and_its_reason(samples, tasks, size, shuffle, files, groups):
    found = decide(samples, tasks, size)
    assert (found.shuffle, found.predicted_files, found.groups) == (shuffle, files, groups)
    assert f"{tasks} tasks would write about {files} files" in found.reason


def test_only_spark_shuffles(tmp_path):
    with windrow.connect(str(tmp_path / "lake")) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", partition_by=["tenant"])
        rows = pa.Table.from_batches([batch([(1, "a", "web")])])
        assert "this process" in table.ingest.plan(rows).shuffle_reason
        with pytest.raises(InvalidInput, match="shuffle: .*give a DataFrame"):
            table.ingest(rows, shuffle=True)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_gathers_files_and_frames(spark, tmp_path):
    drawn = [(number * 37 % 3000, "ab"[number % 2], f"host-{number % 7}") for number in range(4000)]
    names = [str(tmp_path / f"{place}.parquet") for place in range(4)]
    for place, name in enumerate(names):
        pq.write_table(pa.Table.from_batches([batch(drawn[place::4], 10_000 * place)]), name)
    with windrow.connect(str(tmp_path / "lake")) as lake:
        found = []
        ways = {"plain": names, "files": names, "frame": spark.read.parquet(*names)}
        for name, rows in ways.items():
            table = lake.create_table(name, sort="host|timestamp/V2", window="5m", partition_by=["tenant"])
            result = table.ingest(rows, spark=spark, shuffle=name != "plain")
            found.append(
                (
                    result.splits,
                    lake.sql(f"select * exclude (timestamp) from {name} order by number").to_arrow().to_pylist(),
                )
            )
        plan = table.ingest.plan(names, spark=spark)
    assert [splits for splits, _ in found] == [40, 20, 20]
    assert found[0][1] == found[1][1] == found[2][1]
    assert (plan.shuffle, plan.predicted_files) == (False, 40)
    assert plan.shuffle_reason.endswith("which are few")

"""What queries learnt leaves out row groups that sidecars know nothing of, and never a row that matches."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.statistics.files import VALUES, parts_of

import windrow
from windrow.cache import CacheSettings
from windrow.errors import MetastoreError
from windrow.model.predicate import And, Between, Comparison, IsNotNull, IsNull, Not, Op, Or
from windrow.planning.data_files import file_id_of
from windrow.pruning.types import TEXT
from windrow.questions.spelling import spelled
from windrow.statistics.cached_catalog import CachedCatalog
from windrow.statistics.collector import FileCollector
from windrow.statistics.column_summary import ColumnSummary
from windrow.statistics.layout import FileLayout
from windrow.statistics.synopsis import Facts, Synopses

KINDS = [kind for kind in VALUES if kind not in (pa.null(), pa.large_binary(), pa.timestamp("ns", "UTC"))]
numbers = itertools.count()


def opened(folder: Path):
    return windrow.connect(folder / "lake", cache=CacheSettings(folder=folder / "cache"), statistics=0)


@pytest.fixture
def lake(tmp_path):
    with opened(tmp_path) as made:
        yield made


def layout_of(lake, path) -> FileLayout:
    [file] = lake.context.foreign_files().find(str(path))
    metadata = pq.read_metadata(path)
    rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    return FileLayout(file_id_of(file), tuple(rows))


def learn(lake, path, names=None, only=None, most=100):
    """Learn columns of a file, of some row groups or of all, in at most so many synopses."""
    layout, rows = layout_of(lake, path), pq.read_table(path)
    names = rows.column_names if names is None else names
    counts = layout.row_counts
    known = {}
    for name in names:
        empty = ColumnSummary.empty(layout, rows.schema.field(name).type)
        known[name] = replace(empty, synopses=Synopses.empty(empty.type, counts, most))
    collector = FileCollector(layout, known)
    for name in names:
        column = pa.concat_arrays(rows.column(name).chunks)
        for row_group, part in enumerate(parts_of(column, layout.row_groups)):
            if only is None or row_group in only:
                collector.add(row_group, 0, {name: part})
    lake.context.learnt.store(collector.changed)


def steps_of(lake, query):
    (table,) = lake.explain(query).tables
    return {step.step: (step.kept, step.asked) for step in table.steps}


def table_of(lake, query):
    (table,) = lake.explain(query).tables
    return table


# ---- random files, as DuckDB's native tables have them


@st.composite
def predicates(draw, values, depth=1):
    """A predicate over columns of which some values are given, by name and kind."""
    if depth and draw(st.booleans()):
        parts = tuple(draw(st.lists(predicates(values, depth - 1), min_size=2, max_size=3)))
        return draw(st.sampled_from([And(parts), Or(parts), Not(parts[0])]))
    name = draw(st.sampled_from(sorted(values)))
    kind, there = values[name]
    if draw(st.integers(0, 6)) == 0:
        return draw(st.sampled_from([IsNull(name), IsNotNull(name)]))
    literals = st.sampled_from(there) if there else VALUES[kind]
    low, high = draw(literals), draw(literals)
    tests = [*(Comparison(name, op, low) for op in Op), Between(name, low, high)]
    return draw(st.sampled_from(tests))


@st.composite
def written(draw):
    """A table, the rows of its row groups, the columns that have statistics, and a predicate."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    size = draw(st.integers(1, 40))
    columns = {"i": pa.array(range(size), pa.int64())}
    for number, kind in enumerate(kinds):
        values = draw(st.lists(st.one_of(st.none(), VALUES[kind]), min_size=size, max_size=size))
        ordered = pa.array(values, kind)
        if draw(st.integers(0, 3)) and kind not in (pa.string_view(), pa.bool_()):
            ordered = ordered.take(pa.compute.sort_indices(ordered))
        columns[f"c{number}"] = ordered
    table = pa.table(columns)
    with_statistics = draw(st.one_of(st.just(set()), st.sets(st.sampled_from(table.column_names))))
    values = {
        name: (table.schema.field(name).type, [value for value in column.to_pylist() if value is not None])
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name != "i"
    }
    return table, draw(st.integers(1, 6)), sorted(with_statistics), draw(predicates(values))


@pytest.fixture(scope="module")
def shared():
    with TemporaryDirectory() as folder, opened(Path(folder)) as lake, duckdb.connect() as native:
        native.execute("set TimeZone = 'UTC'")
        yield lake, native, Path(folder)


def rows_of(relation):
    return sorted(relation.to_arrow_table().column("i").to_pylist())


@given(written(), st.data())
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_a_query_answers_as_without_statistics_and_as_native_tables_do(shared, file, data):
    lake, native, folder = shared
    table, size, with_statistics, predicate = file
    path = folder / f"{next(numbers)}.parquet"
    pq.write_table(table, path, row_group_size=size, write_statistics=with_statistics)
    native.execute(f"create or replace table t as from '{path}'")
    condition = spelled(predicate)
    expected = rows_of(native.sql(f"select i from t where {condition}"))
    query = f"select i from '{path}' where {condition}"
    before = table_of(lake, query)
    assert sorted(lake.sql(query).to_arrow()["i"].to_pylist()) == expected
    count = pq.read_metadata(path).num_row_groups
    names = data.draw(st.one_of(st.just(set(table.column_names)), st.sets(st.sampled_from(table.column_names))))
    only = data.draw(st.one_of(st.just(set(range(count))), st.sets(st.integers(0, count - 1))))
    learn(lake, path, sorted(names), only, data.draw(st.integers(1, 20)))
    assert sorted(lake.sql(query).to_arrow()["i"].to_pylist()) == expected
    after = table_of(lake, query)
    assert after.rows <= before.rows
    event(f"left out by synopses: {after.rows < before.rows}")


# ---- what is left out, and what is not


def sorted_file(path, rows=1000, **options):
    """Row groups of a hundred rows, sorted by all columns, without statistics."""
    moments = np.datetime64("2026-01-01") + np.arange(rows) * np.timedelta64(1, "h")
    table = pa.table(
        {
            "n": np.arange(rows),
            "name": [f"{'long ' * 30}{number:06}" for number in range(rows)],
            "code": [f"c{number:05}" for number in range(rows)],
            "moment": pa.array(moments.astype("datetime64[us]")),
            "x": np.arange(rows) * 0.5,
            "small": pa.array(np.arange(rows) % 200, pa.uint8()),
        }
    )
    options = {"row_group_size": 100, "write_statistics": False} | options
    pq.write_table(table, path, **options)
    return path


CONDITIONS = {
    "n between 250 and 349": 2,
    "n = 5": 1,
    "code = 'c00999'": 1,
    "code < 'c00100' or code > 'c00899'": 2,
    "moment < timestamp '2026-01-02'": 1,
    "x > 499": 1,
    "x <= 0": 1,
    "n is null": 0,
    "name like 'long%'": 10,
    "small > 250": 0,
    "n % 7 = 1": 10,
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_row_groups_are_left_out_once_they_are_learnt(lake, tmp_path, condition):
    path = sorted_file(tmp_path / "a.parquet")
    query = f"select count(*) as c from '{path}' where {condition}"
    before = lake.sql(query).to_dict()
    assert table_of(lake, query).rows == 1000
    lake.files(str(path)).analyze()
    assert table_of(lake, query).rows == 100 * CONDITIONS[condition]
    assert lake.sql(query).to_dict() == before


def test_nothing_is_loaded_of_columns_of_which_the_writer_left_all(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet", write_statistics=["n"])
    lake.files(str(path)).analyze()
    assert "synopses" not in steps_of(lake, f"select 1 from '{path}' where n < 250")
    assert steps_of(lake, f"select 1 from '{path}' where code < 'c00250'")["synopses"] == (3, 10)


def test_where_nothing_is_stored_there_is_no_step(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet")
    assert "synopses" not in steps_of(lake, f"select 1 from '{path}' where n < 250")


def test_sidecar_and_synopses_prove_together_what_neither_does_alone(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet", write_statistics=["n"])
    lake.files(str(path)).analyze()
    assert steps_of(lake, f"select 1 from '{path}' where n < 100 or code >= 'c00900'")["synopses"] == (2, 10)


def test_many_row_groups_share_a_synopsis(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet", rows=2_500, row_group_size=10)
    lake.files(str(path)).analyze()
    # 250 row groups have 84 synopses, of three row groups each.
    assert steps_of(lake, f"select 1 from '{path}' where n = 1234")["synopses"] == (3, 250)


def test_a_group_counts_once_all_of_it_was_read(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet")
    learn(lake, path, ["n"], only=[0, 1, 2, 4, 5], most=5)
    assert steps_of(lake, f"select 1 from '{path}' where n = 5000")["synopses"] == (6, 10)


def test_nulls_of_a_group_are_not_those_of_each_row_group(lake, tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1, 1, None, None]}), path, row_group_size=2, write_statistics=False)
    learn(lake, path, most=1)
    # As many nulls in the group as a row group has rows: none of the two is all null by that.
    assert lake.sql(f"select count(*) as c from '{path}' where x = 1").to_dict() == [{"c": 2}]
    assert lake.sql(f"select count(*) as c from '{path}' where x is null").to_dict() == [{"c": 2}]


def test_nan_is_greater_than_all_numbers(lake, tmp_path):
    path = tmp_path / "a.parquet"
    values = [1.0, 2.0, 1.0, math.nan, 3.0, 4.0, None, None]
    query = f"select count(*) as c from '{path}' where x > 100"
    for statistics in (True, False):
        pq.write_table(pa.table({"x": values}), path, row_group_size=2, write_statistics=statistics)
        assert table_of(lake, query).rows == (6 if statistics else 8)
        learn(lake, path)
        assert table_of(lake, query).rows == 2
        assert lake.sql(query).to_dict() == [{"c": 1}]


def test_splits_of_a_table_are_pruned_likewise(lake, tmp_path):
    path = sorted_file(tmp_path / "given.parquet")
    table = lake.create_table("t", sort="code|moment/V2", timestamp="moment", mirror=False)
    table.register.run(path)
    query = "select count(*) as c from t where code between 'c00120' and 'c00130'"
    assert table_of(lake, query).rows == 1000
    table.upkeep.analyze()
    assert table_of(lake, query).rows == 100
    assert lake.sql(query).to_dict() == [{"c": 11}]


def test_a_remote_lake_without_a_cache_on_disk_has_none(tmp_path):
    path = sorted_file(tmp_path / "a.parquet")
    with windrow.connect(tmp_path / "lake", cache=None, statistics=0) as lake:
        assert lake.context.learnt is None
        assert table_of(lake, f"select 1 from '{path}' where n < 250").rows == 1000


# ---- statistics that come, go and are wrong


def test_what_is_learnt_later_counts_in_the_next_query(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet")
    query, left = f"select 1 from '{path}' where n < 100", []
    for only in ([], [9], [5, 6]):
        learn(lake, path, ["n"], only=only)
        left.append(table_of(lake, query).rows)
    assert left == [1000, 900, 700]


def test_what_another_process_stored_counts_after_a_while(lake, tmp_path, monkeypatch):
    path = sorted_file(tmp_path / "a.parquet")
    query = f"select 1 from '{path}' where n < 100"
    assert table_of(lake, query).rows == 1000
    with opened(tmp_path) as other:
        learn(other, path, ["n"])
    assert table_of(lake, query).rows == 1000
    monkeypatch.setattr("windrow.planning.synopses._PATIENCE", 0.0)
    monkeypatch.setattr("windrow.statistics.cached_catalog._PATIENCE", 0.0)
    assert table_of(lake, query).rows == 100


def test_a_replaced_file_uses_none(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet")
    query = f"select count(*) as c from '{path}' where n < 100"
    learn(lake, path)
    assert table_of(lake, query).rows == 100
    moved = pq.read_table(path).to_pandas().assign(n=lambda rows: 999 - rows["n"])
    before = path.stat()
    pq.write_table(pa.Table.from_pandas(moved), path, row_group_size=100, write_statistics=False)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    assert table_of(lake, query).rows == 1000
    assert lake.sql(query).to_dict() == [{"c": 100}]


def test_damaged_records_are_passed_over(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet")
    learn(lake, path)
    for record in (tmp_path / "cache" / "statistics").rglob("*"):
        if record.is_file():
            record.write_bytes(record.read_bytes()[:-9] + b"nonsense!")
    with opened(tmp_path) as other:
        query = f"select count(*) as c from '{path}' where n < 100"
        assert table_of(other, query).rows == 1000
        assert other.sql(query).to_dict() == [{"c": 100}]


def altered(summary, **changes):
    """A record whose synopses say something else, or that is about something else."""
    return replace(summary, **changes)


def facts_as(summary, facts):
    return replace(summary.synopses, facts=(facts,) * len(summary.synopses.facts))


WRONG = {
    "of other row groups": lambda each: replace(each, layout=FileLayout(each.layout.file, (50, 150) * 5)),
    "of texts": lambda each: replace(each, type=pa.string(), synopses=replace(facts_like(each, b"a", b"b"), type=TEXT)),
    "with texts as numbers": lambda each: replace(each, synopses=facts_like(each, b"a", b"b")),
    "with too large numbers": lambda each: replace(each, synopses=facts_like(each, 2**80, 2**90)),
    "upside down": lambda each: replace(each, synopses=facts_like(each, 10**6, -(10**6))),
    "with too many nulls": lambda each: replace(each, synopses=facts_as(each, Facts(null_count=10**9, is_empty=False))),
}


def facts_like(summary, low, high):
    return facts_as(summary, Facts(low, high, is_empty=False))


class FixedCatalog:
    """A catalog that hands out what it was given, whatever that is."""

    def __init__(self, columns=None, error=None):
        self.columns, self.error = columns, error

    def load(self, files, columns):
        if self.error is not None:
            raise self.error
        return {file.key: {name: self.columns[name] for name in columns if name in self.columns} for file in files}

    def store(self, columns):
        raise AssertionError("nothing is stored")


@pytest.mark.parametrize("wrong", WRONG)
def test_records_that_cannot_be_true_leave_nothing_out(tmp_path, wrong):
    path = sorted_file(tmp_path / "a.parquet")
    with opened(tmp_path) as lake:
        learn(lake, path, ["n"])
        layout = layout_of(lake, path)
        stored = lake.context.learnt.load([layout.file], ["n"])[layout.key]["n"]
    with opened(tmp_path) as lake:
        catalog = CachedCatalog(FixedCatalog({"n": WRONG[wrong](stored)}))
        object.__setattr__(lake.context, "learnt", catalog)
        query = f"select count(*) as c from '{path}' where n < 150"
        assert table_of(lake, query).rows == 1000
        assert lake.sql(query).to_dict() == [{"c": 150}]


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MetastoreError("the database is gone")])
def test_a_catalog_that_fails_costs_no_answer(tmp_path, error):
    path = sorted_file(tmp_path / "a.parquet")
    with opened(tmp_path) as lake:
        object.__setattr__(lake.context, "learnt", CachedCatalog(FixedCatalog(error=error)))
        assert lake.sql(f"select count(*) as c from '{path}' where n < 150").to_dict() == [{"c": 150}]


# ---- what an explanation says of it


def test_an_explanation_says_which_statistics_there_were(lake, tmp_path):
    first = sorted_file(tmp_path / "a.parquet")
    sorted_file(tmp_path / "b.parquet", write_statistics=True)
    sorted_file(tmp_path / "c.parquet")
    learn(lake, first, ["n"], only=range(7))
    explanation = lake.explain(f"select 1 from '{tmp_path}/*.parquet' where n < 100 and code > 'c'")
    uses = {use["column"]: use for use in explanation.to_dict()["tables"][0]["statistics"]}
    assert uses["n"] == {
        "column": "n",
        "row_groups": 30,
        "written": 10,
        "learnt": 7,
        "missing": 13,
        "files": 3,
        "files_missing": 2,
    }
    assert (uses["code"]["learnt"], uses["code"]["missing"], uses["code"]["files_missing"]) == (0, 20, 2)
    line = "statistics of n: by the writer in 10, learnt in 7, missing in 13 of 30 row groups (2 of 3 files)"
    assert line in explanation.funnel


def test_without_a_condition_no_statistics_are_used(lake, tmp_path):
    path = sorted_file(tmp_path / "a.parquet")
    assert table_of(lake, f"select count(*) from '{path}'").statistics == ()

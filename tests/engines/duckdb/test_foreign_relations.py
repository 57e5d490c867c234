"""Parquet files that a query names by path: as DuckDB alone would read them, and less of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from windrow.cache import CacheKind, CacheSettings
from windrow.engines.duckdb.foreign_relations import ForeignRelations
from windrow.errors import Damaged, InvalidInput, NotFound
from windrow.model.predicate import Comparison, Op
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.questions.naming import Question
from windrow.storage import LocalStore


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as opened:
        yield opened


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    for number in range(3):
        columns = {"a": [number * 10, number * 10 + 1], "b": ["x", None]}
        pq.write_table(pa.table(columns if number else {**columns, "c": [1.5, 2.5]}), folder / f"{number}.parquet")
    return folder


def ask(lake, query):
    return [tuple(row.values()) for row in lake.sql(query).to_dict()]


def test_a_glob_is_all_its_files_with_the_columns_of_the_first(lake, raw):
    assert ask(lake, f"select count(*), sum(a), count(b), sum(c) from '{raw}/*.parquet'") == [(6, 63, 3, 4.0)]
    assert ask(lake, f"select a from '{raw}/*.parquet' where a > 10 order by a") == [(11,), (20,), (21,)]


def test_files_stand_beside_each_other_and_beside_tables(lake, raw):
    query = f"select l.a, r.c from '{raw}/1.parquet' l left join '{raw}/0.parquet' r on l.a = r.a + 10 order by 1"
    assert ask(lake, query) == [(10, 1.5), (11, 2.5)]


def test_what_is_known_of_a_file_is_kept_until_it_changes(lake, raw):
    path = raw / "0.parquet"
    for _ in range(2):
        assert ask(lake, f"select sum(a) from '{path}'") == [(1,)]
    assert lake.context.cache.memory.metrics.counts(CacheKind.SIDECAR).misses == 1
    pq.write_table(pa.table({"a": [7, 8]}), path)
    assert ask(lake, f"select sum(a) from '{path}'") == [(15,)]


@pytest.fixture
def beside(tmp_path):
    """Opens lakes that share nothing but the files that are asked about."""

    def open_lake(number):
        settings = CacheSettings(folder=tmp_path / f"cache {number}")
        return windrow.connect(tmp_path / f"lake {number}", cache=settings, sidecars_beside=True)

    return open_lake


def test_sidecars_are_put_beside_files_when_that_is_asked_for(beside, raw, monkeypatch):
    with beside(1) as lake:
        assert ask(lake, f"select sum(a) from '{raw}/*.parquet'") == [(63,)]
    assert sorted(path.name for path in raw.glob("*.pm")) == ["_0.pm", "_1.pm", "_2.pm"]
    monkeypatch.setattr(
        "windrow.planning.data_files.build_for", lambda file, *_: pytest.fail(f"{file.uri} is described already")
    )
    with beside(2) as lake:
        assert ask(lake, f"select sum(a) from '{raw}/*.parquet'") == [(63,)]


def test_without_that_nothing_is_put_beside_files(lake, raw):
    ask(lake, f"select sum(a) from '{raw}/*.parquet'")
    assert {path.suffix for path in raw.iterdir()} == {".parquet"}


@pytest.mark.parametrize("wrong", ["of the file that was there", "damaged", "empty", "of another file"])
def test_a_sidecar_beside_a_file_that_is_not_its_own_is_made_anew(beside, raw, wrong):
    path, sidecar = raw / "0.parquet", raw / "_0.pm"
    with beside(1) as lake:
        ask(lake, f"select sum(a) from '{raw}/*.parquet'")
    right = sidecar.read_bytes()
    match wrong:
        case "of the file that was there":
            size = path.stat().st_size
            pq.write_table(pa.table({"a": [50, 51], "b": ["x", None], "c": [1.5, 2.5]}), path)
            assert path.stat().st_size == size
        case "damaged":
            sidecar.write_bytes(right[:200] + b"!" + right[201:])
        case "empty":
            sidecar.write_bytes(b"")
        case "of another file":
            sidecar.write_bytes((raw / "_1.pm").read_bytes())
    [(expected,)] = [(sum(pq.read_table(path)["a"].to_pylist()),)]
    with beside(2) as lake:
        assert ask(lake, f"select sum(a) from '{path}' where a < 1000") == [(expected,)]
    assert (sidecar.read_bytes() == right) == (wrong != "of the file that was there")


def test_where_a_sidecar_cannot_be_put_files_are_read_as_well(beside, raw):
    (raw / "_0.pm").mkdir()
    with beside(1) as lake:
        assert ask(lake, f"select sum(a) from '{raw}/0.parquet'") == [(1,)]


def test_folders_that_are_columns_and_names_of_files_are_duckdbs_own(lake, raw):
    (raw / "day=3").mkdir()
    (raw / "0.parquet").rename(raw / "day=3" / "0.parquet")
    assert ask(lake, f"select day, sum(a) from '{raw}/day=*/*.parquet' group by day") == [(3, 1)]
    found = ask(lake, f"select distinct filename from '{raw}/1.parquet'")
    assert [Path(name).name for (name,) in found] == ["1.parquet"]


def test_a_local_file_that_is_not_there_or_none_is_refused(lake, tmp_path):
    with pytest.raises(NotFound, match="nothing.parquet"):
        lake.sql(f"select * from '{tmp_path}/nothing.parquet'")
    (tmp_path / "bad.parquet").write_bytes(b"something else that is no Parquet file")
    with pytest.raises(InvalidInput, match="bad.parquet"):
        lake.sql(f"select * from '{tmp_path}/bad.parquet'")


def test_a_remote_file_that_is_not_there_or_none_is_refused(lake):
    from windrow.testing import RangeServer

    with RangeServer() as server:
        server.objects["/bad.parquet"] = b"something else that is no Parquet file"
        with pytest.raises(NotFound, match="nothing.parquet"):
            lake.sql(f"select * from '{server.url}/nothing.parquet'")
        with pytest.raises(Damaged, match="bad.parquet"):
            lake.sql(f"select * from '{server.url}/bad.parquet'")


def test_a_lake_without_a_cache_keeps_nothing(tmp_path, raw):
    with windrow.connect(tmp_path / "lake", cache=None) as lake:
        assert (lake.context.cache.size(), lake.context.parsed) == (0, None)
        assert ask(lake, f"select sum(a) from '{raw}/*.parquet'") == [(63,)]


def relations(folder, budget=2**26):
    return ForeignRelations(ForeignFiles(ScanContext("lake", LocalStore(folder), threads=1)), budget=budget)


def test_the_same_files_are_the_same_relation_until_one_changes_or_joins(raw):
    known, pattern = relations(raw), f"{raw}/*.parquet"
    first = known(pattern)
    assert known(pattern) is first
    pq.write_table(pa.table({"a": [7, 8, 9]}), raw / "1.parquet")
    changed = known(pattern)
    assert changed is not first
    pq.write_table(pa.table({"a": [1]}), raw / "3.parquet")
    assert known(pattern) is not changed
    assert known(pattern).plan(Question()).rows == 2 + 3 + 2 + 1


def test_what_is_kept_of_files_weighs_no_more_than_the_budget(raw):
    known = relations(raw, budget=1)
    first = known(f"{raw}/0.parquet")
    assert known(f"{raw}/0.parquet") is first
    known(f"{raw}/1.parquet")
    assert known(f"{raw}/0.parquet") is not first


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["a", "b", "absent"])), min_size=1, max_size=4))
def test_plans_of_files_that_are_kept_are_those_of_files_that_are_not(tmp_path_factory, asked):
    folder = tmp_path_factory.mktemp("raw")
    for number in range(3):
        table = pa.table({"a": range(number * 100, number * 100 + 100), "b": [number] * 100})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=30)
    known, pattern = relations(folder), f"{folder}/*.parquet"
    for above, column in asked:
        condition = Comparison("a", Op.GREATER, above)
        ours = known(pattern).plan(Question((column,), condition))
        files = known.files.find(pattern)
        plain = plan_files(known.files.context, files, predicate=condition, columns=[column])
        assert (ours.rows, ours.bytes) == (plain.rows, plain.bytes)
        assert [(each.step, each.asked, each.kept) for each in ours.steps] == [
            (each.step, each.asked, each.kept) for each in plain.steps
        ]

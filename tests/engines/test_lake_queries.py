"""A lake and its tables share one engine, for as long as the lake is there."""

from __future__ import annotations

import gc
import weakref

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.engines.duckdb import views
from windrow.engines.lake_queries import queries_of
from windrow.errors import Closed, InvalidInput


def rows_from(first, count):
    times = pa.array(range(first, first + count), pa.timestamp("us", "UTC"))
    return pa.table({"host": ["h"] * count, "timestamp": times, "n": range(first, first + count)})


def connect(folder, **settings):
    lake = windrow.connect(folder / "lake", cache=None, **settings)
    if not lake.tables():
        for name in ("t", "other"):
            lake.create_table(name, sort="host|timestamp/V2", mirror=False).ingest(rows_from(0, 10))
    return lake


@pytest.fixture
def lake(tmp_path):
    with connect(tmp_path) as opened:
        yield opened


def test_a_table_asks_the_engine_of_its_lake(lake):
    assert queries_of(lake.context) is queries_of(lake.table("t").context)
    lake.sql("create table copied as select n from t where n < 3")
    assert lake.table("t").sql("select count(*) as n from copied").to_dict() == [{"n": 3}]


def test_a_table_takes_what_its_lake_takes(lake, tmp_path):
    pq.write_table(pa.table({"n": [1, 2, 30]}), tmp_path / "raw.parquet")
    given = pa.table({"n": [2]})
    query = f"select t.n from t join '{tmp_path}/*.parquet' using (n) join given using (n) where t.n < $most"
    for ask in (lake.sql, lake.table("t").sql, lake.table("t").at(version=1).sql):
        assert ask(query, {"most": 5}).to_dict() == [{"n": 2}]
        assert ask(query.replace("given", "more"), {"most": 5}, tables={"more": given}).to_dict() == [{"n": 2}]
        with pytest.raises(InvalidInput, match="tables"):
            ask("select 1", tables={"OTHER": given})


def test_a_table_at_a_version_leaves_others_at_their_newest(lake):
    for name in ("t", "other"):
        lake.table(name).ingest(rows_from(10, 5))
    query = "select (select count(*) from t) as t, (select count(n + 1) from other) as other"
    assert lake.table("t").at(version=1).sql(query).to_dict() == [{"t": 10, "other": 15}]
    assert lake.table("t").sql(query).to_dict() == lake.sql(query).to_dict() == [{"t": 15, "other": 15}]


def test_a_table_obeys_the_sandbox_of_its_lake(tmp_path):
    with connect(tmp_path, sandbox=True) as lake, pytest.raises(InvalidInput, match="sandbox"):
        lake.table("t").sql("create table copied as select n from t")


def test_a_closed_lake_closes_its_tables(lake):
    table = lake.table("t").at(version=1)
    lake.close()
    with pytest.raises(Closed, match="closed"):
        table.sql("select count(*) from t")


def used_and_dropped(folder):
    lake = connect(folder)
    table = lake.table("t")
    with lake.stream("select n from t") as batches:
        assert batches.read_all().num_rows == len(table.sql("select n from t")) == 10
    return table, weakref.ref(lake._started())


def test_a_lake_that_is_dropped_takes_its_engine_along_and_its_tables_go_on(tmp_path):
    gc.collect()
    gc.disable()
    try:
        table, engine = used_and_dropped(tmp_path)
        assert engine() is None
    finally:
        gc.enable()
    assert table.sql("select count(*) as n from t where n > 3").to_dict() == [{"n": 6}]


class TestNeedsOfSeveralTables:
    """What a query needs of each of its tables follows from its text, or is worked out each time."""

    @pytest.fixture
    def counted(self, monkeypatch):
        walks, walk = [], views.needed_rows
        monkeypatch.setattr(views, "needed_rows", lambda *given: walks.append(1) or walk(*given))
        return walks

    @pytest.fixture
    def paths(self, tmp_path):
        for name in ("one", "two"):
            pq.write_table(pa.table({"id": range(100)}), tmp_path / f"{name}.parquet", row_group_size=10)
        return {name: tmp_path / f"{name}.parquet" for name in ("one", "two")}

    def counts(self, lake, paths, query, params=None):
        return lake.sql(query.format(**paths), params).to_arrow()["n"][0].as_py()

    def test_the_same_query_is_walked_once(self, lake, paths, counted):
        query = "select count(*) as n from '{one}' a join '{two}' b using (id) where a.id >= 30 and b.id < 50"
        assert [self.counts(lake, paths, query) for _ in range(3)] == [20] * 3
        assert len(counted) == 1

    def test_one_with_other_values_is_walked_again(self, lake, paths, counted):
        query = "select count(*) as n from '{one}' a join '{two}' b using (id) where a.id >= %d and b.id < 50"
        assert [self.counts(lake, paths, query % least) for least in (30, 40, 30, 30)] == [20, 10, 20, 20]
        assert len(counted) == 3

    @pytest.mark.parametrize(("condition", "params"), [("a.id >= ?", [30]), ("a.id >= 10 + 20", None)])
    def test_values_that_the_text_does_not_tell_are_worked_out_each_time(self, lake, paths, counted, condition, params):
        query = f"select count(*) as n from '{{one}}' a join '{{two}}' b using (id) where {condition} and b.id < 50"
        assert [self.counts(lake, paths, query, params) for _ in range(2)] == [20, 20]
        assert len(counted) == 2

    def test_a_table_that_changed_is_looked_at_anew(self, lake, paths, counted):
        query = "select count(*) as n from '{one}' a join '{two}' b using (id) where a.id >= 30 and b.id < 50"
        assert self.counts(lake, paths, query) == 20
        pq.write_table(pa.table({"id": range(20, 40)}), paths["two"])
        assert self.counts(lake, paths, query) == 10
        assert len(counted) == 2

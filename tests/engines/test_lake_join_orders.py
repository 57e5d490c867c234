"""Queries of a lake join in the order that statistics of its tables and files tell."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.learning import learn

import windrow
from windrow.cache import CacheSettings
from windrow.engines.duckdb import join_orders
from windrow.statistics import join_choice

FAR_APART = 982_451_653 * 733
ROWS = 20_000
NUMBERS = np.arange(ROWS)
ROWS_OF = {
    "sales": {"item": NUMBERS % 5_000, "shop": NUMBERS % 50, "amount": NUMBERS % 7},
    "visits": {"v_shop": NUMBERS % 50, **{f"v_{name}": NUMBERS % 100 // 99 for name in ("door", "day", "way")}},
    "items": {"i_id": np.arange(5_000), "kind": np.arange(5_000) % 100},
    "shops": {"s_id": np.arange(50), "town": np.arange(50)},
}
KEYS = ("item", "shop", "v_shop", "i_id", "s_id")
NUMBERS_ONLY = (*KEYS, "amount", "town")
QUERY = """
    SELECT kind, sum(amount) AS total, count(*) AS n
    FROM {sales}, {visits}, {shops}, {items}
    WHERE shop = v_shop AND shop = s_id AND item = i_id AND v_door = '0' AND v_day = '0' AND v_way = '0' AND kind = '3'
    GROUP BY kind
"""
"""An engine takes the conditions on visits for selective, and sparse keys for unique: it joins visits first."""


def tables():
    """Rows whose keys are far apart."""
    return {
        name: pa.table({column: stored(column, each) for column, each in columns.items()})
        for name, columns in ROWS_OF.items()
    }


def stored(column, values):
    if column not in NUMBERS_ONLY:
        return values.astype(str)
    return values * FAR_APART if column in KEYS else values


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)


@pytest.fixture
def looks(monkeypatch):
    """What came of each look at a query."""
    found, look = [], join_orders.reordered
    monkeypatch.setattr(join_orders, "reordered", lambda *given: found.append(look(*given)) or found[-1])
    return found


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as opened:
        yield opened


@pytest.fixture
def files(tmp_path):
    """A query over files that nothing was learnt of, and their paths."""
    for name, table in tables().items():
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=5_000)
    paths = {name: tmp_path / f"{name}.parquet" for name in ROWS_OF}
    return QUERY.format(**{name: f"'{path}'" for name, path in paths.items()}), paths


def expected(answer):
    """Whether these are the rows of the answer."""
    return answer.to_arrow().to_pylist() == expected_rows()


def expected_rows():
    """The rows of the answer, worked out without an engine."""
    is_sold = NUMBERS % 5_000 % 100 == 3
    visits = np.bincount(NUMBERS[NUMBERS % 100 != 99] % 50, minlength=50)
    each = visits[NUMBERS[is_sold] % 50]
    return [{"kind": "3", "total": int((each * (NUMBERS[is_sold] % 7)).sum()), "n": int(each.sum())}]


def test_files_that_nothing_is_known_of_are_joined_as_the_engine_does(lake, files, looks):
    assert expected(lake.sql(files[0]))
    assert not [each for each in looks if each is not None]


def test_files_are_joined_in_a_better_order_once_they_are_learnt(lake, files, looks):
    query, paths = files
    lake.sql(query)
    learn(lake.context.learnt, *paths.values())
    assert expected(lake.sql(query))
    assert looks[-1] is not None
    assert min(looks[-1].factors) >= join_choice.MUCH_WORSE


def test_the_same_query_is_looked_at_once(lake, files, looks):
    query, paths = files
    learn(lake.context.learnt, *paths.values())
    for _ in range(3):
        assert expected(lake.sql(query))
    assert len(looks) == 1


def test_a_stream_joins_in_that_order_too(lake, files, looks):
    query, paths = files
    learn(lake.context.learnt, *paths.values())
    with lake.stream(query) as batches:
        rows = batches.read_all().to_pylist()
    assert rows == lake.sql(query).to_arrow().to_pylist()
    assert looks[0] is not None


def test_a_file_that_was_replaced_has_no_statistics(lake, files, looks):
    query, paths = files
    learn(lake.context.learnt, *paths.values())
    lake.sql(query)
    pq.write_table(tables()["sales"].slice(0, 15_000), paths["sales"])
    lake.sql(query)
    assert [each is None for each in looks] == [False, True]


def test_of_few_columns_learnt_nothing_is_concluded(lake, files, looks):
    query, paths = files
    learn(lake.context.learnt, *paths.values(), columns=["item", "amount", "kind"])
    assert expected(lake.sql(query))
    assert looks == [None]


def test_tables_are_joined_in_the_order_that_an_analysis_tells(lake, looks, monkeypatch):
    monkeypatch.setattr(join_choice, "MUCH_WORSE", 0.0)
    times = pa.timestamp("us", "UTC")
    for name, rows in tables().items():
        stamped = rows.append_column("timestamp", pa.array(range(rows.num_rows), times))
        key = rows.column_names[0]
        lake.create_table(name, sort=f"{key}|timestamp/V2", window="1h", mirror=False).ingest(stamped)
    query = QUERY.format(**{name: name for name in ROWS_OF})
    assert expected(lake.sql(query))
    for name in ROWS_OF:
        lake.table(name).upkeep.analyze()
    assert expected(lake.sql(query))
    assert [each is None for each in looks] == [True, False]
    assert expected(lake.table("sales").sql(query))


def test_a_declared_key_counts_more_than_what_the_rows_tell(lake):
    """By its values `shop` is no key of sales; who declares it one is believed, and each visit joins one sale."""
    for name, key in (("sales", ["shop"]), ("visits", []), ("shops", [])):
        rows = tables()[name]
        stamped = rows.append_column("timestamp", pa.array(range(rows.num_rows), pa.timestamp("us", "UTC")))
        sort = f"{rows.column_names[0]}|timestamp/V2"
        table = lake.create_table(name, sort=sort, window="1h", mirror=False, primary_key=key)
        table.ingest(stamped)
        table.upkeep.analyze()
    query = "SELECT count(*) FROM sales, visits, shops WHERE shop = v_shop AND shop = s_id"
    (declared,) = lake.explain(query).joins
    lake.table("sales").change.run(primary_key=[])
    (learnt,) = lake.explain(query).joins
    assert declared.joins[-1].estimated < learnt.joins[-1].estimated / 100


def test_two_relations_are_not_looked_at(lake, files, looks):
    _, paths = files
    lake.sql(f"select count(*) from '{paths['sales']}', '{paths['shops']}' where shop = s_id")
    assert not looks


def test_an_explanation_has_estimated_and_true_rows(lake, files):
    query, paths = files
    learn(lake.context.learnt, *paths.values())
    explained = lake.explain(query, analyze=True)
    (group,) = explained.joins
    assert group.is_reordered
    assert group.factor >= join_choice.MUCH_WORSE
    assert [each.actual for each in group.scans] == [20_000, 19_800, 50, 50]
    assert group.joins[-1].actual == expected_rows()[0]["n"]
    assert 1 <= group.most_q_error <= 10
    assert not any(each.is_vague for each in (*group.scans, *group.joins))
    assert group.joins[-1].expected_by_duckdb < group.joins[-1].actual
    assert explained.to_dict()["joins"][0]["scans"][3]["q_error"] == group.scans[3].q_error
    assert "joined in another order than DuckDB's own, which would cost" in str(explained)
    assert "join of sales, items" in str(explained)


def test_rows_are_counted_only_where_the_query_is_run(lake, files):
    (group,) = lake.explain(files[0]).joins
    assert {each.actual for each in (*group.scans, *group.joins)} == {None}
    assert group.most_q_error is None


def test_before_anything_is_learnt_footers_and_dictionaries_give_vague_estimates(lake, files):
    (group,) = lake.explain(files[0], analyze=True).joins
    assert not group.is_reordered
    assert group.factor is None
    sales, visits, shops, items = group.scans
    assert (sales.estimated, shops.estimated) == (20_000, 50)
    assert not sales.is_vague
    assert items.is_vague
    assert items.estimated == pytest.approx(50, rel=0.1), "by the entries of a dictionary"
    assert all(each.is_vague for each in group.joins)
    assert visits.q_error > 1
    assert "about" in str(lake.explain(files[0]))


def test_tables_have_vague_estimates_too(lake):
    times = pa.timestamp("us", "UTC")
    for name, rows in tables().items():
        stamped = rows.append_column("timestamp", pa.array(range(rows.num_rows), times))
        lake.create_table(name, sort=f"{rows.column_names[0]}|timestamp/V2", window="1h", mirror=False).ingest(stamped)
    (group,) = lake.explain(QUERY.format(**{name: name for name in ROWS_OF}), analyze=True).joins
    assert [each.actual for each in group.scans] == [20_000, 19_800, 50, 50]
    assert group.scans[3].estimated == pytest.approx(50, rel=0.1)
    assert all(each.is_vague for each in group.joins)


def test_two_relations_are_explained(lake, files):
    _, paths = files
    query = f"select count(*) from '{paths['sales']}', '{paths['shops']}' where shop = s_id"
    (group,) = lake.explain(query, analyze=True).joins
    assert [each.actual for each in group.joins] == [20_000]


def test_what_is_not_understood_is_explained_without_estimates(lake, files):
    _, paths = files
    assert lake.explain(f"select * from '{paths['sales']}' right join '{paths['shops']}' on shop = s_id").joins == ()


def test_without_a_cache_nothing_is_looked_at(tmp_path, files, looks):
    with windrow.connect(tmp_path / "lake", cache=None) as lake:
        assert expected(lake.sql(files[0]))
    assert not looks

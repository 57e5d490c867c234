"""Random queries with joins answer over files, in whatever order statistics tell, as they do over native tables."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.learning import learn

import windrow
from windrow.cache import CacheSettings
from windrow.engines.duckdb import join_orders
from windrow.statistics import join_choice

SPREAD = 720_000_000_000
NUMBERS = st.one_of(st.none(), st.integers(0, 6))
TEXTS = st.one_of(st.none(), st.sampled_from(["a", "ab", "b", "ca", ""]))
CONDITIONS = [
    "{t}.n{i} > 2",
    "{t}.n{i} <> 3",
    "{t}.s{i} LIKE 'a%'",
    "{t}.s{i} IS NULL",
    "{t}.n{i} IN (1, 2, 5)",
    "coalesce({t}.n{i}, 1) = 1",
    "length({t}.s{i}) < 2",
]
RESULTS = ["count(*) AS n", "sum({t}.n{i}) AS total, max({t}.s{i}) AS most"]


@st.composite
def tables(draw):
    """Tables of two keys, a number and a text, with nulls in all of them; keys are far apart."""
    found = []
    for i in range(draw(st.integers(3, 5))):
        rows = draw(st.integers(0, 30))
        columns = {
            name: [
                None if each is None else each * SPREAD
                for each in draw(st.lists(NUMBERS, min_size=rows, max_size=rows))
            ]
            for name in (f"k{i}", f"l{i}")
        }
        columns[f"n{i}"] = draw(st.lists(NUMBERS, min_size=rows, max_size=rows))
        columns[f"s{i}"] = draw(st.lists(TEXTS, min_size=rows, max_size=rows))
        types = [pa.int64(), pa.int64(), pa.int64(), pa.string()]
        found.append(
            pa.table(
                {name: pa.array(values, kind) for (name, values), kind in zip(columns.items(), types, strict=True)}
            )
        )
    return found


@st.composite
def queries(draw, count):
    """A query that joins so many tables, each with one of those before it; `{t0}` and so on are their places."""
    joins = []
    for i in range(1, count):
        other = draw(st.integers(0, i - 1))
        mine, theirs = draw(st.sampled_from("kl")), draw(st.sampled_from("kl"))
        joins.append(f"t{i}.{mine}{i} = t{other}.{theirs}{other}")
    places = st.integers(0, count - 1)
    filters = [draw(st.sampled_from(CONDITIONS)).format(t=f"t{i}", i=i) for i in draw(st.lists(places, max_size=3))]
    if draw(st.booleans()):
        one, other = draw(places), draw(places)
        filters.append(f"(t{one}.n{one} = 1 OR t{other}.n{other} > 4)")
    sources = ", ".join(f"{{t{i}}} AS t{i}" for i in range(count))
    i = draw(places)
    result = draw(st.sampled_from([*RESULTS, None]))
    where = " AND ".join([*joins, *filters])
    if result is None:
        group = draw(places)
        return (
            f"SELECT t{group}.s{group}, count(*) AS n, sum(t{i}.n{i}) AS total FROM {sources} WHERE {where} GROUP BY 1"
        )
    return f"SELECT {result.format(t=f't{i}', i=i)} FROM {sources} WHERE {where}"


@pytest.fixture
def any_order(monkeypatch):
    for name in ("LEAST_ROWS", "LEAST_COST", "MUCH_WORSE"):
        monkeypatch.setattr(join_choice, name, 0)
    monkeypatch.setattr(join_choice, "is_dense", lambda _: False)


def rows_of(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("writes_statistics", [True, False])
def test_random_joins_answer_as_over_native_tables(tmp_path, any_order, monkeypatch, writes_statistics):
    found, look = [], join_orders.reordered
    monkeypatch.setattr(join_orders, "reordered", lambda *given: found.append(look(*given)) or found[-1])
    lake = windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache"), statistics=0)

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        chosen = data.draw(tables())
        query = data.draw(queries(len(chosen)))
        paths = [tmp_path / f"{lake.context.new_id()}.parquet" for _ in chosen]
        native = duckdb.connect()
        for i, (table, path) in enumerate(zip(chosen, paths, strict=True)):
            pq.write_table(table, path, row_group_size=7, write_statistics=writes_statistics)
            native.register(f"rows{i}", table)
            native.execute(f"CREATE TABLE native{i} AS FROM rows{i}")
        learn(lake.context.learnt, *paths)
        over = query.format(**{f"t{i}": f"'{path}'" for i, path in enumerate(paths)})
        expected = native.sql(query.format(**{f"t{i}": f"native{i}" for i in range(len(paths))})).to_arrow_table()
        native.close()
        answer = lake.sql(over).to_arrow()
        assert answer.column_names == expected.column_names
        assert rows_of(answer) == rows_of(expected)

    with lake:
        check()
    assert any(each is not None for each in found), "an order was changed"

"""DuckDB's own order of joins is read, and queries are written anew where it is much worse."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import parse_one
from tests.engines.tpch import QUERIES, TABLES

from windrow.engines.duckdb import join_orders
from windrow.engines.duckdb.engine import Relation
from windrow.engines.duckdb.join_orders import Known, in_better_order, reordered
from windrow.engines.duckdb.sample_conditions import evaluate_with
from windrow.questions.explicit_order import Target, rewrite
from windrow.questions.join_blocks import join_blocks
from windrow.questions.join_skeletons import counting_query
from windrow.questions.naming import Naming
from windrow.statistics import join_choice
from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_graph import Filter
from windrow.statistics.join_order import best_plan
from windrow.statistics.q_errors import join_errors
from windrow.statistics.table_statistics import TableStatistics, exact_statistics

TEXTS = {name: query.format(**{table: table for table in TABLES}) for name, query in QUERIES.items()}
MOST_Q_ERROR = 100
SPARSE = 982_451_653 * 733


def sparse(table):
    """The same rows with keys far apart, whose range says nothing of how many there are."""
    for at, name in enumerate(table.column_names):
        if name.endswith("key"):
            table = table.set_column(at, name, pa.array(table.column(name).to_numpy().astype(np.int64) * SPARSE))
    return table


class Files:
    """TPC-H at a small scale: files of one kind, DuckDB over them, and their statistics."""

    def __init__(self, tables, folder, change, **options):
        self.connection = duckdb.connect(config={"threads": 2})
        rows = {name: change(table) for name, table in tables.items()}
        for name, table in rows.items():
            pq.write_table(table, folder / f"{name}.parquet", **options)
            self.connection.execute(f"create view {name} as from '{folder}/{name}.parquet'")
        draw = random.Random(5)
        statistics = {
            name: exact_statistics(table, draw.sample(range(table.num_rows), min(1024, table.num_rows)))
            for name, table in rows.items()
        }
        self.known = Known({name: table.schema for name, table in rows.items()}, statistics)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch")
    program = Path(sys.executable).with_name("tpchgen-cli")
    subprocess.run([program, "parquet", "-s", "0.01", "-o", folder, "-q"], check=True)
    native = duckdb.connect()
    return {name: native.sql(f"from '{folder}/{name}.parquet'").to_arrow_table() for name in TABLES}


@pytest.fixture(scope="module", params=["normal", "no statistics", "sparse keys"])
def files(request, tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    if request.param == "no statistics":
        return Files(tables, folder, lambda table: table, write_statistics=False)
    return Files(tables, folder, sparse if request.param == "sparse keys" else lambda table: table)


def answer(connection, text):
    result = connection.execute(text)
    return [each[0] for each in result.description], result.fetchall()


@pytest.mark.parametrize("query", TEXTS)
def test_the_best_order_of_a_query_answers_as_the_query_does(files, query):
    tree = parse_one(TEXTS[query], read="duckdb")
    expected = answer(files.connection, TEXTS[query])
    for block in join_blocks(tree, files.known.schemas):
        cardinalities = Cardinalities(block.graph, files.known.tables, evaluate_with(files.connection.cursor()))
        plan = best_plan(block.graph, lambda relations, found=cardinalities: found.of(relations).rows)
        rewrite(block, plan.tree, Target(needs_barriers=True), expected[0] if block.select is tree else None)
    assert answer(files.connection, tree.sql("duckdb")) == expected


@pytest.mark.parametrize("query", TEXTS)
def test_estimates_of_joins_are_near(files, query):
    for block in join_blocks(parse_one(TEXTS[query], read="duckdb"), files.known.schemas):
        cardinalities = Cardinalities(block.graph, files.known.tables, evaluate_with(files.connection.cursor()))
        plan = best_plan(block.graph, lambda relations, found=cardinalities: found.of(relations).rows)

        def count(relations, block=block):
            return files.connection.execute(counting_query(block, relations).sql("duckdb")).fetchall()[0][0]

        errors = join_errors(block.graph, plan.tree, cardinalities, count)
        assert max(each.q_error for each in errors) <= MOST_Q_ERROR, errors


def test_a_bad_order_is_replaced(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)
    files = Files(tables, tmp_path, sparse)
    factors = {}
    for query, text in TEXTS.items():
        expected = answer(files.connection, text)
        cursor = files.connection.cursor()
        found = reordered(parse_one(text, read="duckdb"), text, files.known, cursor)
        if found is not None:
            factors[query] = max(found.factors)
            assert answer(files.connection, found.text) == expected
    assert {"q05", "q08"} <= factors.keys()
    assert min(factors.values()) >= join_choice.MUCH_WORSE


def test_duckdb_orders_dense_keys_well_by_their_bounds(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)
    monkeypatch.setattr(join_choice, "MUCH_WORSE", 0.0)
    files = Files(tables, tmp_path, lambda table: table)
    tree = parse_one(TEXTS["q05"], read="duckdb")
    blind = replace(files.known, sees_bounds=lambda _: False)
    assert reordered(tree, TEXTS["q05"], files.known, files.connection.cursor()) is None
    assert reordered(tree, TEXTS["q05"], blind, files.connection.cursor()) is not None


def test_small_joins_run_as_they_are(files):
    cursor = files.connection.cursor()
    assert reordered(parse_one(TEXTS["q12"], read="duckdb"), TEXTS["q12"], files.known, cursor) is None
    assert reordered(parse_one(TEXTS["q02"], read="duckdb"), TEXTS["q02"], files.known, cursor) is None


def test_without_statistics_a_query_runs_as_it_is(files, monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)
    rows = {name: TableStatistics(known.row_count) for name, known in files.known.tables.items()}
    schemas = files.known.schemas
    for known in (Known(schemas, rows, sees_bounds=lambda _: False), Known(schemas, {}, sees_bounds=lambda _: False)):
        assert reordered(parse_one(TEXTS["q05"], read="duckdb"), TEXTS["q05"], known, files.connection.cursor()) is None


def test_wrong_statistics_change_no_answer(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)
    monkeypatch.setattr(join_choice, "MUCH_WORSE", 0.0)
    files = Files(tables, tmp_path, lambda table: table)
    names = list(files.known.tables)
    other = dict(zip(names, [files.known.tables[name] for name in names[::-1]], strict=True))
    wrong = {
        name: TableStatistics(other[name].row_count, known.columns, known.sample.slice(0, 3))
        for name, known in files.known.tables.items()
    }
    for text in TEXTS.values():
        expected = answer(files.connection, text)
        found = reordered(
            parse_one(text, read="duckdb"),
            text,
            Known(files.known.schemas, wrong, sees_bounds=lambda _: False),
            files.connection.cursor(),
        )
        assert found is None or answer(files.connection, found.text) == expected


def test_a_condition_that_fails_on_the_sample_says_nothing(monkeypatch):
    rows = pa.table({"t": ["1", "x"]})
    fails, works = Filter("cast(t as int) > 0", ("t",)), Filter("t = 'x'", ("t",))
    none, mask = evaluate_with(duckdb.connect())(rows, [fails, works])
    assert none is None
    assert mask.tolist() == [False, True]
    assert evaluate_with(duckdb.connect())(rows, []) == []


class Learnt:
    """A relation's statistics, as they were given."""

    def __init__(self, table):
        self.table = table
        self.rows = table.row_count
        self.loads = 0

    def of(self, columns):
        self.loads += 1
        return self.table

    def sketch(self, column):
        return None

    def shows_bounds(self, column):
        return True


def relations_of(files, tables=None):
    """Relations whose rows nobody reads."""
    return {
        name: Relation(schema, lambda _: None, statistics=Learnt((tables or files.known.tables)[name]))
        for name, schema in files.known.schemas.items()
    }


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)


def test_a_shape_that_runs_as_it_is_is_looked_at_again_after_a_while(files, monkeypatch, any_size):
    looks = []
    monkeypatch.setattr(join_orders, "reordered", lambda *given: looks.append(given[1]))
    naming = Naming.of(TEXTS["q05"])
    relations = relations_of(files)

    def run(query, relations=relations):
        return in_better_order(naming, query, relations, files.connection)

    queries = [f"{TEXTS['q05']} limit {number}" for number in range(34)]
    assert [run(query) for query in queries] == queries
    assert looks == [queries[0], queries[32]]
    run(queries[32])
    assert len(looks) == 2
    run(queries[32], relations_of(files, dict.fromkeys(files.known.tables, TableStatistics(1))))
    assert len(looks) == 3


def test_a_better_order_is_used_again_for_the_same_query_alone(files, monkeypatch, any_size):
    looks = []
    better = join_orders.Reordered("select 1", (2.0,))
    monkeypatch.setattr(join_orders, "reordered", lambda *given: looks.append(given[1]) or better)
    naming, relations = Naming.of(TEXTS["q05"]), relations_of(files)
    for query in ("one", "one", "two"):
        assert in_better_order(naming, query, relations, files.connection) == "select 1"
    assert looks == ["one", "two"]


def test_nothing_is_loaded_for_few_rows(files, monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 10**6)
    relations, query = relations_of(files, dict.fromkeys(files.known.tables, TableStatistics(1_000))), TEXTS["q05"]
    assert in_better_order(Naming.of(query), query, relations, files.connection) is query
    assert not any(each.statistics.loads for each in relations.values())


def test_relations_without_statistics_keep_their_order(files, any_size):
    relations = {name: Relation(schema, lambda _: None) for name, schema in files.known.schemas.items()}
    query = TEXTS["q05"]
    assert in_better_order(Naming.of(query), query, relations, files.connection) is query

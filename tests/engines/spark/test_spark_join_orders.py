"""Queries of Spark are written anew where the order as written is much worse."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.engines.spark.join_orders import reordered_for_spark
from windrow.statistics import join_choice
from windrow.statistics.selectivity import evaluate_predicates
from windrow.statistics.table_statistics import TableStatistics, exact_statistics

ROWS = 20_000
TABLES = {
    "sales": pa.table({"item": np.arange(ROWS) % 500, "shop": np.arange(ROWS) % 50, "amount": np.arange(ROWS) % 7}),
    "items": pa.table({"i_id": np.arange(500), "kind": np.arange(500) % 100}),
    "shops": pa.table({"s_id": np.arange(50), "town": np.arange(50) % 50}),
    "visits": pa.table({"v_shop": np.arange(ROWS) % 50, "v_count": np.arange(ROWS) % 3}),
}
KNOWN = {
    name: exact_statistics(table, range(0, table.num_rows, max(1, table.num_rows // 1000)))
    for name, table in TABLES.items()
}
SCHEMAS = {name: table.schema for name, table in TABLES.items()}
QUERY = """
    SELECT kind, sum(amount) AS total, count(*) AS n
    FROM sales, visits, shops, items
    WHERE shop = v_shop AND shop = s_id AND item = i_id AND town = 3 AND kind = 3
    GROUP BY kind
"""


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)


def test_the_order_is_written_down_and_small_sides_are_broadcast():
    text = reordered_for_spark(QUERY, SCHEMAS, KNOWN, evaluate_predicates)
    assert text.count("BROADCAST") >= 2
    assert "RAND" not in text
    assert text.index("visits") < text.index("sales") or text.count("(SELECT") >= 2


@pytest.mark.parametrize(
    ("query", "known"),
    [
        ("SELECT sum(amount) AS a FROM sales, shops WHERE shop = s_id", KNOWN),
        (QUERY, {}),
        (QUERY, {name: TableStatistics(known.row_count) for name, known in KNOWN.items()}),
        ("SELECT FROM WHERE", KNOWN),
    ],
    ids=["two relations", "nothing known", "vague", "no query"],
)
def test_others_run_as_they_are(query, known):
    assert reordered_for_spark(query, SCHEMAS, known, evaluate_predicates) is None


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_answers_as_before(spark, tmp_path):
    for name, table in TABLES.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        spark.read.parquet(str(tmp_path / f"{name}.parquet")).createOrReplaceTempView(name)
    text = reordered_for_spark(QUERY, SCHEMAS, KNOWN, evaluate_predicates)
    assert spark.sql(text).collect() == spark.sql(QUERY).collect()
    assert "BroadcastHashJoin" in spark.sql(text)._jdf.queryExecution().toString()
    for name in TABLES:
        spark.catalog.dropTempView(name)

"""Spark's tasks learn what threads of one process learn, and only what is not known."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.upkeep.test_cardinality import points

import windrow

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def statistics(table) -> list:
    return table.inspect.statistics().to_dict()


def test_tasks_and_threads_learn_the_same(spark, tmp_path):
    tables = []
    for name in ("threads", "tasks"):
        lake = windrow.connect(tmp_path / name)
        table = lake.create_table("metrics", sort="metric_name|host|timeseries_id|timestamp/V2", window="15m")
        for window in range(3):
            rows = points(window, 60, hosts=10, first_host=5 * window)
            table.ingest(rows if window < 2 else rows.append_column("pod", pa.array(["pod"] * 120)))
        tables.append(lake.table("metrics"))
    by_threads, by_tasks = tables
    expected = by_threads.upkeep.analyze()
    by_tasks.upkeep.analyze(["host"])
    heard = []
    done = by_tasks.upkeep.analyze(spark=spark, on_splits=lambda *split: heard.append(split))
    assert done.columns == expected.columns - 3
    assert len(heard) == 3
    assert statistics(by_tasks) == statistics(by_threads)
    assert by_tasks.inspect.cardinality() == by_threads.inspect.cardinality()
    assert by_tasks.upkeep.analyze(spark=spark).columns == 0

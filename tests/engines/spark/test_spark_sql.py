"""Queries of Spark SQL join in the order that a lake's statistics tell, by their text alone."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from tests.engines.learning import learn
from tests.engines.test_lake_join_orders import QUERY, ROWS_OF, expected_rows, tables

import windrow
from windrow.cache import CacheSettings
from windrow.errors import NotFound
from windrow.statistics import join_choice

TEXT = QUERY.format(**{name: name for name in ROWS_OF})


@pytest.fixture(autouse=True)
def any_size(monkeypatch):
    monkeypatch.setattr(join_choice, "LEAST_ROWS", 0)
    monkeypatch.setattr(join_choice, "LEAST_COST", 0.0)


@pytest.fixture
def views(tmp_path):
    """The files that views of a session read."""
    for name, table in tables().items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return {name: str(tmp_path / f"{name}.parquet") for name in ROWS_OF}


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache"), statistics=0) as opened:
        yield opened


def test_without_statistics_a_query_is_sent_as_it_is(lake, views):
    assert lake.query_for_spark(TEXT, views) == TEXT


def test_what_was_learnt_of_files_decides(lake, views):
    learn(lake.context.learnt, *views.values())
    text = lake.query_for_spark(TEXT, views)
    assert text != TEXT
    assert "BROADCAST" in text


def test_views_that_are_not_named_are_left_alone(lake, views):
    learn(lake.context.learnt, *views.values())
    del views["shops"]
    assert lake.query_for_spark(TEXT, views) == TEXT


def test_text_that_is_no_query_is_left_to_spark(lake, views):
    assert lake.query_for_spark("select from where (", views) == "select from where ("


def test_a_view_of_nothing_is_refused_by_name(lake):
    with pytest.raises(NotFound, match="'nowhere' is no table of the lake and no path"):
        lake.query_for_spark(TEXT, {"sales": "nowhere"})


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_answers_as_before(spark, lake, views):
    learn(lake.context.learnt, *views.values())
    for name, path in views.items():
        spark.read.parquet(path).createOrReplaceTempView(name)
    try:
        rows = [row.asDict() for row in lake.spark_sql(spark, TEXT, views).collect()]
    finally:
        for name in views:
            spark.catalog.dropTempView(name)
    assert rows == expected_rows()

"""Listings go by an index in its order, so that their cost does not grow with the table."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from windrow.metastore import SplitQuery
from windrow.metastore.compaction import _candidates, _grouped
from windrow.metastore.listing import _lanes, _page
from windrow.model.window import Window
from windrow.testing.metastore_cases.samples import TABLE, a_split, a_table, add, scope

QUERIES = {
    "all": SplitQuery(),
    "window": SplitQuery(window=Window(900, 900)),
    "time": SplitQuery(time_range=(0, 10**9)),
    "scope": SplitQuery(scope=scope()),
}


def filled(metastore):
    a_table(metastore)
    add(metastore, "c1", *(a_split(f"s{number:04d}", "c1", 900 * (number // 100)) for number in range(2000)))


def check(connection, query, index):
    """The database goes by the index, and sorts nothing."""
    explain = "explain query plan" if connection.dialect.name == "sqlite" else "explain"
    sql = str(query.compile(connection.engine, compile_kwargs={"literal_binds": True})).replace(":", r"\:")
    plan = "\n".join(str(row[-1]) for row in connection.execute(text(f"{explain} {sql}")))
    assert index in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("name", QUERIES)
def test_a_page_is_read_from_the_index_in_its_order(metastore, name):
    filled(metastore)
    with metastore.database.reading() as connection:
        key = metastore.table_key(connection, TABLE)
        for lane in _lanes(QUERIES[name]):
            page, values = _page(key, 1, QUERIES[name], replace(lane, after="s0005"), 10)
            check(connection, page.params(values), "windrow_splits_by_window")


def test_candidates_are_read_from_the_index_of_what_is_visible(metastore):
    filled(metastore)
    with metastore.database.reading() as connection:
        key = metastore.table_key(connection, TABLE)
        check(connection, _candidates(key, Window(900, 900), (1, "s0005"), 10), "windrow_splits_by_group")


def test_groups_are_summed_in_the_order_of_that_index(metastore):
    filled(metastore)
    with metastore.database.reading() as connection:
        if connection.dialect.name == "sqlite":  # PostgreSQL may hash a table that is small
            grouped = _grouped(metastore.table_key(connection, TABLE))
            # Sums of windows are put in order of time; splits, of which there are many more, are not sorted.
            check(connection, grouped.order_by(None), "windrow_splits_by_group")

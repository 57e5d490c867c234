"""Listings go by the index on windows, so that their cost does not grow with the table."""

import pytest
from sqlalchemy import text

from windrow.metastore import SplitQuery
from windrow.metastore.listing import _lanes, _page
from windrow.model.window import Window
from windrow.testing.metastore_cases.samples import TABLE, a_split, a_table, add, scope

QUERIES = {
    "all": SplitQuery(),
    "window": SplitQuery(window=Window(900, 900)),
    "time": SplitQuery(time_range=(0, 10**9)),
    "scope": SplitQuery(scope=scope()),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_page_is_read_from_the_index_in_its_order(metastore, name):
    a_table(metastore)
    add(metastore, "c1", *(a_split(f"s{number:04d}", "c1", 900 * (number // 100)) for number in range(2000)))
    explain = "explain query plan" if metastore.database.is_sqlite else "explain"
    with metastore.database.reading() as connection:
        key = metastore.table_key(connection, TABLE)
        for lane in _lanes(QUERIES[name]):
            page = _page(key, 1, QUERIES[name], lane, (lane.first, "s0005"), 10)
            sql = str(page.compile(connection.engine, compile_kwargs={"literal_binds": True})).replace(":", r"\:")
            plan = "\n".join(str(row[-1]) for row in connection.execute(text(f"{explain} {sql}")))
            assert "windrow_splits_by_window" in plan
            assert "Sort" not in plan
            assert "TEMP B-TREE" not in plan

"""One SELECT is run as a whole where DuckDB can, and answers as it does by a relation."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from windrow.engines.duckdb.sinks import CollectSink, Statement
from windrow.engines.duckdb.submit import submitted
from windrow.tricks import Trick, without


def run(work):
    return work()


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("select range as n, range * 1.5 as x from range(3000)", None),
        ("select ? + n as n from (values (1), (2)) as t(n)", [41]),
        ("select 1 as a, 2 as A, 'x' as b limit 0", None),
    ],
)
def test_rows_are_the_same_with_the_trick_and_without(query, parameters):
    with duckdb.connect() as connection:
        statement = Statement(connection, query, parameters, is_select=True)
        assert submitted(connection, query, parameters) is not None
        found = CollectSink()(statement, run)
        with without(Trick.DUCKDB_SUBMIT):
            assert submitted(connection, query, parameters) is None
            assert CollectSink()(statement, run).equals(found)
        assert isinstance(found, pa.Table)


def test_a_wrong_query_is_the_same_error():
    with duckdb.connect() as connection:
        statement = Statement(connection, "select nothing", None, is_select=True)
        with pytest.raises(duckdb.BinderException, match="nothing"):
            statement.table(run)
        with without(Trick.DUCKDB_SUBMIT), pytest.raises(duckdb.BinderException, match="nothing"):
            statement.table(run)


def test_a_duckdb_that_lacks_it_is_asked_for_a_relation():
    assert submitted(object(), "select 1", None) is None

"""Parameters, and data of the caller beside tables."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from windrow.errors import InvalidInput, NotFound

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = pa.table({"host": ["h0", "h1"], "owner": ["Ann", "Bob"]})


@pytest.fixture
def planned(lake, monkeypatch):
    """The rows that the last query looked at, as planned."""
    from windrow.engines.duckdb.views import Views

    seen, bind = [], Views.bind

    def watched(self, stack, bound):
        seen.append(bound.source.plan.rows)
        return bind(self, stack, bound)

    monkeypatch.setattr(Views, "bind", watched)
    return seen


LATE = START + timedelta(minutes=90)
BY_PARAMETER = [
    ("timestamp >= ?", [LATE]),
    ("timestamp >= $1", [LATE]),
    ("timestamp >= $since", {"since": LATE}),
    ("timestamp >= ?", [LATE.replace(tzinfo=None)]),
    ("timestamp >= ?", ["2026-01-01 01:30:00"]),
    ("timestamp >= ?::timestamp", ["2026-01-01 01:30:00"]),
    ("timestamp >= $to - interval 1 hour", {"to": LATE + timedelta(hours=1)}),
    ("timestamp between ? and ? and host in (?, ?)", [LATE, LATE + timedelta(days=1), "h0", "h1"]),
    ("host in (?, ?) and timestamp >= ?", ["h0", "h1", LATE]),
]


@pytest.mark.parametrize(("condition", "params"), BY_PARAMETER)
def test_the_values_of_parameters_leave_splits_out(lake, planned, condition, params):
    query = f"select min(n) as low, count(*) as n from metrics where {condition}"
    assert lake.sql(query, params).to_dict() == [{"low": 60, "n": 20}]
    assert planned == [20]


@pytest.mark.parametrize(
    ("condition", "params", "rows"),
    [
        ("n = ?", [7], 1),
        ("n = ?", [7.0], 1),
        ("n = ?", ["7"], 1),
        ("n < ?", [Decimal("1.5")], 2),
        ("price = ?", [Decimal("3.00")], 8),
        ("host = ?", [None], 0),
        ("host = ? or host is null", [None], 0),
        ("timestamp::date = ?", [date(2026, 1, 1)], 80),
        ("timestamp < ?", [date(2026, 1, 2)], 80),
        ("host like ?", ["h%"], 80),
        ("n in (select unnest(?))", [[1, 2, 3]], 3),
        ("list_contains($some, n)", {"some": [1, 2]}, 2),
        ("host = 'it''s ?' or n = ?", [5], 1),
    ],
)
def test_parameters_mean_what_they_mean_to_duckdb(lake, condition, params, rows):
    assert lake.sql(f"select count(*) as n from metrics where {condition}", params).to_dict() == [{"n": rows}]


def test_the_same_query_with_other_values_is_another_question(lake, planned):
    query = "select count(*) as n from metrics where timestamp >= ? and n <> 3"
    found = [lake.sql(query, [START + timedelta(minutes=15 * n)]).to_dict()[0]["n"] for n in (7, 0, 4)]
    assert found == [10, 79, 40]
    assert planned == [10, 80, 40]


@pytest.mark.parametrize(("params", "words"), [([1, 2], "excess"), ([], "not provided"), ({"x": 1}, "x|1")])
def test_parameters_that_do_not_fit_the_query_are_refused(lake, params, words):
    with pytest.raises(InvalidInput, match=words):
        lake.sql("select count(*) from metrics where n = ?", params)


class OnlyAStream:
    def __arrow_c_stream__(self, requested_schema=None):
        return HOSTS.__arrow_c_stream__(requested_schema)


FRAMES = {
    "pandas": HOSTS.to_pandas(),
    "Polars": pl.from_arrow(HOSTS),
    "a lazy frame": pl.from_arrow(HOSTS).lazy(),
    "Arrow": HOSTS,
    "a batch": HOSTS.to_batches()[0],
    "a stream": OnlyAStream(),
}
JOIN = "select owner, count(*) as n from metrics join hosts using (host) group by all order by all"
OWNERS = [{"owner": "Ann", "n": 40}, {"owner": "Bob", "n": 40}]


@pytest.mark.parametrize("kind", FRAMES)
def test_data_of_the_caller_is_joined_with_tables(lake, kind):
    assert lake.sql(JOIN, tables={"hosts": FRAMES[kind]}).to_dict() == OWNERS
    with pytest.raises(NotFound, match="hosts"):
        lake.sql(JOIN)


def test_an_answer_can_be_asked_again(lake):
    hosts = lake.sql("select distinct host, upper(host) as owner from metrics")
    assert lake.sql(JOIN, tables={"hosts": hosts}).to_dict()[0] == {"owner": "H0", "n": 40}


@pytest.mark.parametrize("kind", ["pandas", "Polars", "Arrow"])
def test_variables_of_the_caller_are_found(lake, kind):
    hosts = FRAMES[kind]
    assert lake.sql(JOIN).to_dict() == OWNERS
    with lake.stream(JOIN) as batches:
        assert batches.read_all().to_pylist() == OWNERS
    assert hosts is FRAMES[kind]


def test_tables_come_before_variables(lake):
    metrics = pd.DataFrame({"n": [1]})
    assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 80}]
    assert len(metrics) == 1


def test_what_is_no_data_is_refused(lake):
    with pytest.raises(InvalidInput, match="'hosts' is of type int"):
        lake.sql(JOIN, tables={"hosts": 5})
    with pytest.raises(InvalidInput, match="'METRICS' is a table of the lake too"):
        lake.sql(JOIN, tables={"METRICS": HOSTS})


def test_variables_of_this_library_are_no_tables(lake):
    for name in ("asked", "naming", "relations", "views"):
        with pytest.raises(NotFound, match=name):
            lake.sql(f"select * from {name}")


def test_views_follow_the_columns_that_are_asked_for(lake):
    assert lake.sql("select max(n) as n from metrics").to_dict() == [{"n": 79}]
    assert lake.sql("select max(host) as h, min(n) as n from metrics").to_dict() == [{"h": "h1", "n": 0}]
    assert lake.sql("select max(n) as n from metrics where n < 0").to_dict() == [{"n": None}]
    assert lake.sql("select max(n) as n from metrics").to_dict() == [{"n": 79}]

"""A column gets another type from the command line."""

from __future__ import annotations

from io import BytesIO

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

TEXTS = b"metric_name,host,timestamp,value,load\ncpu,a,2024-01-01T00:00:00Z,1.5,7\ncpu,b,2024-01-01T00:20:00Z,2.5,x7\n"
NUMBERS = b"metric_name,host,timestamp,value,load\ncpu,a,2024-01-02T00:00:00Z,1.5,0.5\n"
"""A column of the table's text would read these as text, so they come as Parquet."""


@pytest.fixture
def metrics(call, here):
    call("create", "metrics", "--sort", "metric_name|host|timestamp/V2")
    (here / "texts.csv").write_bytes(TEXTS)
    pq.write_table(pyarrow.csv.read_csv(BytesIO(NUMBERS)), here / "numbers.parquet")
    call("ingest", "metrics", "texts.csv")
    return "metrics"


def test_a_conflict_names_the_way_out_and_the_way_out_works(call, metrics):
    refused = call("ingest", metrics, "numbers.parquet")
    assert (refused.code != 0, "windrow retype" in refused.err) == (True, True)
    found = call("retype", metrics, "load", "double", "--old-values", "cast_or_null", "--json").json
    assert (found["version"], found["schema_epoch"], found["nulled"], found["rows"]) == (2, 1, 1, 2)
    assert call("ingest", metrics, "numbers.parquet").code == 0
    assert call("sql", "select sum(load) as n from metrics", "--json").json == [{"n": 7.5}]
    assert call("describe", metrics, "--json").json["schema_epoch"] == 1


def test_a_dry_run_changes_nothing(call, metrics):
    found = call("retype", metrics, "load", "double", "--old-values", "null", "--dry-run", "--json").json
    assert (found["dry_run"], found["nulled"], found["type_before"], found["type_after"]) == (
        True,
        2,
        "string",
        "double",
    )
    assert call("retype", metrics, "load", "double", "--old-values", "null", "--dry-run").out.startswith(
        "would change\n"
    )
    assert call("describe", metrics, "--json").json["version"] == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["load", "double"], "say by old_values how values that exist are read"),
        (["load", "double", "--old-values", "cast"], "such as 'x7'"),
        (["load", "doubble", "--old-values", "null"], "is no type"),
        (["value", "string", "--old-values", "null"], "make it a number"),
    ],
)
def test_what_is_refused_says_why(call, metrics, arguments, problem):
    refused = call("retype", metrics, *arguments)
    assert (refused.code != 0, problem in refused.err) == (True, True), refused.err

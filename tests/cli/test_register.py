"""Existing files join a table from the command line."""

from __future__ import annotations

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

CSV = b"metric_name,host,timestamp,value\ncpu,a,2024-01-01T00:00:00Z,1.5\ncpu,b,2024-01-01T00:20:00Z,2.5\n"


@pytest.fixture
def raw(call, here):
    call("create", "metrics", "--sort", "metric_name|host|timestamp/V2")
    (here / "raw").mkdir()
    (here / "points.csv").write_bytes(CSV)
    pq.write_table(pyarrow.csv.read_csv(here / "points.csv"), here / "raw" / "a.parquet")
    return "raw"


def count(call):
    return call("sql", "select count(*) as n from metrics", "--json").json[0]["n"]


def test_files_join_and_leave(call, raw):
    found = call("register", "metrics", raw, "--json").json
    assert (found["files"], found["rows"], found["version"]) == (1, 2, 1)
    assert count(call) == 2
    assert call("register", "metrics", raw, "--json").json["already_registered"] == 1
    assert call("unregister", "metrics", "raw/a.parquet", "--json").json["files"] == 1
    assert call("inspect", "splits", "metrics", "--json").json == []


def test_people_get_words(call, raw):
    assert call("register", "metrics", raw).out.startswith("registered\n")
    assert call("unregister", "metrics", raw, "--dry-run").out.startswith("would take out\nfile:///")
    assert call("unregister", "metrics", raw).out.startswith("taken out\n")


def test_a_dry_run_changes_nothing(call, raw):
    found = call("register", "metrics", raw, "--dry-run", "--json").json
    assert (found["dry_run"], len(found["files"]), found["rows"]) == (True, 1, 2)
    assert call("describe", "metrics", "--json").json["version"] == 0
    call("register", "metrics", raw)
    assert len(call("unregister", "metrics", raw, "--dry-run", "--json").json["files"]) == 1
    assert count(call) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("register", "metrics", "nothing.parquet"), 3, "nothing.parquet"),
        (("register", "metrics", "points.csv"), 6, "points.csv"),
        (("register", "metriks", "raw"), 3, "did you mean 'metrics'"),
        (("unregister", "metrics", "raw"), 3, "no such file is registered"),
        (("register", "metrics"), 2, "PATH"),
    ],
)
def test_bad_input_is_refused(call, raw, arguments, code, message):
    answer = call(*arguments)
    assert (answer.code, message in answer.err) == (code, True), answer.err
    assert call("describe", "metrics", "--json").json["version"] == 0

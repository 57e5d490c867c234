"""Queries from the command line."""

from __future__ import annotations

import io
import sys


def test_people_get_a_table(call, metrics):
    answer = call("sql", "select host, sum(value) as total, count(*) as n from metrics group by host order by host")
    assert answer.out.splitlines() == [
        "host  total  n",
        "----  -----  -",
        "a       5.0  2",
        "b       2.0  1",
        "c      24.0  2",
    ]


def test_programs_get_a_list_of_objects(call, metrics):
    answer = call("sql", "select max(timestamp) as last, sum(1) as n from metrics", "--json")
    assert answer.json == [{"last": "2023-11-14T22:30:01+00:00", "n": 5}]


def test_a_null_is_not_a_dash(call, metrics):
    answer = call("sql", "select timestamp, '-' as dash from metrics where timestamp is null")
    assert answer.out.splitlines()[2].split() == ["NULL", "-"]


def test_large_numbers_and_names_are_left_as_they_are(call, metrics):
    answer = call("sql", "select 1700000000 as rows, 5000 as size_bytes")
    assert answer.out.splitlines()[0].split() == ["rows", "size_bytes"]
    assert answer.out.splitlines()[2].split() == ["1700000000", "5000"]


def test_the_query_may_come_by_stdin(call, metrics, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("select 7 as seven"))
    assert call("sql", "-", "--json").json == [{"seven": 7}]


def test_a_query_that_cannot_be_read_is_refused(call, metrics):
    answer = call("sql", "selec 1")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")


def test_a_table_that_is_not_there_is_not_found(call, metrics):
    answer = call("sql", "select * from nope", "--json")
    assert answer.code == 3
    assert answer.json["error"]["kind"] == "NotFound"
    assert "metrics" in answer.json["error"]["message"]


def test_columns_of_one_name_are_told_apart(call, metrics):
    assert call("sql", "select 1 as a, 2 as a, 3 as a_1, 4 as a", "--json").json == [
        {"a": 1, "a_1": 2, "a_1_1": 3, "a_2": 4}
    ]


def test_an_empty_query_is_refused(call, metrics):
    answer = call("sql", " ")
    assert (answer.code, answer.err) == (2, "error: the query is empty; write a select\n")


def test_in_a_sandbox_queries_read_tables_of_the_lake_alone(call, metrics, tmp_path):
    assert call("sql", "select count(*) as n from metrics", "--sandbox", "--json").json == [{"n": 5}]
    for query in (
        "select * from read_text('/etc/hostname')",
        f"copy metrics to '{tmp_path}/out.csv'",
        "set threads = 1",
    ):
        answer = call("sql", query, "--sandbox")
        assert answer.code == 2
        assert "sandbox" in answer.err
    assert not (tmp_path / "out.csv").exists()

"""What a table is made of, seen from the command line."""

from __future__ import annotations

import pytest


def test_windows_are_counted(call, metrics):
    windows = call("inspect", "windows", metrics, "--json").json
    assert [(row["start"], row["splits"], row["rows"]) for row in windows] == [
        (None, 1, 1),
        (1_699_999_200, 1, 2),
        (1_700_001_000, 2, 2),
    ]


def test_people_see_the_start_as_a_plain_number(call, metrics):
    lines = call("inspect", "windows", metrics).out.splitlines()
    assert lines[0].split() == ["window", "splits", "rows", "size", "generation", "start"]
    assert lines[3].startswith("2023-11-14T22:00:00Z/PT15M")
    assert lines[3].endswith(" 1699999200")


def test_splits_are_listed_with_their_files(call, metrics, here):
    splits = call("--json", "inspect", "splits", metrics).json
    assert [row["rows"] for row in splits] == [1, 2, 1, 1]
    assert all((here / "lake" / row["key"]).is_file() for row in splits)


def test_an_older_version_has_fewer(call, metrics):
    assert len(call("inspect", "splits", metrics, "--version", "1", "--json").json) == 2
    assert len(call("inspect", "windows", metrics, "--version", "1", "--json").json) == 2
    assert call("inspect", "columns", metrics, "--version", "0", "--json").json == []
    assert call("describe", metrics, "--version", "1", "--json").json["rows"] == 3


def test_commits_come_newest_first(call, metrics):
    commits = call("inspect", "commits", metrics, "--json").json
    assert [(row["version"], row["state"], row["rows_added"]) for row in commits] == [
        (2, "published", 2),
        (1, "published", 3),
    ]


@pytest.mark.parametrize("view", ["windows", "splits", "commits", "columns"])
def test_a_limit_shows_the_first(call, metrics, view):
    everything = call("inspect", view, metrics, "--json").json
    assert len(everything) > 1
    assert call("inspect", view, metrics, "--limit", "1", "--json").json == everything[:1]
    assert call("inspect", view, metrics, "--limit", "0", "--json").json == []


def test_columns_have_types_and_field_ids(call, metrics):
    assert call("inspect", "columns", metrics).out.splitlines()[2:] == [
        "metric_name  string                        1",
        "host         string                        2",
        "region       string                        3",
        "timestamp    timestamp[us, tz=UTC]         4",
        "value        double                        5",
    ]


def test_labels_are_the_values_of_a_column(call, metrics):
    assert [row["value"] for row in call("inspect", "labels", metrics, "host", "--json").json] == ["a", "b", "c"]
    found = call("inspect", "labels", metrics, "host", "--where", "value > 3", "--json").json
    assert [row["value"] for row in found] == ["a", "c"]
    assert [row["value"] for row in call("inspect", "labels", metrics, "host", "--version", "1", "--json").json] == [
        "a",
        "b",
    ]
    assert call("inspect", "labels", metrics, "nope").code == 3


def test_cardinality_is_counted_once_it_is_learnt(call, metrics):
    unknown = call("inspect", "cardinality", metrics, "--json").json
    assert (unknown["series"], unknown["hint"]) == (None, f"windrow analyze {metrics} reads what is missing, once")
    learnt = call("inspect", "cardinality", metrics, "--learn", "--json").json
    assert (learnt["missing"], learnt["hint"], learnt["error"]) == ([], None, 0.0)
    assert {row["column"]: row["distinct"] for row in learnt["columns"]}["host"] == 3
    assert [row["labels"] for row in learnt["pairs"]] == ["host, region"]
    assert call("inspect", "cardinality", metrics, "--json").json == learnt
    assert len(call("inspect", "cardinality", metrics, "--limit", "1", "--json").json["columns"]) == 1
    text = call("inspect", "cardinality", metrics).out
    assert "columns:\n" in text
    assert call("inspect", "cardinality", metrics, "--version", "1", "--json").json["rows"] == 3
    assert call("inspect", "cardinality", metrics, "--version", "1", "--learn").code == 2


def test_the_help_of_a_group_is_shown_when_no_command_is_given(call):
    answer = call("inspect")
    assert (answer.code, answer.out) == (2, "")
    assert "commits" in answer.err

"""Files from the command line into a table."""

from __future__ import annotations

from pathlib import Path

import pytest

CSV = "metric_name,host,timestamp,value\ncpu,a,2024-01-01T00:00:00Z,1.5\ncpu,b,2024-01-01T00:20:00Z,2.5\n"


@pytest.fixture
def points(call, here):
    call("create", "metrics", "--sort", "metric_name|host|timestamp/V2")
    (here / "points.csv").write_text(CSV)
    return "points.csv"


def test_files_become_rows_of_the_table(call, points):
    answer = call("ingest", "metrics", points)
    assert answer.code == 0, answer.err
    assert answer.out.startswith("ingested\n")
    assert call("sql", "select host, value from metrics order by host", "--json").json == [
        {"host": "a", "value": 1.5},
        {"host": "b", "value": 2.5},
    ]


def test_programs_get_the_counts(call, points):
    found = call("ingest", "metrics", points, "--json").json
    assert (found["rows"], found["splits"], found["windows"], found["late"], found["version"]) == (2, 2, 2, 0, 1)


def test_a_dry_run_says_what_would_change_and_changes_nothing(call, points):
    found = call("ingest", "metrics", points, "--dry-run", "--json").json
    assert (found["files"], found["new_columns"]) == (1, ["metric_name", "host", "timestamp", "value"])
    assert call("describe", "metrics", "--json").json["version"] == 0
    assert call("inspect", "commits", "metrics", "--json").json == []


def test_old_points_are_dropped_when_asked_and_too_many_are_an_error(call, points):
    answer = call("ingest", "metrics", points, "--drop-late")
    assert answer.code == 2
    assert "2 of 2 rows are late" in answer.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("metrics", "nothing.csv"), 3, "nothing.csv"),
        (("metriks", "points.csv"), 3, "did you mean 'metrics'"),
        (("metrics", "points.csv", "--format", "parquet"), 6, "points.csv"),
        (("metrics", "points.csv", "--future", "soon"), 2, "future: 'soon' is not a duration"),
        (("metrics",), 2, "SOURCE"),
    ],
)
def test_bad_input_is_refused(call, points, arguments, code, message):
    answer = call("ingest", *arguments)
    assert (answer.code, message in answer.err) == (code, True), answer.err
    assert call("describe", "metrics", "--json").json["version"] == 0


def test_otlp_files_are_taken_and_rare_attributes_are_found_by_name(call, points, here):
    data = Path(__file__).parents[1] / "data" / "otlp" / "metrics.json"
    (here / "collector.json").write_bytes(data.read_bytes())
    found = call("ingest", "metrics", "collector.json", "--rare-attributes", "0.1", "--json").json
    assert found["rows"] == 20
    assert call("sql", "select count(load) as n from metrics", "--json").json == [{"n": 1}]
    assert "load" not in [column["name"] for column in call("inspect", "columns", "metrics", "--json").json]


def test_rows_of_other_types_become_dead_letters_when_asked(call, points, here):
    call("ingest", "metrics", points)
    (here / "bad.csv").write_text(CSV.replace("1.5", "much"))
    found = call("ingest", "metrics", points, "bad.csv", "--dead-letter", "--json").json
    assert (found["rows"], found["conflicting"], len(found["dead_letters"])) == (2, 2, 1)
    (listed,) = call("inspect", "dead-letters", "metrics", "--json").json
    assert (listed["key"], listed["rows"], listed["version"]) == (found["dead_letters"][0], 2, 2)


def test_sources_are_listed_with_what_was_dropped(call, points):
    call("ingest", "metrics", points, "--source", "agent-1")
    (found,) = call("inspect", "sources", "metrics", "--json").json
    assert found == {"source": "agent-1", "commits": 1, "rows": 2, "late": 0, "future": 0, "conflicting": 0} | {
        "unfit": 0,
        "rounded": 0,
    }


def test_columns_are_cast(call, points, here):
    call("ingest", "metrics", points)
    (here / "large.csv").write_text(CSV.replace("1.5", "7").replace("2.5", "8"))
    assert call("ingest", "metrics", "large.csv", "--cast", "host=string", "--cast", "value=double").code == 0
    answer = call("ingest", "metrics", "large.csv", "--cast", "value")
    assert answer.code == 2
    assert "'value' is not COLUMN=TYPE" in answer.err


def test_warnings_are_shown_and_are_in_json(call, here, points):
    call("create", "sparse", "--sort", "hosts|timestamp/V2")
    lines = [f"cpu,a,2024-01-{1 + n // 24:02d}T{n % 24:02d}:00:00Z,{n}" for n in range(240)]
    (here / "sparse.csv").write_text("\n".join(["metric_name,host,timestamp,value", *lines]))
    planned = call("ingest", "sparse", "sparse.csv", "--dry-run", "--json").json
    assert planned["predicted_files"] == 240
    answer = call("ingest", "sparse", "sparse.csv", "--json")
    for warnings in (planned["warnings"], answer.json["warnings"]):
        assert "240 rows lie in 240 files" in warnings[0]
        assert "is it 'host'?" in warnings[1]
    assert "240 rows lie in 240 files" in call("check", "sparse").out

"""What a query gives, as a table, CSV, JSON and Parquet, on stdout and in files."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from windrow.cli.exit_codes import ExitCode
from windrow.cli.sql_output import Format, format_of, shown, write

ODD = pa.table(
    {
        "text": ["a", "", None, 'q"uo,te', "two\nlines"],
        "n": [1, None, 3, 4, 5],
        "v": [1.5, float("nan"), None, float("inf"), -2.0],
        "bytes": [b"\x00\xff", None, b"", b"a", b"b"],
        "list": [[1, None], [], None, [2], [3]],
        "map": pa.array([[("k", "x")], [], None, [], []], pa.map_(pa.string(), pa.string())),
        "ts": pa.array([0, None, 1, 2, 2**62], pa.timestamp("us", "UTC")),
        "fine": pa.array([1, None, 2, 3, 4], pa.timestamp("ns")),
    }
)


def written(form, table=ODD, rows=2):
    sink = io.BytesIO()
    count = write(form, pa.RecordBatchReader.from_batches(table.schema, table.to_batches(rows)), sink)
    assert count == len(table)
    return sink.getvalue()


def test_parquet_holds_the_same_values():
    read = pq.read_table(io.BytesIO(written(Format.PARQUET))).cast(ODD.schema)
    # As text, since NaN equals nothing.
    assert [str(column.combine_chunks()) for column in read.columns] == [str(each.chunk(0)) for each in ODD.columns]


def test_csv_tells_null_from_empty_text_and_keeps_every_letter():
    options = pc.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
    parsing = pc.ParseOptions(newlines_in_values=True)
    read = pc.read_csv(io.BytesIO(written(Format.CSV)), parse_options=parsing, convert_options=options)
    assert read["text"].to_pylist() == ODD["text"].to_pylist()
    assert read["n"].to_pylist() == ODD["n"].to_pylist()
    rows = list(csv.DictReader(io.StringIO(written(Format.CSV).decode())))
    assert [row["bytes"] for row in rows] == ["00ff", "", "", "61", "62"]
    assert [row["list"] for row in rows] == ["[1, null]", "[]", "", "[2]", "[3]"]
    assert rows[0]["map"] == '[["k", "x"]]'
    assert rows[2]["ts"] == "1970-01-01 00:00:00.000001Z"


def test_json_is_a_list_with_a_line_for_each_row():
    text = written(Format.JSON).decode()
    rows = json.loads(text)
    assert [row["text"] for row in rows] == ODD["text"].to_pylist()
    assert [row["v"] for row in rows] == [1.5, "NaN", None, "Infinity", -2.0]
    assert rows[0]["ts"] == "1970-01-01T00:00:00+00:00"
    assert len(text.splitlines()) == len(rows) + 2


@pytest.mark.parametrize("form", [Format.JSON, Format.CSV, Format.PARQUET, Format.TABLE])
def test_an_answer_without_rows_is_whole_too(form):
    data = written(form, ODD.slice(0, 0))
    match form:
        case Format.JSON:
            assert json.loads(data) == []
        case Format.CSV:
            assert data.decode().count("\n") == 1
        case Format.PARQUET:
            assert pq.read_table(io.BytesIO(data)).schema == ODD.schema
        case Format.TABLE:
            assert data.decode().startswith("text")


def test_a_terminal_gets_the_first_rows_and_their_number():
    batches = pa.table({"n": range(1000), "long": ["x" * 500] * 1000}).to_batches(300)
    found = shown(pa.RecordBatchReader.from_batches(batches[0].schema, batches), 100)
    assert found.counted == "1,000 rows, the first 100 shown"
    assert max(map(len, found.text(short=True).splitlines())) < 80


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.csv", "csv"), ("a.JSON", "json"), ("x/a.parquet", "parquet"), ("a.txt", "table"), (None, "table")],
)
def test_the_name_of_the_output_says_what_is_written(name, form):
    assert format_of(name) == form


# ---- the command

QUERY = "select host, count(*) as n from metrics group by host order by host"
ROWS = [{"host": "a", "n": 2}, {"host": "b", "n": 1}, {"host": "c", "n": 2}]


def test_stdout_gets_the_format_that_is_asked_for(call, metrics):
    assert call("sql", QUERY, "--format", "csv").out == '"host","n"\n"a",2\n"b",1\n"c",2\n'
    assert call("sql", QUERY, "--format", "json").json == ROWS
    assert call("sql", QUERY, "--format", "table").out.splitlines()[0] == "host  n"


@pytest.mark.parametrize("name", ["out.csv", "out.json", "out.parquet", "out.txt"])
def test_a_file_gets_it_by_its_name(call, here, metrics, name):
    answer = call("sql", QUERY, "--output", name)
    assert answer.code == 0
    assert answer.out.startswith(f"3 rows in {name}, ")
    data = (here / name).read_bytes()
    match name:
        case "out.json":
            assert json.loads(data) == ROWS
        case "out.parquet":
            assert pq.read_table(here / name).to_pylist() == ROWS
        case _:
            assert data.decode().count("\n") == (4 if name == "out.csv" else 5)


def test_programs_hear_what_was_written(call, here, metrics):
    said = call("sql", QUERY, "-o", "out", "--format", "parquet", "--json").json
    assert (said["output"], said["format"], said["rows"]) == ("out", "parquet", 3)
    assert pq.read_table(here / "out").to_pylist() == ROWS


def test_an_answer_that_fails_leaves_the_file_as_it_was(call, here, metrics):
    (here / "out.csv").write_text("before")
    failing = "select case when range = 500000 then error('no') else range end from range(500001)"
    answer = call("sql", failing, "-o", "out.csv")
    assert (answer.code, "no" in answer.err) == (2, True)
    assert (here / "out.csv").read_text() == "before"
    assert [path.name for path in here.iterdir() if "out" in path.name] == ["out.csv"]


def test_a_file_that_cannot_be_written_is_refused(call, metrics):
    answer = call("sql", QUERY, "-o", "missing/out.csv")
    assert answer.code == 2
    assert "missing/out.csv cannot be written" in answer.err


def test_a_query_can_be_explained_instead(call, metrics):
    query = "select sum(value) from metrics where host = 'a'"
    assert "metrics" in call("sql", query, "--explain").out
    [table] = call("sql", query, "--explain", "--json").json["tables"]
    assert (table["name"], table["rows"] < 5) == ("metrics", True)


def test_a_query_that_begins_with_explain_is_explained_as_text_and_as_rows(call, metrics):
    query = "explain select sum(value) from metrics where host = 'a'"
    lines = call("sql", query).out.splitlines()
    assert any(line.strip().startswith("zone maps") for line in lines)
    rows = call("sql", query, "--json").json
    assert [row["explain_key"] for row in rows] == ["windrow", "physical_plan"]


def test_two_formats_at_once_are_refused(call, metrics):
    answer = call("sql", QUERY, "--json", "--format", "csv")
    assert answer.code == 2
    assert "ask for two things" in answer.json["error"]["message"]


@pytest.fixture
def process(here, metrics):
    """Start the command as a process."""
    started = []

    def start(*arguments, **options):
        command = [sys.executable, "-m", "windrow", "sql", *arguments]
        started.append(subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE, **options))
        return started[-1]

    yield start
    for each in started:
        each.kill()
        each.communicate()


def test_ctrl_c_ends_a_query_without_a_trace(process, here):
    endless = "select sum(hash(a.range * b.range) % 7) from range(1000000) a, range(1000000) b"
    running = process(endless, "-o", "out.csv", stdout=subprocess.PIPE)
    time.sleep(4)
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=30)
    assert (running.returncode, error) == (ExitCode.INTERRUPTED, b"error: interrupted\n")
    assert not (here / "out.csv").exists()


def test_a_reader_that_goes_away_ends_it_silently(process):
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    running = process("select range from range(10000000)", "--format", "csv", stdout=subprocess.PIPE, env=environ)
    running.stdout.read(10)
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait() == ExitCode.CLOSED_PIPE


@pytest.mark.long
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_an_answer_larger_than_memory_is_written(here, metrics, form):
    """Two gigabytes of text pass through a process that takes one at most."""
    query = "select range, repeat('x', 1000) || range as text from range(2000000)"
    code = f"""
import resource, sys
from windrow.cli.main import run
assert run(["sql", {query!r}, "--format", {form!r}, "-o", "out"]) == 0
sys.exit(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2,000,000 rows in out")

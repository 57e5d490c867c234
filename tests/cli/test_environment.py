"""What the system, a file or a library refuses is told as what it is, with its exit code; it is no bug of Windrow."""

from __future__ import annotations

import ctypes
import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.cli.failures import report

SORT = "metric_name|host|timestamp/V2"
_SCRIPT = """
import contextlib, io, json, sys
from windrow.cli.main import run
answers = []
for arguments in json.load(sys.stdin):
    heard = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        code = run(arguments)
    answers.append([code, heard.buffer.getvalue().decode()])
print(json.dumps(answers))
"""
_DROP_BOUNDING_CAPABILITY, _OVERRIDES = 24, (1, 2)


def _as_a_plain_user():
    """Let modes of files bind root too: it loses the right to pass them by when the program starts."""
    for capability in _OVERRIDES:
        ctypes.CDLL(None).prctl(_DROP_BOUNDING_CAPABILITY, capability, 0, 0, 0)


def commands(folder, *lines, prepare=_as_a_plain_user):
    """Run command lines in one process that permissions bind; the code and the words of each."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=json.dumps([[str(word) for word in line] for line in lines]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=folder,
        preexec_fn=prepare,
    )
    return json.loads(done.stdout.splitlines()[-1])


def points(count=50):
    times = pa.array([1_700_002_800_000_000 + number for number in range(count)], pa.timestamp("us", "UTC"))
    hosts = [f"h{number * 7919 % 100_000}" for number in range(count)]
    values = [number**0.5 for number in range(count)]
    return pa.table({"metric_name": ["cpu"] * count, "host": hosts, "timestamp": times, "value": values})


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(str(tmp_path / "lake")) as lake:
        table = lake.create_table("metrics", sort=SORT)
        for _ in range(2):
            table.ingest(points())
    return tmp_path / "lake"


def check(answers, expected):
    for (code, words), (wanted, part) in zip(answers, expected, strict=True):
        assert (code, part in words, "bug" in words) == (wanted, True, False), words


def test_what_may_not_be_read_is_permission_denied(tmp_path, lake):
    pq.write_table(points(), tmp_path / "closed.parquet")
    (tmp_path / "closed.csv").write_text("a,b\n1,2\n")
    (tmp_path / "folder").mkdir()
    pq.write_table(points(), tmp_path / "folder" / "inside.parquet")
    closed = [tmp_path / "closed.parquet", tmp_path / "closed.csv", tmp_path / "folder"]
    for path in closed:
        path.chmod(0)
    at = ["--lake", lake]
    try:
        answers = commands(
            tmp_path,
            [*at, "ingest", "metrics", tmp_path / "closed.parquet", "--runner", "local"],
            [*at, "ingest", "metrics", tmp_path / "closed.csv", "--runner", "local"],
            [*at, "ingest", "metrics", tmp_path / "folder", "--runner", "local"],
            [*at, "ingest", "metrics", tmp_path / "folder" / "inside.parquet", "--runner", "local"],
            [*at, "register", "metrics", tmp_path / "folder"],
            ["pm", "build", tmp_path / "closed.parquet"],
            ["pm", "check", tmp_path / "closed.parquet"],
            [*at, "sql", f"select * from '{tmp_path}/closed.csv'"],
        )
    finally:
        for path in closed:
            path.chmod(0o755)
    check(answers, [*[(5, "permission denied")] * 7, (5, "Permission denied")])
    assert windrow.connect(str(lake)).table("metrics").version() == 2


def test_what_may_not_be_written_is_permission_denied(tmp_path, lake):
    (tmp_path / "closed").mkdir(mode=0o555)
    for path in (lake, *lake.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    pq.write_table(points(), tmp_path / "points.parquet")
    try:
        answers = commands(
            tmp_path,
            ["--lake", tmp_path / "closed" / "lake", "create", "x", "--sort", SORT],
            ["--lake", lake, "ingest", "metrics", tmp_path / "points.parquet", "--runner", "local"],
            ["--lake", lake, "compact", "metrics", "--runner", "local"],
        )
    finally:
        for path in (lake, *lake.rglob("*")):
            path.chmod(0o755)
    assert [code for code, _ in answers] == [5, 5, 5], answers
    assert not any("bug" in words for _, words in answers)


def test_a_disk_that_is_full_is_told(tmp_path, lake):
    pq.write_table(points(60_000), tmp_path / "many.parquet")

    def full():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    ingest = ["--lake", lake, "ingest", "metrics", tmp_path / "many.parquet", "--runner", "local"]
    sql = ["--lake", lake, "sql", f"select * from '{tmp_path}/many.parquet'", "-o", tmp_path / "copy.csv"]
    answers = commands(tmp_path, ingest, [*ingest, "--memory-budget", "1MiB"], sql, prepare=full)
    assert [code in (2, 5) for code, _ in answers] == [True] * 3, answers
    assert not any("bug" in words for _, words in answers)
    assert windrow.connect(str(lake)).table("metrics").version() == 2


def with_optional_keys():
    """A file with a map whose keys may be null, by the footer: DuckDB reads it, pyarrow does not."""
    tags = pa.array([None] * 50, pa.map_(pa.string(), pa.string()))
    sink = io.BytesIO()
    pq.write_table(points().append_column("tags", tags), sink, store_schema=False)
    required, optional = (bytes([0x15, 0x0C, 0x25, way, 0x18, 0x03]) + b"key" for way in (0, 2))
    assert sink.getvalue().count(required) == 1
    return sink.getvalue().replace(required, optional)


def test_a_file_that_arrow_does_not_read_is_told_by_its_name(tmp_path, lake):
    (tmp_path / "map.parquet").write_bytes(with_optional_keys())
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(tmp_path / "map.parquet")
    answers = commands(
        tmp_path,
        ["--lake", lake, "ingest", "metrics", "map.parquet", "--runner", "local"],
        ["--lake", lake, "register", "metrics", "map.parquet"],
        ["--lake", lake, "sql", "select count(tags) as n, sum(value) as total from 'map.parquet'"],
    )
    check(answers, [(6, "map.parquet: cannot be read"), (6, "map.parquet: cannot be read"), (0, "total")])


@pytest.mark.parametrize("cut", [0, 0.5, -1], ids=["empty", "half", "tail"])
def test_a_split_that_was_cut_short_is_damaged(tmp_path, lake, cut):
    split = next(lake.rglob("*.parquet"))
    data = split.read_bytes()
    split.write_bytes(data[: int(len(data) * cut) if cut >= 0 else cut])
    answers = commands(
        tmp_path,
        ["--lake", lake, "sql", "select sum(value) from metrics"],
        ["--lake", lake, "sql", "select * from metrics where value > 3", "--json"],
    )
    check(answers, [(6, "it was cut short"), (6, '"kind": "Damaged"')])


def test_a_compaction_that_failed_is_headed_so(tmp_path, lake):
    windrow.connect(str(lake)).table("metrics").change.run(policy={"merge_factor": 2})
    next(lake.rglob("*.parquet")).write_bytes(b"")
    (code, words), (again, nothing) = commands(
        tmp_path,
        ["--lake", lake, "compact", "metrics", "--runner", "local"],
        ["--lake", lake, "compact", "metrics", "--runner", "local"],
    )
    assert (code, words.splitlines()[0]) == (5, "failed: 1 of 1 merges failed, 0 were done")
    assert (again, nothing.splitlines()[0]) == (0, "nothing to merge")


def test_files_that_left_are_listed_as_unregistered(tmp_path, lake):
    pq.write_table(points(), tmp_path / "own.parquet")
    with windrow.connect(str(lake)) as opened:
        table = opened.table("metrics")
        table.register.run(str(tmp_path / "own.parquet"))
        table.unregister.run(str(tmp_path / "own.parquet"))
        assert {each.kind for each in table.inspect.commits()} >= {"register", "unregister"}


@pytest.mark.parametrize("window", ["15min", "-5m", "1.5h", "soon"])
def test_what_is_no_duration_is_told_as_such(tmp_path, window):
    with windrow.connect(str(tmp_path / "lake")) as opened:
        with pytest.raises(windrow.errors.InvalidInput, match="is not a duration"):
            opened.create_table("x", sort=SORT, window=window)
        with pytest.raises(windrow.errors.InvalidInput, match="divide an hour"):
            opened.create_table("x", sort=SORT, window="2d")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (PermissionError(13, "Permission denied", "/data/x"), 5, "/data/x: permission denied"),
        (OSError(28, "No space left on device"), 5, "the disk is full"),
        (pa.ArrowInvalid("Map keys must be annotated as required."), 6, "Map keys must be"),
        (OSError("Couldn't deserialize thrift"), 6, "Arrow cannot read"),
        (MemoryError(), 2, "not enough memory"),
        (KeyError("x"), 1, "this is a bug"),
    ],
)
def test_errors_of_others_have_their_exit_code(error, code, words, capsys):
    assert report(error, as_json=False) == code
    assert words in capsys.readouterr().err


def test_modes_bind_the_processes_of_these_tests(tmp_path):
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    code = "import sys; open(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "closed")],
        stderr=subprocess.PIPE,
        check=False,
        preexec_fn=_as_a_plain_user,
    )
    assert b"PermissionError" in done.stderr
    assert os.access(Path(sys.executable), os.X_OK)

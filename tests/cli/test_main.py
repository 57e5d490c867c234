"""The command as a process: what it loads, what it prints where, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from windrow.cli import main
from windrow.cli.exit_codes import ExitCode

HEAVY = ("alembic", "duckdb", "numpy", "obstore", "pandas", "psycopg", "pyarrow", "pyspark", "sqlalchemy")


def python(*arguments, **options):
    # Unbuffered output would not notice that its reader is gone.
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONUNBUFFERED", "COLUMNS")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, **options)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["create", "--help"], ["demo", "--help"]])
def test_help_is_fast_since_nothing_heavy_is_loaded(here, arguments):
    code = f"""
import sys
from windrow.cli.main import run
assert run({arguments!r}) == 0
print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)
"""
    assert python("-c", code, cwd=here).stderr.strip() == "[]"


def test_the_module_is_the_command(here):
    answer = python("-m", "windrow", "--version", cwd=here)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"windrow {version('windrow')}\n", "")


def test_the_exit_code_and_the_error_leave_the_process(here):
    answer = python("-m", "windrow", "list", cwd=here)
    assert (answer.returncode, answer.stdout) == (3, "")
    assert answer.stderr.startswith("error: there is no lake in ")
    assert list(here.iterdir()) == []


def test_a_closed_pipe_is_silent(here, metrics):
    process = subprocess.Popen(
        [sys.executable, "-m", "windrow", "sql", "select range from range(300000)"],
        cwd=here,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == ExitCode.CLOSED_PIPE


@pytest.mark.parametrize(
    "arguments",
    [["--json", "list"], ["list", "--json"], ["--lake", "lake", "--json", "list"], ["list", "--lake=lake", "--json"]],
)
def test_global_options_stand_before_or_after_the_command(call, metrics, arguments):
    assert call(*arguments).json[0]["name"] == "metrics"


def test_without_a_command_the_help_goes_to_stderr(call):
    answer = call()
    assert (answer.code, answer.out) == (2, "")
    assert "Exit codes" in answer.err


def test_a_bug_has_its_own_code_and_no_traceback(call, here, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a screw is loose")

    monkeypatch.setattr("windrow.lake.connect", broken)
    answer = call("list")
    assert answer.code == 1
    assert answer.err == (
        "error: unexpected: RuntimeError: a screw is loose; this is a bug, "
        "please report it with what --log-level debug adds\n"
    )
    assert "Traceback" in call("--log-level", "debug", "list").err


def test_an_interrupted_command_ends_with_130(call, here, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("windrow.lake.connect", interrupted)
    answer = call("list", "--json")
    assert (answer.code, answer.json["error"]["kind"]) == (130, "Interrupted")


def test_the_process_ends_with_the_code_of_the_run(monkeypatch, here):
    monkeypatch.setattr(sys, "argv", ["windrow", "list"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 3

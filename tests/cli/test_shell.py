"""The shell on a real terminal."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal

import windrow
from windrow.cli.shell import Shell, history_file

PROMPT = "windrow>"


@pytest.fixture
def terminal(here, metrics):
    opened = []

    def start(*arguments):
        opened.append(Terminal(["sql", *arguments], here))
        opened[-1].wait_for(PROMPT)
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_session(terminal, here):
    shell = terminal()
    # A statement goes on until its semicolon.
    shell.type("select host, count(*) as n\r")
    shell.wait_for("...>")
    shell.type("from metrics group by host order by host;\r")
    shown = shell.wait_for("3 rows, ")
    assert [line.split() for line in shown.splitlines() if line.startswith(("a ", "b ", "c "))] == [
        ["a", "2"],
        ["b", "1"],
        ["c", "2"],
    ]
    # What cannot be answered is said, and the shell goes on.
    shell.wait_for(PROMPT)
    shell.type("select nothing from metrics;\r")
    assert "Traceback" not in shell.wait_for("error: ")
    shell.wait_for(PROMPT)
    shell.type(".mode csv\r")
    shell.wait_for(PROMPT)
    shell.type("select 1 as one; select 2 as two;\r")
    shell.wait_for('"one"\n1\n')
    shell.wait_for('"two"\n2\n')
    shell.wait_for(PROMPT)
    shell.type(".mode table\r")
    shell.wait_for(PROMPT)
    shell.type(".timer off\r")
    shell.wait_for(PROMPT)
    shell.type("select 7 as seven;\r")
    shell.wait_for("1 row\n")
    shell.wait_for(PROMPT)
    shell.type(".quit\r")
    assert shell.end() == 0
    assert "+select host, count(*) as n\n+from metrics" in (here / "state/windrow/history").read_text()


def test_commands(terminal):
    shell = terminal()
    shell.type(".help\r")
    shell.wait_for(".schema   show the columns of a table")
    shell.wait_for(PROMPT)
    shell.type(".tables\r")
    shell.wait_for("metric_name|host|timestamp&region/V2")
    shell.wait_for(PROMPT)
    shell.type(".schema metrics\r")
    shell.wait_for("timestamp[us, tz=UTC]")
    shell.wait_for(PROMPT)
    shell.type(".explain select count(*) from metrics;\r")
    shell.wait_for(PROMPT)
    shell.type("explain select sum(value) from metrics;\r")
    shell.wait_for("split times")
    shell.wait_for(PROMPT)
    for wrong in (".nothing", ".mode xml", ".schema nope", ".explain"):
        shell.type(wrong + "\r")
        shell.wait_for("error: ")
        shell.wait_for(PROMPT)
    shell.type("\x04")  # Ctrl-D
    assert shell.end() == 0


def test_tab_completes_tables_columns_and_values(terminal):
    shell = terminal()
    shell.type("select count(*) as n from me\t")
    shell.wait_for("trics")
    shell.type(" where ho\t")
    shell.wait_for("st")
    shell.type(" = 'c\t")
    # It is looked up in the table; without it the text would never end.
    time.sleep(2)
    shell.type(";\r")
    assert "2" in shell.wait_for("1 row")


def test_ctrl_c_clears_a_line_and_ends_a_query_and_never_the_shell(terminal):
    shell = terminal()
    shell.type("select something wrong")
    shell.wait_for("wrong")
    shell.type("\x03")
    shell.wait_for(PROMPT)
    shell.type("select sum(hash(a.range * b.range) % 7) as total from range(1000000) a, range(1000000) b;\r")
    shell.wait_for("b;")
    # The query begins a moment after its echo; until then Ctrl-C is the prompt's.
    time.sleep(3)
    shell.type("\x03")
    shell.wait_for("error: interrupted")
    shell.wait_for(PROMPT)
    shell.type("select 41 + 1 as answer;\r")
    shell.wait_for("42")
    shell.wait_for(PROMPT)
    shell.type("\x04")
    assert shell.end() == 0


def test_what_was_asked_in_an_earlier_session_is_remembered(terminal, here):
    history = history_file({"XDG_STATE_HOME": str(here / "state")}, Path)
    history.parent.mkdir(parents=True)
    history.write_text("\n# 2026-01-01 00:00:00\n+select 'remembered' as word;\n")
    shell = terminal()
    shell.type("\x1b[A\r")  # arrow up
    shell.wait_for("1 row")


def test_a_query_on_a_terminal_is_a_table_with_its_count_and_time(here, metrics):
    shell = Terminal(["sql", "select range as n, repeat('x', 500) as long from range(1000)"], here)
    shown = shell.wait_for("1,000 rows, the first 100 shown, ")
    assert max(map(len, shown.splitlines())) < 120
    assert shell.end() == 0
    shell.close()


def test_parquet_is_nothing_for_a_terminal(here, metrics):
    shell = Terminal(["sql", "select 1", "--format", "parquet"], here)
    shell.wait_for("name a file with --output")
    assert shell.end() == 2
    shell.close()


def test_the_history_is_kept_where_state_is_kept():
    assert history_file({"XDG_STATE_HOME": "/state"}, Path) == Path("/state/windrow/history")
    for environ in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert history_file(environ, lambda: Path("/home/me")) == Path("/home/me/.local/state/windrow/history")


def test_names_are_spelled_as_the_table_has_them(here, metrics, capsys):
    with windrow.connect(here / "lake") as lake:
        shell = Shell(lake)
        shell.answer("select METRIC_NAME, host as size_bytes from Metrics limit 1;")
        shell.answer(".schema METRICS")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["metric_name", "size_bytes"]
    assert any(line.startswith("metrics  ") for line in lines)

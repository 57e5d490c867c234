"""Progress is for terminals: a log or a pipe stays clean."""

from __future__ import annotations

import re

from windrow.cli.progress import counting, ticking, waiting


def work():
    with waiting("Waits ..."):
        pass
    with counting("Counts", 10) as advance:
        advance(4)
        advance(6)
    with ticking("Ticks", 12) as advance:
        advance(1000, 2048)


def test_nothing_is_written_where_stderr_is_no_terminal(capsys):
    work()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_rows_and_splits_on_stderr(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    work()
    out, err = capsys.readouterr()
    assert out == ""
    assert "Waits ..." in err
    plain = re.sub(r"\x1b\[[0-9;?]*\w", "", err)
    assert "10/10 rows, 2 splits" in plain
    assert "Ticks: 1,000 rows, 2.0 KiB, 1 of about 12 splits" in plain

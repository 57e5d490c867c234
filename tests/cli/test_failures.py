"""A failure is one line or one object, and a traceback only for who asks."""

from __future__ import annotations

import json
import logging

import pytest

from windrow import errors
from windrow.cli.failures import report


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.NotFound("no table"), ["NotFound", "no table", False, None]),
        (errors.Conflict("lost the race"), ["Conflict", "lost the race", True, "not committed"]),
        (errors.CommitUnknown("no answer", "c1"), ["CommitUnknown", "no answer", True, "unknown"]),
        (errors.MetastoreError("gone", retryable=True), ["MetastoreError", "gone", True, None]),
        (KeyboardInterrupt(), ["Interrupted", "interrupted", False, None]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_programs_are_told_the_kind_and_whether_to_try_again(capsys, error, said):
    report(error, as_json=True)
    out, err = capsys.readouterr()
    assert list(json.loads(out)["error"].values()) == said
    assert err == ""


def test_people_are_told_in_a_line(capsys):
    assert report(errors.NotFound("no table"), as_json=False) == 3
    assert capsys.readouterr() == ("", "error: no table\n")


def test_a_bug_asks_to_be_reported_in_one_line(capsys):
    assert report(KeyError("a\nlong\nstory"), as_json=False) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "KeyError" in err
    assert "--log-level debug" in err


def test_the_traceback_is_there_at_debug(caplog):
    caplog.set_level(logging.DEBUG, "windrow")
    report(KeyError("x"), as_json=True)
    assert "KeyError" in caplog.text
    caplog.clear()
    caplog.set_level(logging.WARNING, "windrow")
    report(KeyError("x"), as_json=True)
    assert caplog.text == ""


def test_an_interrupted_command_ends_as_shells_expect(capsys):
    assert report(KeyboardInterrupt(), as_json=False) == 130
    assert capsys.readouterr().err == "error: interrupted\n"

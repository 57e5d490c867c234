"""Whole sessions, as a person would see them in a pipe.

A transcript is a list of calls with what they print. `[3]` before the output is the exit code, left out when it is 0;
`<here>`, `<time>` and `<id>` stand for what differs from run to run, and `...` for output that another test looks at.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


def calls(path):
    """Yield the command line and the expected output of each call."""
    for block in path.read_text().removeprefix("$ ").split("\n$ "):
        command, _, expected = block.partition("\n")
        yield command, expected.rstrip("\n")


def general(text, here):
    text = text.replace(str(here), "<here>")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)", "<time>", text)
    return re.sub(r"\b[0-9a-hjkmnp-tv-z]{26}\b", "<id>", text)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_session_goes_as_written(path, call, here, monkeypatch):
    for command, expected in calls(path):
        words = shlex.split(command)
        program = words.index("windrow")
        with monkeypatch.context() as variables:
            for assignment in words[:program]:
                variables.setenv(*assignment.split("=", 1))
            answer = call(*words[program + 1 :])
        printed = general(answer.out + answer.err, here).rstrip("\n")
        if expected != "...":
            assert (f"[{answer.code}] " if answer.code else "") + printed == expected, command


def test_the_transcripts_are_found():
    assert {path.stem for path in TRANSCRIPTS} >= {"config", "settings", "tables", "usage"}

"""Every value that a query can answer with has a place in JSON."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pytest

from windrow.cli.output import JsonOutput, TextOutput, to_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (2**63, 2**63),
        ("ä\n", "ä\n"),
        (0.5, 0.5),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (Decimal("170141183460469231731687303715884105727"), 170141183460469231731687303715884105727),
        (Decimal("2.50"), 2.5),
        (datetime(2024, 1, 1, 12, tzinfo=UTC), "2024-01-01T12:00:00+00:00"),
        (date(2024, 1, 1), "2024-01-01"),
        (time(10, 30), "10:30:00"),
        (timedelta(hours=1), "1:00:00"),
        (b"\x00\xff", "00ff"),
        ([1, (math.inf,)], [1, ["Infinity"]]),
        ({"a": {"b": b""}}, {"a": {"b": ""}}),
    ],
    ids=repr,
)
def test_a_value_becomes_json(value, expected):
    assert json.loads(to_json(value)) == expected


def test_programs_get_the_answer_and_nothing_else(capsys):
    output = JsonOutput()
    output.tell("on the way")
    output.answer({"a": 1}, lambda: pytest.fail("nobody reads the text"))
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_people_get_the_text(capsys):
    output = TextOutput()
    output.tell("on the way")
    output.answer({"a": 1}, lambda: "done")
    assert capsys.readouterr().out == "on the way\ndone\n"

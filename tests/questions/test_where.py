"""A SQL condition becomes the predicate that it says, or is refused by the part that cannot be said."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from windrow.errors import InvalidInput
from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    ILike,
    In,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Or,
    RegexpMatches,
    StartsWith,
)
from windrow.questions.where import parse_where

SAID = [
    ("a = 1", Comparison("a", Op.EQUAL, 1)),
    ("1 < a", Comparison("a", Op.GREATER, 1)),
    ("a <> -1.5", Comparison("a", Op.NOT_EQUAL, Decimal("-1.5"))),
    ("a != 1e3", Comparison("a", Op.NOT_EQUAL, 1000.0)),
    ("a >= 99999999999999999999", Comparison("a", Op.GREATER_OR_EQUAL, 99999999999999999999)),
    ("\"Odd name\" <= 'it''s'", Comparison("Odd name", Op.LESS_OR_EQUAL, "it's")),
    ("t.a = true", Comparison("a", Op.EQUAL, value=True)),
    ("a in (1, 2)", In("a", (1, 2))),
    ("a not in ('x')", Not(In("a", ("x",)))),
    ("a between 1 and 2", Between("a", 1, 2)),
    ("a is null", IsNull("a")),
    ("a is not null", IsNotNull("a")),
    ("a like 'cpu%'", StartsWith("a", "cpu")),
    ("a not like 'cpu%'", Not(StartsWith("a", "cpu"))),
    ("regexp_matches(a, '^c.u')", RegexpMatches("a", "^c.u")),
    ("not regexp_matches(a, 'c|d')", Not(RegexpMatches("a", "c|d"))),
    ("a ilike 'Cpu_%'", ILike("a", "Cpu_%")),
    ("a not ilike 'é'", Not(ILike("a", "é"))),
    ("starts_with(a, 'c_%')", StartsWith("a", "c_%")),
    ("d = date '2024-02-29'", Comparison("d", Op.EQUAL, date(2024, 2, 29))),
    ("t < timestamp '2024-01-01 12:00:00'", Comparison("t", Op.LESS, datetime(2024, 1, 1, 12))),  # noqa: DTZ001
    ("t < '2024-01-01 12:00:00+00:00'::timestamptz", Comparison("t", Op.LESS, datetime(2024, 1, 1, 12, tzinfo=UTC))),
    (
        "a = 1 and (b = 2 or not c = 3) and d is null",
        And(
            (
                Comparison("a", Op.EQUAL, 1),
                Or((Comparison("b", Op.EQUAL, 2), Not(Comparison("c", Op.EQUAL, 3)))),
                IsNull("d"),
            )
        ),
    ),
]


@pytest.mark.parametrize(("text", "predicate"), SAID, ids=[text for text, _ in SAID])
def test_what_a_condition_says(text, predicate):
    assert parse_where(text) == predicate


def test_nan_can_be_asked_for():
    assert math.isnan(parse_where("v = 'nan'::double").value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "cannot be read"),
        ("", "cannot be read"),
        ("a = 1 group by b", "more than a condition"),
        ("a = b", "b: metadata cannot answer this"),
        ("a + 1 = 2", "metadata cannot answer"),
        ("lower(a) = 'x'", "metadata cannot answer"),
        ("a like '%x'", "only a prefix"),
        ("a like 'x_y%'", "only a prefix"),
        ("a ~ 'x'", "metadata cannot answer"),
        ("a !~ 'x'", "metadata cannot answer"),
        ("regexp_matches(a, 'x', 'i')", "metadata cannot answer"),
        ("regexp_matches(a, 1)", "metadata cannot answer"),
        ("regexp_matches(a, '(')", "no regular expression of RE2"),
        ("regexp_matches(a, '(?=x)')", "no regular expression of RE2"),
        ("a ilike 'x!%' escape '!'", "metadata cannot answer"),
        ("a in (select 1)", "metadata cannot answer"),
        ("a = null", "write IS NULL"),
        ("d = date 'tomorrow'", "write times as 2026-01-31"),
        ("x = cast('much' as double)", "numbers as 1.5"),
        ("a = '1'::integer", "metadata cannot answer"),
        ("a is true", "metadata cannot answer"),
    ],
)
def test_a_condition_without_a_predicate_is_refused(text, message):
    with pytest.raises(InvalidInput, match=message):
        parse_where(text)

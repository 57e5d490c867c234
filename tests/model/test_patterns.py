"""Patterns of text, held against DuckDB, which runs the queries."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from windrow.model.patterns import any_case_prefixes, any_case_regex, compiled, matches_any_case, regex_prefix

LETTERS = "aAkKiIsSéÉßẞǅ\u03a3\u03c2\u03c3\u212a\u0130\u017f\u0301%_\\.\n\0"
TEXTS = st.text(LETTERS, max_size=4)
PIECES = st.sampled_from(
    ["^", "$", "a", "b", "ab", "a?", "b*", "a+", "a{0,1}", "(?i)", "(a|b)", "|", ".", r"\.", "[ab]", "^*"]
)
EXPRESSIONS = st.lists(PIECES, max_size=5).map("".join) | st.lists(PIECES, max_size=4).map("".join).map("^{}".format)


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connection:
        yield connection


@settings(deadline=None)
@given(TEXTS, TEXTS)
@example("\u0130", "i")
@example("k", "\u212a")
def test_duckdb_finds_the_same_texts_alike(connection, text, pattern):
    (alike,) = connection.execute("select ? ilike ?", [text, pattern]).fetchone()
    assert matches_any_case(pattern, text) == alike
    if alike:
        assert any(text.startswith(prefix) for prefix in any_case_prefixes(pattern))
    if alike and text.isascii():
        assert compiled(any_case_regex(pattern)).search(text)


@settings(deadline=None)
@given(EXPRESSIONS, st.text("abAB.\n", max_size=4))
@example("^a|b", "b")
@example("^ab?", "a")
@example("^*ab", "xab")
@example("^(?i)ab", "AB")
def test_an_expression_is_found_where_duckdb_finds_it(connection, expression, text):
    try:
        (found,) = connection.execute("select regexp_matches(?, ?)", [text, expression]).fetchone()
    except duckdb.Error:
        assert compiled(expression) is None
        return
    assert bool(compiled(expression).search(text)) == found
    if found:
        assert text.startswith(regex_prefix(expression))


@pytest.mark.parametrize(
    ("expression", "prefix"),
    [
        *[("^cpu", "cpu"), ("^cpu.*", "cpu"), ("^cpus?", "cpu"), ("^cpu+", "cpu"), ("^cpu$", "cpu"), ("^cpu{2}", "cp")],
        *[("cpu", ""), ("^cpu|mem", ""), ("(?i)^cpu", ""), ("^*cpu", ""), (r"^\d", ""), ("^", "")],
    ],
)
def test_the_prefix_of_an_expression(expression, prefix):
    assert regex_prefix(expression) == prefix


def test_prefixes_in_any_case_are_few():
    assert any_case_prefixes("Cp_") == ("CP", "Cp", "cP", "cp")
    assert any_case_prefixes("1é") == ("1",)
    assert any_case_prefixes("%x") == ("",)
    assert len(any_case_prefixes("processor%")) == 64


@pytest.mark.parametrize("expression", ["(", "(?=a)", r"(a)\1", "\ud800"])
def test_what_re2_does_not_read_is_no_expression(expression, capfd):
    assert compiled(expression) is None
    assert capfd.readouterr().err == ""

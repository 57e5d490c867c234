"""Answers as Arrow, pandas, Polars and dictionaries, and as a person sees them."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from windrow.engines.answer import Answer

ANSWER = Answer(pa.table({"host": ["a", "b"], "n": [1, None]}))


def test_the_same_rows_in_every_form():
    rows = [{"host": "a", "n": 1}, {"host": "b", "n": None}]
    assert ANSWER.to_dict() == rows
    assert ANSWER.to_arrow().to_pylist() == rows
    assert pa.table(ANSWER).to_pylist() == rows
    assert ANSWER.to_polars().to_dicts() == rows
    assert ANSWER.to_pandas().equals(pd.DataFrame({"host": ["a", "b"], "n": [1.0, None]}))
    assert isinstance(ANSWER.to_polars(), pl.DataFrame)
    assert len(ANSWER) == 2


def test_it_is_shown_as_a_table_with_numbers_to_the_right():
    shown = repr(Answer(pa.table({"host": ["a", "long name"], "n": [1, 1000]})))
    assert shown.splitlines() == [
        "host         n",
        "--------- ----",
        "a            1",
        "long name 1000",
        "(2 rows)",
    ]


def test_only_the_first_rows_are_shown():
    lines = repr(Answer(pa.table({"n": range(1000)}))).splitlines()
    assert (len(lines), lines[-1]) == (23, "(1,000 rows, the first 20 are shown)")


def test_columns_that_do_not_fit_are_counted():
    wide = Answer(pa.table({f"column {n}": ["x" * 100] for n in range(10)}))
    assert repr(wide).endswith("(1 row; 7 more columns)")
    assert max(map(len, repr(wide).splitlines())) <= 160


@pytest.mark.parametrize("text", ["a\nb", "tab\there", "\x1b[31mred"])
def test_control_characters_do_not_reach_the_terminal(text):
    assert all(char.isprintable() or char == "\n" for char in repr(Answer(pa.table({"x": [text]}))))


def test_notebooks_get_html_in_which_values_are_no_markup():
    shown = Answer(pa.table({"<b>": ["<script>"]}))._repr_html_()
    assert "<th>&lt;b&gt;</th>" in shown
    assert "<td>&lt;script&gt;</td>" in shown
    assert "1 row" in shown


def test_an_answer_without_rows_or_columns_is_shown_too():
    assert repr(Answer(pa.table({"n": pa.array([], pa.int64())}))) == "n\n-\n(0 rows)"
    assert "(0 rows)" in repr(Answer(pa.table({})))

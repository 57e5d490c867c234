"""Where a statement ends."""

from __future__ import annotations

import pytest

from windrow.cli.statements import is_complete, statements


@pytest.mark.parametrize(
    "text", ["", "  \n", "select 1;", "select 1; ", ".help", ".mode csv", "select ';';", "select 1; -- yes"]
)
def test_this_can_be_run(text):
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    ["select 1", "select ';", "select 1 -- ;", "select 1 /* ;", "select 1; select 2", 'select ";', "select $$ ;"],
)
def test_this_goes_on(text):
    assert not is_complete(text)


def test_a_text_may_hold_several_statements():
    assert statements("select ';' as a; select 2;\n-- the end\n") == ["select ';' as a", "select 2"]
    assert statements("select 1") == ["select 1"]
    assert statements(" ; ;") == []

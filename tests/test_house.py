"""The house rules that no linter knows: small files, small functions, nothing in the entrances, nothing unfinished."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = [*SOURCES, *sorted((ROOT / "benchmarks").rglob("*.py"))]
MOST_LINES = 500
MOST_FUNCTION_LINES = 70
# Assembled, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error"]) + r")\b")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_file_is_short_and_says_what_it_is_for(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES
    assert ast.get_docstring(ast.parse(text)), "a module docstring says what the file is for"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_function_is_short(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno <= MOST_FUNCTION_LINES, node.name


@pytest.mark.parametrize("path", [p for p in SOURCES if p.name == "__init__.py"], ids=name)
def test_an_entrance_only_re_exports(path):
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.Expr)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for_checkers = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        inner = node.body if for_checkers else [node]
        assert all(isinstance(each, allowed) for each in inner)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_nothing_is_left_unfinished(path):
    assert not UNFINISHED.search(path.read_text(encoding="utf-8"))


def test_the_rules_look_at_something():
    assert len(SOURCES) > 20

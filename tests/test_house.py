"""The house rules that no linter knows: small files, small functions, nothing in the entrances, nothing unfinished."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MODULES = [*SOURCES, *sorted((ROOT / "benchmarks").rglob("*.py")), *sorted((ROOT / "native").glob("*.py"))]
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


def asked_classes(tree):
    """Names of classes that code asks a value for: by `isinstance`, by `type`, or by a pattern."""
    for node in ast.walk(tree):
        if isinstance(node, ast.MatchClass):
            yield from names(node.cls)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass"):
                yield from names(node.args[1])
            elif node.func.id == "type" and len(node.args) == 1:
                # the type of a store is as much of a question as its comparison with one
                yield from (f"{each}Store" for each in names(node.args[0]) if each.lower().endswith("store"))
        elif isinstance(node, ast.Attribute) and node.attr == "__class__":
            yield from (f"{each}Store" for each in names(node.value) if each.lower().endswith("store"))


def names(node):
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


OUTSIDE_STORAGE = [path for path in SOURCES if path.parent.name != "storage"]


@pytest.mark.parametrize("path", OUTSIDE_STORAGE, ids=name)
def test_a_store_says_what_it_can_do_and_nobody_asks_for_its_class(path):
    stores = {each for each in asked_classes(ast.parse(path.read_text(encoding="utf-8"))) if each.endswith("Store")}
    assert not stores, "ask the store for `root`, `is_remote` or `local`"


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(file.store, LocalStore)",
        "isinstance(store, (int, storage.LocalStore))",
        "type(file.store) is Local",
        "store.__class__ == Local",
        "match store:\n case LocalStore(): pass",
    ],
)
def test_every_way_to_ask_for_the_class_of_a_store_is_seen(code):
    assert any(each.endswith("Store") for each in asked_classes(ast.parse(code)))


def test_the_rules_look_at_something():
    assert len(SOURCES) > 20

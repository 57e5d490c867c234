"""Which arrays a kernel writes to, by itself or by what it calls: Python must not hand it read-only ones."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

__all__ = ["written_parameters"]

_SAME_MEMORY = ("reshape",)


@cache
def written_parameters(function: Callable[..., Any]) -> frozenset[str]:
    """The names of the parameters whose arrays are written to."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    written: set[str] = set()
    aliases: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        for target, value in _assignments(node):
            if isinstance(target, ast.Name):
                aliases.setdefault(target.id, set()).update(_memory_of(value))
            else:
                written.update(_memory_of(target))
        if isinstance(node, ast.Call):
            written.update(_written_by_call(node, function))
    waiting = list(written)
    while waiting:
        new = aliases.get(waiting.pop(), set()) - written
        written |= new
        waiting += new
    return frozenset(written.intersection(inspect.signature(function).parameters))


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of what is assigned to, a name or a part of an array, and of what is assigned."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, ast.AugAssign):
        yield node.target, node.value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, ast.Tuple):
        yield target, value
        return
    values = value.elts if isinstance(value, ast.Tuple) else [value] * len(target.elts)
    for one, other in zip(target.elts, values, strict=True):
        yield from _pairs(one, other)


def _memory_of(node: ast.expr) -> Iterator[str]:
    """The names of the arrays that an expression is a part of."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Subscript):
        yield from _memory_of(node.value)
    elif isinstance(node, ast.Tuple):
        for each in node.elts:
            yield from _memory_of(each)
    elif isinstance(node, ast.IfExp):
        yield from _memory_of(node.body)
        yield from _memory_of(node.orelse)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_MEMORY:
        yield from _memory_of(node.func.value)


def _written_by_call(node: ast.Call, caller: Callable[..., Any]) -> Iterator[str]:
    if isinstance(node.func, ast.Attribute) and node.func.attr == "sort":
        yield from _memory_of(node.func.value)
    called = caller.__globals__.get(node.func.id) if isinstance(node.func, ast.Name) else None
    if inspect.isfunction(called):
        written = written_parameters(called)
        for name, given in zip(
            inspect.signature(called).parameters, node.args, strict=False
        ):  # translation counts them
            if name in written:
                yield from _memory_of(given)

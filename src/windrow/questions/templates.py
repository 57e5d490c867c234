"""Parsed queries, reused: those that differ by their values alone are parsed once.

A query is cut at its literals. What is between them is the key of a template: a parsed query into which the values of
the next one are put. A literal that the parser makes something else of, such as the text of an interval, is no value
but a part of the key. Marks of parameters (`?`, `$1`) get names, so that each keeps its value in any order.

A template is lent to one query at a time, since its tree holds the values of that query. Where all templates of a shape
are lent, another one is parsed; those that were given back wait for the next query.
"""

from __future__ import annotations

import re
import threading
from types import TracebackType
from typing import Any, NamedTuple

from sqlglot import exp

from windrow.bounded import BoundedCache
from windrow.questions.naming import Naming

__all__ = ["MARK", "Templates", "literals_in"]

MARK = "windrow_"
"""Names of parameters that the query numbers by their order begin so."""

_MOST = 256
_MOST_IDLE = 8
"""Templates of one shape that wait for a query."""
_MISSING = object()
_UNSURE = re.compile(r"\\|--|/\*|\$\w*\$|\0")
"""Where one of these is, it takes a real parser to tell what is a literal."""
_TOKEN = re.compile(
    r"""[A-Za-z_]\w*&?'(?:[^']|'')*'            # a text of a special kind
    |(?P<text>'(?:[^']|'')*')
    |"(?:[^"]|"")*"
    |(?P<number>(?<![\w.$])\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<mark>\?|\$\w+)""",
    re.VERBOSE,
)
_SAFE = (
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like),
    *(exp.Neg, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Limit, exp.Offset),
)
_SAFE_CASTS = {*exp.DataType.NUMERIC_TYPES, *exp.DataType.TEXT_TYPES} | {
    exp.DataType.Type[name] for name in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "BOOLEAN")
}


class Literal(NamedTuple):
    """A literal of a query, as it is written."""

    is_text: bool
    written: str

    @property
    def value(self) -> str:
        """What a parsed literal holds."""
        return self.written[1:-1].replace("''", "'") if self.is_text else self.written


class _Template(NamedTuple):
    naming: Naming
    slots: list[tuple[int, Any]]
    """The position of a literal in the query, and its node in the tree."""


def literals_in(query: str) -> tuple[list[str], list[Literal]] | None:
    """Return what is between the literals of a query, and these; None where only a parser can tell."""
    if _UNSURE.search(query):
        return None
    between, literals, last, marks, start = [], [], "", 0, 0
    for token in _TOKEN.finditer(query):
        if token["mark"]:
            marks += token[0] == "?"
            name = f"{MARK}{marks}" if token[0] == "?" else token[0][1:]
            # With a dollar before each, the parser could take what is between two of them for a text.
            last += f"{query[start : token.start()]}:{MARK if name.isdigit() else ''}{name}"
            start = token.end()
        elif token["text"] or token["number"]:
            between.append(last + query[start : token.start()])
            literals.append(Literal(bool(token["text"]), token[0]))
            last, start = "", token.end()
    return [*between, last + query[start:]], literals


class Loan:
    """The names in a query, for a `with` block; afterwards other queries may change its tree."""

    __slots__ = ("_idle", "_naming", "_template")

    def __init__(self, naming: Naming, template: _Template | None = None, idle: list[_Template] | None = None) -> None:
        self._naming = naming
        self._template = template
        self._idle = idle

    def __enter__(self) -> Naming:
        return self._naming

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        template, self._template = self._template, None
        if template is not None and self._idle is not None and len(self._idle) < _MOST_IDLE:
            self._idle.append(template)


class Templates:
    """The templates of the last queries, for all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fixed: BoundedCache[tuple[Any, ...], tuple[int, ...] | None] = BoundedCache("query shapes", _MOST)
        self._templates: BoundedCache[tuple[Any, ...], list[_Template]] = BoundedCache("query templates", _MOST)
        """Those that wait for a query, by shape and literals that are part of it."""

    def lend(self, query: str) -> Loan:
        """The names in a query; its tree has no other user while the block lasts."""
        parts = literals_in(query)
        if parts is None:
            return Loan(Naming.of(query))
        between, literals = parts
        shape = (*between, *(literal.is_text for literal in literals))
        fixed = self._fixed.get_or_make(shape, lambda: _fixed_in(between, literals))
        if fixed is None:
            return Loan(Naming.of(_joined(between, [literal.written for literal in literals])))
        key = (shape, tuple(literals[place].written for place in fixed))
        idle: list[_Template] = self._templates.get_or_make(key, list)
        with self._lock:
            template = idle.pop() if idle else None
        template = template or _template(between, literals, fixed)
        if template is None:
            return Loan(Naming.of(_joined(between, [literal.written for literal in literals])))
        for place, node in template.slots:
            node.set("this", literals[place].value)
        return Loan(template.naming, template, idle)


def _joined(between: list[str], texts: list[str]) -> str:
    return "".join(part for pair in zip(between, [*texts, ""], strict=True) for part in pair)


def _fixed_in(between: list[str], literals: list[Literal]) -> tuple[int, ...] | None:
    """The literals that the parser rewrites; None when the query cannot be parsed."""
    naming = Naming.of(_joined(between, [_marker(place, literal) for place, literal in enumerate(literals)]))
    if naming.tree is None:
        return None
    slots = dict(_slots(naming.tree, literals))
    return tuple(place for place in range(len(literals)) if place not in slots)


def _template(between: list[str], literals: list[Literal], fixed: tuple[int, ...]) -> _Template | None:
    """A template, if a query made from it equals the parsed query."""
    texts = [literal.written if place in fixed else _marker(place, literal) for place, literal in enumerate(literals)]
    naming, plain = Naming.of(_joined(between, texts)), Naming.of(_joined(between, [each.written for each in literals]))
    if naming.tree is None or plain.tree is None:
        return None
    slots = _slots(naming.tree, literals)
    if len(slots) + len(fixed) != len(literals):
        return None
    for place, node in slots:
        node.set("this", literals[place].value)
    same = naming.tree == plain.tree and (naming.words, naming.files) == (plain.words, plain.files)
    return _Template(naming, slots) if same else None


def _marker(place: int, literal: Literal) -> str:
    """A unique literal."""
    return f"'windrow literal {place}'" if literal.is_text else str(7_310_000_000 + place)


def _slots(tree: exp.Expr, literals: list[Literal]) -> list[tuple[int, Any]]:
    """The nodes of markers that occur once, as written, in surroundings that leave them unchanged."""
    places = {_marker(place, literal).strip("'"): place for place, literal in enumerate(literals)}
    nodes_of: dict[int, list[Any]] = {}
    for node in tree.find_all(exp.Literal):
        place = places.get(node.this)
        if place is not None and node.is_string == literals[place].is_text:
            nodes_of.setdefault(place, []).append(node)
    return [(place, nodes[0]) for place, nodes in sorted(nodes_of.items()) if len(nodes) == 1 and _is_safe(nodes[0])]


def _is_safe(node: Any) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return parent.to.this in _SAFE_CASTS
    return isinstance(parent, _SAFE)

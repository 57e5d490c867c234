"""Tests of text as tests of what files store: UUID, IPv4 and CHAR are bytes and numbers there.

Bounds and filters tell of stored values. So a test of the text becomes one of stored values, which holds for every row
that the first one selects, and for few others. Texts that are no value of the type select nothing.

UUIDs are stored with the first digit first and shown in small letters: their texts have the order of their bytes.
Characters have that of their codes, but for halves of pairs, which are all shown as one other character. Addresses have
another order as text than as numbers, so that only single ones can be looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ipaddress import IPv4Address
from typing import NamedTuple
from uuid import UUID

from windrow.model.operators import literals_of
from windrow.model.predicate import (
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    StartsWith,
    columns_of,
    matches,
    value_tests,
)
from windrow.sidecar.types import Tag

__all__ = ["TESTED_AS_TEXT", "stored_test"]

TESTED_AS_TEXT = frozenset({Tag.UUID, Tag.IPV4, Tag.CHAR})
"""Types that are shown as text and whose stored values can be tested."""

_Span = tuple[int, int]
_HALVES = 0xD800, 0xDFFF
_SHOWN_HALF = "\ufffd"
_AFTER_ALL = "\U0010ffff"
"""Behind a prefix: greater than every text that starts so."""


def stored_test(tag: Tag, test: Predicate) -> Predicate | None:
    """Return what a test of a column's text demands of the values that are stored; None is nothing.

    The test has no others inside, but for Not before StartsWith.
    """
    if not all(isinstance(literal, str) for each in value_tests(test) for literal in literals_of(each)):
        return None
    (column,) = columns_of(test)
    match tag:
        case Tag.UUID:
            return test if isinstance(test, IsNull | IsNotNull) else _within(_UUIDS, column, test)
        case Tag.IPV4:
            return _address_test(column, test)
        case Tag.CHAR:
            return _character_test(column, test)
    return None


class _Ordered(NamedTuple):
    """Values whose texts are in order: each has a position, from 0."""

    size: int
    text: Callable[[int], str]
    """The text at a position."""
    position: Callable[[str], int | None]
    """Where a text is; None where no value has it."""
    stored: Callable[[int], Literal]
    """What a file has for the value at a position."""

    def before(self, text: str) -> int:
        """Count the values whose texts are less."""
        position = self.position(text)
        if position is not None:
            return position
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.text(middle) < text else (low, middle)
        return low

    def up_to(self, text: str) -> int:
        """Count the values whose texts are less or the same."""
        return self.before(text) + (self.position(text) is not None)


def _within(values: _Ordered, column: str, test: Predicate) -> Predicate:
    """The test of stored values that selects those whose text is selected."""
    spans = [(first, stop) for first, stop in _spans(values, test) if first < stop]
    points = tuple(values.stored(first) for first, stop in spans if stop == first + 1)
    wide = [Between(column, values.stored(first), values.stored(stop - 1)) for first, stop in spans if stop > first + 1]
    return Or((*wide, In(column, points)) if points else tuple(wide))


def _spans(values: _Ordered, test: Predicate) -> Iterable[_Span]:
    """The positions of texts that a test selects, each from the first to before the last."""
    match test:
        case Comparison(_, op, str(text)):
            return _compared(op, values.before(text), values.up_to(text), values.size)
        case In(_, texts):
            places = {values.position(str(text)) for text in texts}
            return [(place, place + 1) for place in sorted(each for each in places if each is not None)]
        case Between(_, str(low), str(high)):
            return [(values.before(low), values.up_to(high))]
        case StartsWith(_, prefix):
            return [(values.before(prefix), values.before(prefix + _AFTER_ALL))]
        case Not(StartsWith(_, prefix)):
            return [(0, values.before(prefix)), (values.before(prefix + _AFTER_ALL), values.size)]
    return [(0, values.size)]


def _compared(op: Op, before: int, up_to: int, size: int) -> list[_Span]:
    spans = {
        Op.EQUAL: [(before, up_to)],
        Op.NOT_EQUAL: [(0, before), (up_to, size)],
        Op.LESS: [(0, before)],
        Op.LESS_OR_EQUAL: [(0, up_to)],
        Op.GREATER: [(up_to, size)],
        Op.GREATER_OR_EQUAL: [(before, size)],
    }
    return spans[op]


# ---- UUID


def _uuid_position(text: str) -> int | None:
    try:
        value = UUID(text)
    except ValueError:
        return None
    return value.int if str(value) == text else None


_UUIDS = _Ordered(2**128, lambda place: str(UUID(int=place)), _uuid_position, lambda place: place.to_bytes(16, "big"))


# ---- CHAR


def _character(code: int) -> str:
    return chr(code) if code else ""


def _code(text: str) -> int | None:
    code = ord(text) if len(text) == 1 else 0
    return code if code < _CHARACTERS.size and _character(code) == text else None


_CHARACTERS = _Ordered(2**16, _character, _code, lambda code: code)


def _character_test(column: str, test: Predicate) -> Predicate | None:
    """Null and 0 are shown as empty text, halves of pairs as one character."""
    if isinstance(test, IsNull | IsNotNull):
        return Or(()) if isinstance(test, IsNull) else None
    parts = [_within(_CHARACTERS, column, test)]
    if matches(test, {column: _SHOWN_HALF}):
        parts.append(Between(column, *_HALVES))
    if matches(test, {column: ""}):
        parts.append(IsNull(column))
    return Or(tuple(parts))


# ---- IPv4


def _address(text: str) -> int | None:
    try:
        address = IPv4Address(text)
    except ValueError:
        return None
    return int(address) or None


def _address_test(column: str, test: Predicate) -> Predicate:
    """0 is shown as null."""
    match test:
        case IsNull():
            return Or((test, Comparison(column, Op.EQUAL, 0)))
        case Comparison(_, Op.EQUAL, value):
            return _address_test(column, In(column, (value,)))
        case In(_, texts):
            numbers = {_address(str(text)) for text in texts}
            return In(column, tuple(sorted(number for number in numbers if number is not None)))
    return Comparison(column, Op.GREATER, 0)

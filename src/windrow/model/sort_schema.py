"""Sort schemas: in which order the rows of a table lie, written as one line of text.

    [name=]column[+|-]|column...[&column|column...]/V2

Columns before `&` sort, the most significant first; columns after it only get metadata and take no direction. A sort
column is ascending unless it says `-`; one that is called `timestamp` is descending unless it says `+`. Only the last
character of a column is a direction: the `-` of `k8s.pod-name` belongs to the name.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from windrow.errors import SortSchemaError

__all__ = ["Direction", "SortColumn", "SortSchema"]

_T = TypeVar("_T")

_VERSION = "V2"
_RESERVED = "|&=/"
_UNPRINTABLE = ("Cc", "Cs")
"""Unicode's control characters, and the halves of characters that no UTF-8 text can hold."""


class Direction(StrEnum):
    """Which end of a sort column comes first."""

    ASCENDING = "+"
    DESCENDING = "-"


_DIRECTIONS = tuple(Direction)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column that rows are sorted by."""

    name: str
    direction: Direction

    def __post_init__(self) -> None:
        _check_name(self.name, "column name")
        if self.name.endswith(_DIRECTIONS):
            problem = f"found {self.name[-1]!r} before the direction, expected one direction at most"
            raise SortSchemaError(self.name, len(self.name) - 1, problem)
        if not isinstance(self.direction, Direction):
            raise SortSchemaError(self.name, 0, f"found the direction {self.direction!r}, expected one of Direction")

    def __str__(self) -> str:
        return self.name if self.direction is _default_direction(self.name) else self.name + self.direction


@dataclass(frozen=True, slots=True)
class SortSchema:
    """The sort columns of a table, the most significant first, and the columns that only get metadata."""

    columns: tuple[SortColumn, ...]
    metadata_columns: tuple[str, ...] = ()
    name: str | None = None

    def __post_init__(self) -> None:
        if not self.columns or not _is_tuple_of(SortColumn, self.columns):
            raise SortSchemaError(str(self.columns), 0, "expected a tuple of one or more SortColumn to sort by")
        if not _is_tuple_of(str, self.metadata_columns):
            raise SortSchemaError(str(self.metadata_columns), 0, "expected a tuple of names as metadata columns")
        for column in self.metadata_columns:
            _metadata_column(column)
        if self.name is not None:
            _check_name(self.name, "schema name")
        _check_duplicates(self.column_names, [0] * len(self.column_names), str(self))

    def __str__(self) -> str:
        name = "" if self.name is None else f"{self.name}="
        metadata = "&" + "|".join(self.metadata_columns) if self.metadata_columns else ""
        return f"{name}{'|'.join(map(str, self.columns))}{metadata}/{_VERSION}"

    @classmethod
    def parse(cls, text: str) -> SortSchema:
        """Read a schema.

        >>> SortSchema.parse("host|timestamp&region/V2").column_names
        ('host', 'timestamp', 'region')
        """
        end = _end_of_columns(text)
        equals, cut = _only("=", text, end), _only("&", text, end)
        names = [(0, text[:equals])] if equals >= 0 else []
        sorting = _pieces(text, equals + 1, cut if cut >= 0 else end)
        metadata = _pieces(text, cut + 1, end) if cut >= 0 else []
        name = _read(text, names, _schema_name)
        columns = _read(text, sorting, _sort_column)
        metadata_columns = _read(text, metadata, _metadata_column)
        all_names = [column.name for column in columns] + list(metadata_columns)
        _check_duplicates(all_names, [position for position, _ in sorting + metadata], text)
        return cls(columns, metadata_columns, *name)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Sort columns, then metadata columns: the positions of the bounds of a split."""
        return (*(column.name for column in self.columns), *self.metadata_columns)

    def canonical(self) -> str:
        """Return the schema without its name: the text that decides whether splits may merge."""
        return str(replace(self, name=None))


def _end_of_columns(text: str) -> int:
    """Return the position of the `/`, after a look at what follows it."""
    if not text or not isinstance(text, str):
        raise SortSchemaError(str(text), 0, f"found {text!r}, expected a schema such as host|timestamp/{_VERSION}")
    end = _only("/", text, len(text))
    if end < 0:
        raise SortSchemaError(text, len(text), f"found no version, expected /{_VERSION} at the end")
    version = text[end + 1 :]
    if version != _VERSION:
        raise SortSchemaError(text, end + 1, f"found the version {version!r}; {_VERSION} is the one supported")
    return end


def _only(mark: str, text: str, end: int) -> int:
    """Return the position of a mark that may stand once before `end`, -1 when it does not."""
    first = text.find(mark, 0, end)
    second = text.find(mark, first + 1, end) if first >= 0 else -1
    if second >= 0:
        raise SortSchemaError(text, second, f"found a second {mark!r}, expected one at most")
    return first


def _pieces(text: str, start: int, end: int) -> list[tuple[int, str]]:
    """Cut a part of the text into columns, each with its position."""
    pieces = []
    for piece in text[start:end].split("|"):
        pieces.append((start, piece))
        start += len(piece) + 1
    return pieces


def _read(text: str, pieces: Sequence[tuple[int, str]], read: Callable[[str], _T]) -> tuple[_T, ...]:
    """Read every piece; errors point into the whole text."""
    values = []
    for position, piece in pieces:
        try:
            values.append(read(piece))
        except SortSchemaError as error:
            raise SortSchemaError(text, position + error.position, error.problem) from None
    return tuple(values)


def _sort_column(text: str) -> SortColumn:
    if text.endswith(_DIRECTIONS):
        return SortColumn(text[:-1], Direction(text[-1]))
    return SortColumn(text, _default_direction(text))


def _metadata_column(text: str) -> str:
    if text.endswith(_DIRECTIONS):
        problem = f"found the direction {text[-1]!r}, expected none: columns after '&' do not sort"
        raise SortSchemaError(text, len(text) - 1, problem)
    return _check_name(text, "column name")


def _schema_name(text: str) -> str:
    return _check_name(text, "schema name")


def _check_name(name: str, what: str) -> str:
    """Return the name, or raise an error that points at its first bad character."""
    if not name or not isinstance(name, str):
        raise SortSchemaError(str(name), 0, f"found {name!r}, expected a {what} that is not empty")
    for position, character in enumerate(name):
        at_edge = position in (0, len(name) - 1)
        if character in _RESERVED:
            raise SortSchemaError(name, position, f"found {character!r}, expected none of {_RESERVED} in a {what}")
        if unicodedata.category(character) in _UNPRINTABLE:
            problem = f"found the control character {character!r}, expected none in a {what}"
            raise SortSchemaError(name, position, problem)
        if at_edge and character.isspace():
            raise SortSchemaError(name, position, f"found white space at the edge of a {what}, expected none")
    return name


def _check_duplicates(names: Sequence[str], positions: Sequence[int], text: str) -> None:
    seen: set[str] = set()
    for name, position in zip(names, positions, strict=True):
        if name in seen:
            raise SortSchemaError(text, position, f"found column {name!r} a second time, expected it once")
        seen.add(name)


def _default_direction(name: str) -> Direction:
    return Direction.DESCENDING if name == "timestamp" else Direction.ASCENDING


def _is_tuple_of(kind: type, values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, kind) for value in values)

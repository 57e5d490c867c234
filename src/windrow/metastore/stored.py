"""Reading what rows of the metastore hold: a value that cannot be read is damage, and is named with its place."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import pyarrow as pa

from windrow.errors import Damaged

__all__ = ["REBUILD", "UNREADABLE", "damaged", "in_pieces", "stored"]

T = TypeVar("T")

_IDS_AT_ONCE = 500

REBUILD = (
    "restore a backup of the metastore, or move it away and run windrow check --repair, which "
    "makes every table again from its Delta log and its files"
)

UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    OSError,
    RecursionError,
    pa.ArrowException,
)
"""What reading a damaged value may raise."""


def stored(table: str, row: Any, column: str, read: Callable[[Any], T], value: Any) -> T:
    """Return a stored value as it is read, or raise Damaged with its table, row and column."""
    try:
        return read(value)
    except UNREADABLE as error:
        raise damaged(table, row, column, error) from error


def damaged(table: str, row: Any, column: str, error: Exception | str) -> Damaged:
    """Return the error for a value that cannot be read."""
    what = str(error).partition("\n")[0] or type(error).__name__
    return Damaged(f"the metastore is damaged: {table}, row {row!r}, column {column}: {what}; {REBUILD}")


def in_pieces(ids: Collection[str]) -> list[list[str]]:
    """Cut ids, in order, into lists that a statement takes."""
    listed = sorted(ids)
    return [listed[start : start + _IDS_AT_ONCE] for start in range(0, len(listed), _IDS_AT_ONCE)]

"""What QuestDB notes about its columns in a Parquet file: JSON under the key "questdb" of the key-value metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from windrow.errors import Damaged, Incompatible
from windrow.sidecar import layout, types

KEY = "questdb"
_VERSION = 1
_LOCAL_KEY_IS_GLOBAL = 1


class ColumnNote(NamedTuple):
    """What is noted about one column."""

    column_type: int
    local_key_is_global: bool
    is_ascii: bool
    id: int | None

    @property
    def designated(self) -> bool:
        """Whether the column is the designated timestamp."""
        return bool(self.column_type & types.DESIGNATED)

    @property
    def descending(self) -> bool:
        """Whether the designated timestamp is in descending order."""
        return bool(self.column_type & types.DESIGNATED_DESCENDING)


class Notes(NamedTuple):
    """All that QuestDB notes about a file, for what a sidecar has a place."""

    columns: tuple[ColumnNote, ...]
    squash_tracker: int
    seq_txn: int

    @property
    def designated(self) -> int | None:
        """The position of the first designated timestamp."""
        return next((i for i, column in enumerate(self.columns) if column.designated), None)


def read_notes(key_value: Mapping[str, str | None], column_count: int, name: str) -> Notes | None:
    """The notes in a file's key-value metadata; `None` for a file that QuestDB did not write."""
    text = key_value.get(KEY)
    if text is None:
        return None
    try:
        noted = json.loads(text)
        version = noted["version"]
        if version == _VERSION:
            notes = _notes(noted)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"{name}: key-value metadata {KEY!r}: {error!r}; write the file again or drop the key") from error
    if version != _VERSION:
        raise Incompatible(f"{name}: key-value metadata {KEY!r} has version {version!r}; this Windrow reads {_VERSION}")
    if len(notes.columns) != column_count:
        problem = f"it describes {len(notes.columns)} columns, the file has {column_count}"
        raise Damaged(f"{name}: key-value metadata {KEY!r}: {problem}; write the file again, or drop the key")
    return notes


def _notes(noted: dict[str, Any]) -> Notes:
    columns = tuple(_column(column) for column in noted["schema"])
    return Notes(columns, _i64(noted.get("squash_tracker")), _i64(noted.get("seq_txn")))


def _column(noted: dict[str, Any]) -> ColumnNote:
    column_type, style = noted["column_type"], noted.get("format")
    types.Tag(column_type & types.TAG_MASK)
    if style not in (None, _LOCAL_KEY_IS_GLOBAL):
        raise ValueError(f"column format {style}")
    position = noted.get("id")
    return ColumnNote(
        _integer(column_type, 31),
        style == _LOCAL_KEY_IS_GLOBAL,
        noted.get("ascii") is True,
        None if position is None else _integer(position, 31),
    )


def _i64(value: object) -> int:
    return layout.NONE if value is None else _integer(value, 63)


def _integer(value: object, bits: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**bits) <= value < 2**bits:
        raise ValueError(f"{value!r} is no {bits + 1}-bit number")
    return value

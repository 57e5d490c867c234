"""QuestDB's notes in the key-value metadata: read when they are there and whole, refused when they are not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from windrow.errors import Damaged, Incompatible
from windrow.sidecar.questdb_key import ColumnNote, Notes, read_notes


def notes(count: int = 1, **content: Any) -> Notes | None:
    return read_notes(
        {"questdb": json.dumps({"version": 1, "schema": [{"column_type": 5}] * count, **content})}, 1, "f"
    )


@pytest.mark.parametrize("key_value", [{}, {"questdb": None}, {"other": "{}"}])
def test_a_file_without_notes(key_value: dict[str, str | None]) -> None:
    assert read_notes(key_value, 1, "f") is None


def test_what_is_not_noted_has_a_default() -> None:
    assert notes() == Notes((ColumnNote(5, False, False, None),), -1, -1)


def test_fields_that_nobody_knows_are_passed_over() -> None:
    assert notes(unheard_of=[1], unused_bytes=9) == notes()


@pytest.mark.parametrize("version", [0, 2, "1"])
def test_another_version_is_refused(version: object) -> None:
    with pytest.raises(Incompatible, match="version"):
        notes(version=version)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "1",
        "null",
        "{}",
        '{"version": 1}',
        '{"version": 1, "schema": 5}',
        '{"version": 1, "schema": [5]}',
        '{"version": 1, "schema": [{}]}',
        '{"version": 1, "schema": [{"column_type": "5"}]}',
        '{"version": 1, "schema": [{"column_type": 5.5}]}',
        '{"version": 1, "schema": [{"column_type": 0}]}',
        '{"version": 1, "schema": [{"column_type": 21}]}',
        '{"version": 1, "schema": [{"column_type": 4294967301}]}',
        '{"version": 1, "schema": [{"column_type": 5, "format": 2}]}',
        '{"version": 1, "schema": [{"column_type": 5, "id": 9999999999}]}',
        '{"version": 1, "schema": [{"column_type": 5}], "seq_txn": "x"}',
        '{"version": 1, "schema": [{"column_type": 5}], "squash_tracker": 9223372036854775808}',
        "[" * 100_000,
    ],
)
def test_notes_that_are_not_whole_are_refused(text: str) -> None:
    with pytest.raises(Damaged, match="'questdb'"):
        read_notes({"questdb": text}, 1, "f")


def test_notes_about_other_columns_are_refused() -> None:
    with pytest.raises(Damaged, match="3 columns, the file has 1"):
        notes(count=3)

"""Sizes, counts and times as people read them, in tables and in lines."""

from __future__ import annotations

import pytest

from windrow.cli.text import fields, in_units, literal, table


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("rows", 1234567, "1,234,567"),
        ("size_bytes", 300_000, "293.0 KiB"),
        ("bytes", 2048, "2.0 KiB"),
        ("retired_bytes", 0, "0 B"),
        ("bytes_read", 5 * 2**30, "5.0 GiB"),
        ("grace_seconds", 86400, "1d"),
        ("start", 1700000000, "1700000000"),
        ("compaction_start_time", 1700000000, "1700000000"),
        ("version", 1234, "1234"),
        ("window", 900, "15m"),
        ("window", "2024-01-01T00:00:00Z/PT15M", "2024-01-01T00:00:00Z/PT15M"),
        ("policy.maturation_period", 172800, "2d"),
        ("created_at", "2024-01-01T10:00:00.123456+00:00", "2024-01-01 10:00:00Z"),
        ("tags", ["a", "b"], "a, b"),
        ("tags", [], "-"),
        ("tags", None, "-"),
        ("seconds", 0.25, "0.25"),
    ],
)
def test_a_field_is_written_in_its_unit(name, value, text):
    assert in_units(name, value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "NULL"), (1234567, "1234567"), ("-", "-"), ("a\nb", "a\\nb"), ("\x1b[31mred", "\\x1b[31mred"), ("ä", "ä")],
)
def test_a_value_of_the_user_stays_as_it_is_but_cannot_move_the_cursor(value, text):
    assert literal("rows", value) == text


def test_a_table_has_numbers_to_the_right_and_titles_without_units():
    rows = [{"key": "a", "size_bytes": 2048, "other": 1}, {"key": "longer", "size_bytes": None, "other": 2}]
    assert table(rows, ["key", "size_bytes"]).splitlines() == [
        "key        size",
        "------  -------",
        "a       2.0 KiB",
        "longer        -",
    ]


def test_a_table_of_wide_characters_stays_in_line():
    lines = table([{"a": "日本", "b": 1}, {"a": "x", "b": 2}], ["a", "b"], literal).splitlines()
    assert lines[2:] == ["日本  1", "x     2"]


def test_a_table_without_rows_still_has_its_head():
    assert table([], ["name", "rows"]).splitlines() == ["name  rows", "----  ----"]


@pytest.mark.parametrize("listed", [list, tuple])
def test_a_record_has_a_line_for_each_field_and_records_in_it_below(listed):
    columns, none = listed([{"name": "a", "field_id": 1}]), listed([])
    record = {"name": "m", "inner": {"retention": 3600}, "rows": 1000, "columns": columns, "none": none}
    assert fields(record).splitlines() == [
        "name  m",
        "rows  1,000",
        "none  -",
        "",
        "inner:",
        "  retention  1h",
        "",
        "columns:",
        "  name  field id",
        "  ----  --------",
        "  a            1",
    ]


def test_names_of_the_user_are_titles_as_they_are():
    rows = [{"size_bytes": 1, "wait_seconds": 2, "my_count": 3}]
    shown = table(rows, list(rows[0]), lambda _, value: str(value))
    assert shown.splitlines()[0].split() == ["size_bytes", "wait_seconds", "my_count"]

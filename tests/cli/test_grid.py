"""A grid fits the terminal that it is shown on."""

from __future__ import annotations

import pytest

from windrow.cli.grid import Grid

GRID = Grid(("one", "two", "three"), (("a" * 10, "b" * 10, "c" * 40), ("1", "2", "3")), (False, True, False))


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (64, ("one", "two", "three")),  # all of it: 10 + 2 + 10 + 2 + 40
        (63, ("one", "two", "three")),  # the last has room to be folded
        (48, ("one", "two", "three")),
        (47, ("one", "two")),
        (22, ("one", "two")),
        (21, ("one",)),
        (5, ("one",)),
    ],
)
def test_columns_are_left_out_from_the_right(width, titles):
    assert GRID.fitting(width).titles == titles


def test_a_narrow_terminal_says_what_is_left_out(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = GRID.on_terminal().splitlines()
    assert lines[0].split() == ["one", "two"]
    assert lines[-1] == "no room for three; --json has all"
    assert max(map(len, lines)) <= 40


def test_a_folded_column_loses_nothing(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    text = GRID.on_terminal()
    assert text.count("c") == 40
    assert max(map(len, text.splitlines())) <= 50


def test_an_empty_grid_says_so(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    assert Grid(("one",), (), (False,)).on_terminal().splitlines()[-1] == "no rows"


def test_square_brackets_are_no_markup(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    assert "[red]x[/red]" in Grid(("one",), (("[red]x[/red]",),), (False,)).on_terminal()


def test_plain_lines_are_whole_whatever_the_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    assert GRID.plain().splitlines()[2] == f"{'a' * 10}  {'b' * 10}  {'c' * 40}"

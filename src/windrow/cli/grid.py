"""A grid of text: columns under titles, numbers to the right, as plain lines or for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Grid"]

_GAP = "  "
_ENOUGH_TO_FOLD = 24


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells that are text already."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    """Which columns are numbers."""

    @property
    def widths(self) -> list[int]:
        """How many places of a terminal each column takes."""
        return [max(map(_places, column)) for column in zip(self.titles, *self.rows, strict=True)]

    def first(self, count: int) -> Grid:
        """Return the first columns alone."""
        return Grid(self.titles[:count], tuple(row[:count] for row in self.rows), self.right[:count])

    def fitting(self, width: int) -> Grid:
        """Return as many columns as a line of this width holds; the last may be one that has room to be folded."""
        start = 0
        for count, column in enumerate(self.widths):
            room = width - start
            if column > room:
                return self.first(count if count and room < _ENOUGH_TO_FOLD else count + 1)
            start += column + len(_GAP)
        return self

    def plain(self) -> str:
        """Return lines for a pipe or a file: every column, whole."""
        widths = self.widths
        rule = tuple("-" * width for width in widths)
        return "\n".join(self._line(row, widths) for row in (self.titles, rule, *self.rows))

    def on_terminal(self) -> str:
        """Return lines for the terminal that stdout is: the columns that fit, and the names of the others."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console(highlight=False)
        shown = self.fitting(console.width)
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, len(_GAP) - 1, 0, 0))
        for place, (title, right) in enumerate(zip(shown.titles, shown.right, strict=True), 1):
            last = place == len(shown.titles)
            table.add_column(Text(title), justify="right" if right else "left", overflow="fold", no_wrap=not last)
        for row in shown.rows:
            table.add_row(*map(Text, row))
        with console.capture() as captured:
            console.print(table)
            if len(shown.titles) < len(self.titles):
                hidden = ", ".join(self.titles[len(shown.titles) :])
                console.print(Text(f"no room for {hidden}; --json has all", style="dim"))
            if not self.rows:
                console.print(Text("no rows", style="dim"))
        return captured.get().rstrip("\n")

    def _line(self, row: Sequence[str], widths: list[int]) -> str:
        def padded(cell: str, width: int, right: bool) -> str:  # noqa: FBT001
            spaces = " " * (width - _places(cell))
            return spaces + cell if right else cell + spaces

        return _GAP.join(padded(*each) for each in zip(row, widths, self.right, strict=True)).rstrip()


def _places(text: str) -> int:
    """How many places of a terminal a text takes; plain letters take one each, and need no library to say so."""
    if text.isascii() and text.isprintable():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)

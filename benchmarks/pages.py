"""Figures in documents: a part of a page that a benchmark writes, between two marks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["DOCS", "markdown_table", "write_figures"]

DOCS = Path(__file__).parents[1] / "docs"


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table; the keys of the first one are its head.

    >>> print(markdown_table([{"query": "Q1", "CPU ms": 12.34}]))
    | query | CPU ms |
    |---|---|
    | Q1 | 12.3 |
    """
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([_cell(row.get(name)) for name in names] for row in rows)]
    return "\n".join(
        ["| " + " | ".join(lines[0]) + " |", "|" + "|".join(lines[1]) + "|"]
        + ["| " + " | ".join(line) + " |" for line in lines[2:]]
    )


def write_figures(page: Path, name: str, text: str) -> None:
    """Put a text where a page has the marks of these figures: `<!-- figures: NAME -->` and `<!-- end -->`."""
    found = page.read_text(encoding="utf-8")
    own = r"(?:(?!<!-- figures: ).)*?"  # a mark without an end must not take the next figures with it
    marks = re.compile(rf"(<!-- figures: {re.escape(name)} -->\n){own}(<!-- end -->)", re.DOTALL)
    if not marks.search(found):
        raise ValueError(f"{page.name}: it has no place for figures of {name!r}")
    page.write_text(marks.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", found, count=1), encoding="utf-8")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)

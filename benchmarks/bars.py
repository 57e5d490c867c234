"""Small bar plots as SVG text, for documents, without a plotting library."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["bar_plot"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 900, 200, 60, 34, 40
_COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8d5a97", "#b08900")
_TICKS = 4
_FONT = 'font-family="sans-serif" font-size="12"'

Bars = Mapping[str, Sequence[float | None]]
"""For each series the height of its bar in each group; None leaves it out."""


def bar_plot(groups: Sequence[str], panels: Mapping[str, Bars], *, line: float | None = None) -> str:
    """Draw panels one below the other, each with its title and a bar of each series in each group.

    `line` is a height that a dashed line marks in every panel.

    >>> bar_plot(["q01"], {"CPU seconds": {"first": [1.0], "second": [0.5]}}).startswith("<svg")
    True
    """
    total = len(panels) * (_HEIGHT + _TOP + _GAP) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {total}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{total}" fill="white"/>',
    ]
    for number, (title, bars) in enumerate(panels.items()):
        parts += _panel(title, groups, bars, number * (_HEIGHT + _TOP + _GAP) + _TOP, line)
    return "\n".join([*parts, "</svg>\n"])


def _panel(title: str, groups: Sequence[str], bars: Bars, top: float, line: float | None) -> list[str]:
    high = max([value for series in bars.values() for value in series if value is not None] + [line or 0.0]) or 1.0
    step = 10 ** math.floor(math.log10(high / _TICKS))
    tick = next(step * each for each in (1, 2, 2.5, 5, 10) if step * each * _TICKS >= high)
    width, bottom, scale = _WIDTH - _LEFT - 10, top + _HEIGHT, _HEIGHT / (tick * _TICKS)
    parts = [f'<text x="{_LEFT}" y="{top - 12}" font-weight="bold">{escape(title)}</text>']
    for number in range(_TICKS + 1):
        y = bottom - number * tick * scale
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number * tick:g}</text>')
    share = width / len(groups)
    for number, group in enumerate(groups):
        middle = _LEFT + share * (number + 0.5)
        parts.append(f'<text x="{middle:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{escape(group)}</text>')
    for number, (name, series) in enumerate(bars.items()):
        colour, thick = _COLOURS[number % len(_COLOURS)], share * 0.8 / len(bars)
        parts.append(f'<text x="{_LEFT + 330 + 140 * number}" y="{top - 12}" fill="{colour}">{escape(name)}</text>')
        for place, value in enumerate(series):
            if value is not None:
                x, tall = _LEFT + share * (place + 0.1) + thick * number, value * scale
                place_of = f'x="{x:.1f}" y="{bottom - tall:.1f}" width="{thick:.1f}" height="{tall:.1f}"'
                parts.append(f'<rect {place_of} fill="{colour}"/>')
    if line is not None:
        y = bottom - line * scale
        parts.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#333" stroke-dasharray="4"/>'
        )
    return parts

"""Small line plots as SVG text, for documents, without a plotting library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["line_plot"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 720, 190, 60, 30, 46
_COLOURS = ("#1b6ca8", "#c8553d", "#588157", "#8d5a97", "#b08900")
_TICKS = 4

Series = Sequence[tuple[float, float]]


def line_plot(panels: Mapping[str, Mapping[str, Series]], x_title: str) -> str:
    """Draw panels one below the other, each with its title and its named lines, over one common axis.

    >>> line_plot({"files": {"closed": [(0, 1), (1, 2)]}}, "hours").startswith("<svg")
    True
    """
    points = [point for lines in panels.values() for series in lines.values() for point in series]
    high_x = max((x for x, _ in points), default=1.0) or 1.0
    total = len(panels) * (_HEIGHT + _TOP + _GAP) + 10
    font = 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {total}" {font}>',
        f'<rect width="{_WIDTH}" height="{total}" fill="white"/>',
    ]
    for number, (title, lines) in enumerate(panels.items()):
        parts += _panel(title, lines, number * (_HEIGHT + _TOP + _GAP) + _TOP, high_x, x_title)
    return "\n".join([*parts, "</svg>\n"])


def _panel(title: str, lines: Mapping[str, Series], top: float, high_x: float, x_title: str) -> list[str]:
    width = _WIDTH - _LEFT - 20
    high_y = max((y for series in lines.values() for _, y in series), default=1.0) or 1.0

    def place(x: float, y: float) -> str:
        return f"{_LEFT + width * x / high_x:.1f},{top + _HEIGHT * (1 - y / high_y):.1f}"

    parts = [f'<text x="{_LEFT}" y="{top - 10}" font-weight="bold">{escape(title)}</text>']
    for tick in range(_TICKS + 1):
        share = tick / _TICKS
        y, x = top + _HEIGHT * (1 - share), _LEFT + width * share
        parts += [
            f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{high_y * share:.3g}</text>',
            f'<text x="{x:.1f}" y="{top + _HEIGHT + 16}" text-anchor="middle">{high_x * share:.3g}</text>',
        ]
    parts.append(f'<text x="{_LEFT + width}" y="{top + _HEIGHT + 32}" text-anchor="end">{escape(x_title)}</text>')
    for number, (name, series) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(place(x, y) for x, y in series)
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<text x="{_LEFT + 220 + 150 * number}" y="{top - 10}" fill="{colour}">{escape(name)}</text>',
        ]
    return parts

"""Why a query costs what it costs: for each table that it names, the funnel from all windows down to the bytes read.

An explanation prints as text, gives plain values by `to_dict`, and draws itself by `svg`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from windrow.engines.estimates import JoinEstimates, estimate_lines
from windrow.model.units import format_bytes, format_units
from windrow.planning.synopses import StatisticsUse

__all__ = ["Explanation", "FunnelStep", "Reads", "TableFunnel"]

_BAR, _LEFT, _LINE = 320, 250, 22


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """What one step of planning was asked about, and what it left."""

    step: str
    units: str
    asked: int
    kept: int


@dataclass(frozen=True, slots=True)
class Reads:
    """What was read while the query ran."""

    reads: int
    """Reads that DuckDB asked for."""
    bytes: int
    requests: int
    """Reads that went to a store, or to the disk."""
    cache_hits: int


@dataclass(frozen=True, slots=True)
class TableFunnel:
    """One table, or file, of a query."""

    name: str
    columns: tuple[str, ...]
    why: str
    """Why what is left has to be read."""
    steps: tuple[FunnelStep, ...]
    files: int
    rows: int
    """The most rows that can come out of it: those of the row groups and granules that are left."""
    bytes: int
    source: str
    """Where the rows come from: one of the words of `SourceKind`."""
    from_metadata: bool
    """Whether nothing has to be read."""
    read: Reads | None = None
    """What was read, where the query was run."""
    statistics: tuple[StatisticsUse, ...] = ()
    """For each column of its conditions, which statistics there were, in the row groups that these judged."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query reads, and why; with `analyze` also what it read."""

    query: str
    tables: tuple[TableFunnel, ...]
    planning_ms: float
    plan: str
    """The plan of DuckDB, with its estimates of rows; where the query was run, with the rows that there were."""
    rows: int | None = None
    """Rows of the answer, where the query was run."""
    running_ms: float | None = None
    joins: tuple[JoinEstimates, ...] = ()
    """The groups of inner joins whose rows can be estimated."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.funnel}\n\n{self.plan.rstrip()}"

    @property
    def funnel(self) -> str:
        """The text without the plan of DuckDB."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"planned in {self.planning_ms:.1f} ms"
        if self.running_ms is not None:
            yield f"run in {self.running_ms:.1f} ms; the answer has {self.rows:,} row{'' if self.rows == 1 else 's'}"
        for table in self.tables:
            yield from _table_lines(table)
        for group in self.joins:
            yield from estimate_lines(group)

    def svg(self) -> str:
        """Draw the funnels: a bar for each step, as long as what it left, on a scale of powers of ten."""
        rows: list[str] = []
        height = 10
        for table in self.tables:
            rows.append(_text(10, height + 14, f"{table.name}: {table.why}", "bold"))
            height += _LINE
            for step in table.steps:
                rows += _bars(step, height)
                height += _LINE
            height += _LINE // 2
        width = _LEFT + _BAR + 220
        style = "<style>text{font:12px sans-serif}.bold{font-weight:bold}</style>"
        shape = f'width="{width}" height="{height + 10}" viewBox="0 0 {width} {height + 10}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>{style}{"".join(rows)}</svg>'


def _table_lines(table: TableFunnel) -> Iterator[str]:
    yield ""
    yield f"{table.name} ({', '.join(table.columns)})"
    yield f"  {table.why}"
    width = max((len(step.step) for step in table.steps), default=0)
    for step in table.steps:
        yield f"  {step.step:<{width}}  {_counted(step)}"
    yield from map(_statistics_line, table.statistics)
    yield f"  source: {table.source}"
    yield f"  to read: {table.files:,} files, at most {table.rows:,} rows, {format_bytes(table.bytes)}"
    if table.read is not None:
        read = table.read
        yield (
            f"  read: {format_bytes(read.bytes)} in {read.reads:,} reads; {read.requests:,} requests, "
            f"{read.cache_hits:,} cache hits"
        )


def _statistics_line(use: StatisticsUse) -> str:
    sources = f"by the writer in {use.written:,}, learnt in {use.learnt:,}, missing in {use.missing:,}"
    line = f"  statistics of {use.column}: {sources} of {format_units(use.row_groups, 'row groups')}"
    return f"{line} ({use.files_missing:,} of {format_units(use.files, 'files')})" if use.missing else line


def _counted(step: FunnelStep) -> str:
    kept = format_bytes(step.kept) if step.units == "bytes" else f"{step.kept:,}"
    return f"{kept:>14} of {format_units(step.asked, step.units)}"


def _bars(step: FunnelStep, top: int) -> list[str]:
    asked, kept = _length(step.asked, step.asked), _length(step.kept, step.asked)
    label = _counted(step).lstrip()
    return [
        _text(20, top + 14, step.step),
        f'<rect x="{_LEFT}" y="{top + 2}" width="{asked}" height="{_LINE - 6}" fill="#d9e2ec"/>',
        f'<rect x="{_LEFT}" y="{top + 2}" width="{kept}" height="{_LINE - 6}" fill="#2f6f9f"/>',
        _text(_LEFT + _BAR + 10, top + 14, label),
    ]


def _length(count: int, most: int) -> int:
    return round(_BAR * math.log10(1 + count) / math.log10(1 + most)) if most else 0


def _text(x: int, y: int, text: str, kind: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(text)}</text>'

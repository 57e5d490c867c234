"""The cardinality of a table, as rows for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windrow.metastore import Metastore, TableRecord
from windrow.model.rows import Rows
from windrow.model.window import Window
from windrow.statistics.cardinality import EXPLODING, CardinalityOfTable, SeriesOfWindow, cardinality_of
from windrow.statistics.table_statistics import DistinctCount

__all__ = [
    "Cardinality",
    "ColumnCardinality",
    "MetricCardinality",
    "PairCardinality",
    "WindowCardinality",
    "cardinality_report",
]


@dataclass(frozen=True, slots=True)
class ColumnCardinality:
    """The distinct values of one column."""

    column: str
    is_label: bool
    distinct: int | None
    """None where nothing is on record."""
    error: float | None
    """The relative standard error; 0 for an exact count, None for one of some rows only."""
    growth: float | None
    """Of a label how its values grow with the series over time: 1 is as much as these, 0 not at all."""
    explodes: bool


@dataclass(frozen=True, slots=True)
class PairCardinality:
    """The distinct values that two labels have together."""

    labels: str
    distinct: int
    error: float | None


@dataclass(frozen=True, slots=True)
class MetricCardinality:
    """The series of one metric."""

    metric: str
    series: int
    error: float | None


@dataclass(frozen=True, slots=True)
class WindowCardinality:
    """The series of one window."""

    window: str
    rows: int
    series: int
    error: float | None
    new: int
    """Series that no earlier window has."""
    new_error: int
    """The standard error of that, in series."""


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many series a table has, and where they come from."""

    table: str
    version: int
    rows: int
    series: int | None
    """None where nothing is on record."""
    error: float | None
    """The relative standard error; 0 for an exact count, None for one of some rows only."""
    exploding: str | None
    """The label whose distinct values grow with the series."""
    missing: tuple[str, ...]
    """Of what not all rows are counted."""
    hint: str | None
    """How to learn what is missing."""
    columns: Rows[ColumnCardinality]
    pairs: Rows[PairCardinality]
    """Values that two labels have together, the most first."""
    metrics: Rows[MetricCardinality]
    """Series of each metric, the most first."""
    windows: Rows[WindowCardinality]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return self._summary() | {name: rows.to_dict() for name, rows in self._tables().items()}

    def __repr__(self) -> str:
        summary = "\n".join(f"{name:<9}  {_text(value)}" for name, value in self._summary().items())
        tables = [f"{name}\n{rows}" for name, rows in self._tables().items() if rows]
        return "\n\n".join([summary, *tables])

    def _summary(self) -> dict[str, Any]:
        names = ("table", "version", "rows", "series", "error", "exploding", "missing", "hint")
        return {name: getattr(self, name) for name in names}

    def _tables(self) -> Mapping[str, Rows[Any]]:
        return {"columns": self.columns, "pairs": self.pairs, "metrics": self.metrics, "windows": self.windows}


def cardinality_report(metastore: Metastore, table: TableRecord, version: int) -> Cardinality:
    """What is on record of the cardinality of a table."""
    found = cardinality_of(metastore, table, version)
    unread = (*found.missing, *(() if found.has_labels else ("labels and series",)))
    missing = (*unread, *(f"{name} (values of an earlier type)" for name in found.retyped))
    series, error = _shown(found.series)
    return Cardinality(
        table.name,
        version,
        found.rows,
        series,
        error,
        found.exploding,
        missing,
        _hint(table.name, found) if unread else None,
        Rows(ColumnCardinality, tuple(_column_row(found, name) for name in found.columns)),
        Rows(PairCardinality, tuple(_pair_row(*pair, count) for pair, count in found.pairs.items())),
        Rows(MetricCardinality, tuple(MetricCardinality(*_named(*each)) for each in found.metrics.items())),
        Rows(WindowCardinality, tuple(map(_window_row, found.windows))),
    )


def _hint(name: str, found: CardinalityOfTable) -> str:
    columns = " ".join(found.missing) if found.has_labels else ""
    return f"windrow analyze {name} {columns}".rstrip() + " reads what is missing, once"


def _shown(count: DistinctCount | None) -> tuple[int | None, float | None]:
    return (None, None) if count is None else (round(count.estimate), _error(count))


def _error(count: DistinctCount) -> float | None:
    return None if count.is_vague else round(count.error, 4)


def _named(name: str, count: DistinctCount) -> tuple[str, int, float | None]:
    return name, round(count.estimate), _error(count)


def _column_row(found: CardinalityOfTable, name: str) -> ColumnCardinality:
    growth = found.growth.get(name)
    shown = None if growth is None else round(growth, 2)
    explodes = growth is not None and growth >= EXPLODING
    return ColumnCardinality(name, name in found.labels, *_shown(found.columns[name]), shown, explodes)


def _pair_row(one: str, other: str, count: DistinctCount) -> PairCardinality:
    return PairCardinality(*_named(f"{one}, {other}", count))


def _window_row(each: SeriesOfWindow) -> WindowCardinality:
    series = round(each.series.estimate), _error(each.series)
    return WindowCardinality(_window_text(each.window), each.rows, *series, round(each.new), round(each.new_error))


def _window_text(window: Window | None) -> str:
    return "none (registered)" if window is None else str(window)


def _text(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)

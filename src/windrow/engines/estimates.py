"""How many rows joins were taken to have, and how many they had: a part of an explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

__all__ = ["JoinEstimates", "RowEstimate", "estimate_lines"]


@dataclass(frozen=True, slots=True)
class RowEstimate:
    """The rows of one relation that its conditions leave, or of a join."""

    relations: tuple[str, ...]
    """By the names that the query has for them."""
    estimated: float
    is_vague: bool
    """Whether a guess took part; a vague estimate changes no order."""
    expected_by_duckdb: float | None
    actual: int | None = None
    """Counted, where the query was run."""
    q_error: float | None = None
    """The factor between estimated and actual rows, 1 at the least."""


@dataclass(frozen=True, slots=True)
class JoinEstimates:
    """One group of relations that inner joins connect, in the order in which they are joined."""

    is_reordered: bool
    """Whether DuckDB was made to take another order than its own."""
    factor: float | None
    """By our estimates, the cost of DuckDB's order in costs of this one; None where it takes its own."""
    scans: tuple[RowEstimate, ...]
    joins: tuple[RowEstimate, ...]
    """Inner ones first."""

    @property
    def most_q_error(self) -> float | None:
        """The greatest error of a join; None where nothing was counted."""
        errors = [each.q_error for each in self.joins if each.q_error is not None]
        return max(errors, default=None)


def estimate_lines(group: JoinEstimates) -> Iterator[str]:
    """Yield an explanation's lines for one group."""
    yield ""
    yield (
        f"joined in another order than DuckDB's own, which would cost {group.factor:,.1f} times as much"
        if group.factor is not None
        else "joined in DuckDB's own order"
    )
    rows = [("rows", "estimated", "DuckDB's", "actual", "q-error")]
    rows += [_cells(each) for each in (*group.scans, *group.joins)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for name, *numbers in rows:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
        yield f"  {name.ljust(widths[0])}  {'  '.join(cells)}".rstrip()


def _cells(each: RowEstimate) -> tuple[str, str, str, str, str]:
    name = ", ".join(PurePath(relation).stem for relation in each.relations)
    return (
        f"join of {name}" if len(each.relations) > 1 else name,
        f"{'about ' if each.is_vague else ''}{each.estimated:,.0f}",
        "" if each.expected_by_duckdb is None else f"{each.expected_by_duckdb:,.0f}",
        "" if each.actual is None else f"{each.actual:,}",
        "" if each.q_error is None else f"{each.q_error:,.1f}",
    )

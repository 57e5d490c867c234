"""Splits that stay apart from newer ones, since the table changed: they are merged among themselves alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from windrow.compaction.planner import Decision
from windrow.metastore import TableRecord
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.units import format_seconds
from windrow.model.window import Window

__all__ = ["Apart", "Former"]

_REASONS = {
    "sort": "a merge keeps one sort order, so",
    "window": "a split lies in one window of one duration, so",
    "schema epoch": "a column changed its type in between, so",
}


@dataclass(frozen=True, slots=True)
class Apart:
    """Splits that were written under another setting."""

    setting: str
    """`sort`, `window` or `schema epoch`."""
    then: str
    now: str
    splits: int
    windows: int
    why: str


@dataclass(slots=True)
class Former:
    """Counts what was written under former settings of a table, decision by decision."""

    table: TableRecord
    _splits: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _windows: dict[tuple[str, str, str], set[Window]] = field(default_factory=lambda: defaultdict(set))

    def count(self, decision: Decision) -> None:
        """Add the splits of a decision where their scope is not the one that is written to now."""
        if decision.window is None:
            return
        for change in _changes(decision.scope, self.table):
            self._splits[change] += decision.count
            self._windows[change].add(decision.window)

    def apart(self) -> tuple[Apart, ...]:
        """Return what was counted, most splits first."""
        return tuple(
            Apart(
                *change,
                splits,
                len(self._windows[change]),
                f"{_REASONS[change[0]]} these splits are merged among themselves, never with newer ones; they go with "
                "the table's retention, or when their rows are ingested into a new table",
            )
            for change, splits in self._splits.most_common()
        )


def _changes(scope: CompactionScope, table: TableRecord) -> list[tuple[str, str, str]]:
    """The settings by which a scope differs from what is written now, with both values."""
    settings = table.settings
    parts = [
        ("sort", scope.sort_schema, settings.sort.canonical()),
        ("window", format_seconds(scope.window_duration), format_seconds(_duration_now(scope, settings))),
        ("schema epoch", str(scope.doc_mapping_uid), str(table.schema_epoch)),
    ]
    return [part for part in parts if part[1] != part[2]]


def _duration_now(scope: CompactionScope, settings: TableSettings) -> int:
    """The duration that windows have now in place of that of a scope; the same, where they are gathered or are that."""
    then, cold = scope.window_duration, settings.gathers_into
    return then if cold is not None and cold % then == 0 else settings.window

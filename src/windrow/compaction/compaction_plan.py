"""A plan for people: what would be merged in each window, what is left and why, and what it would cost and gain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from windrow.compaction.apart import Apart, Former
from windrow.compaction.forecast import Forecast, Rates
from windrow.compaction.planner import Decision, PlannedMerge, Planner
from windrow.model.units import format_bytes, format_count

__all__ = ["CompactionPlan", "DecisionRow", "WindowPlan", "make_plan"]

_MOST_SHOWN = 10
"""Windows in the text of a plan."""


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision: splits that would be merged, or left, and why."""

    window: str
    action: str
    splits: int
    outputs: int
    size_bytes: int
    why: str
    source: str
    partition: int
    sort: str
    """What the splits are sorted by; empty for registered files."""
    split_ids: tuple[str, ...]
    """Empty when a whole group is left for one reason."""

    @classmethod
    def of(cls, decision: Decision) -> DecisionRow:
        """Return a decision of the planner as a row."""
        return cls(
            window="none (registered)" if decision.window is None else str(decision.window),
            action="merge" if isinstance(decision, PlannedMerge) else "leave",
            splits=decision.count,
            outputs=decision.outputs,
            size_bytes=decision.size_bytes,
            why=decision.why,
            source=decision.scope.source_id,
            partition=decision.scope.partition_id,
            sort=decision.scope.sort_schema,
            split_ids=decision.split_ids,
        )


@dataclass(slots=True)
class WindowPlan:
    """What would happen in one window."""

    window: str
    merges: int = 0
    splits: int = 0
    splits_after: int = 0
    size_bytes: int = 0
    """Bytes that would be read."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What a run would do now; `decisions()` asks again and says it split by split."""

    table: str
    merges: int
    forecast: Forecast
    windows: tuple[WindowPlan, ...]
    """The windows in which something would be merged, in the order of work."""
    left: dict[str, int]
    """How many splits are left, by reason."""
    apart: tuple[Apart, ...]
    """Splits of former settings, which are never merged with newer ones."""
    planner: Planner = field(repr=False, compare=False)

    def __repr__(self) -> str:
        forecast = self.forecast
        files = f"{format_count(forecast.files_before, 'file')} to {forecast.files_after:,}"
        cost = f"{format_bytes(forecast.bytes_read)} to read, about {forecast.seconds:.1f} s"
        lines = [f"CompactionPlan of {self.table}: {format_count(self.merges, 'merge')}, {files}, {cost}"]
        for each in self.windows[:_MOST_SHOWN]:
            splits = f"{format_count(each.splits, 'split')} to {each.splits_after:,}"
            lines.append(f"  {each.window}  {splits}, {format_bytes(each.size_bytes)}")
        if len(self.windows) > _MOST_SHOWN:
            lines.append(f"  and {format_count(len(self.windows) - _MOST_SHOWN, 'window')} more")
        lines += (f"  left: {format_count(count, 'split')}, {why}" for why, count in self.left.items())
        lines += (
            f"  apart: {format_count(each.splits, 'split')} of {each.setting} {each.then}, now {each.now}"
            for each in self.apart
        )
        return "\n".join(lines)

    def decisions(self) -> Iterator[DecisionRow]:
        """Yield every decision with its splits and its reason, streamed from the metastore."""
        return map(DecisionRow.of, self.planner.decisions())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "table": self.table,
            "merges": self.merges,
            "forecast": asdict(self.forecast),
            "windows": [asdict(window) for window in self.windows],
            "left": dict(self.left),
            "apart": [asdict(each) for each in self.apart],
        }


def make_plan(planner: Planner, rates: Rates) -> CompactionPlan:
    """Sum up what a planner decides; the memory it takes is that of the windows, not of the splits."""
    windows: dict[str, WindowPlan] = {}
    left: Counter[str] = Counter()
    former = Former(planner.table)
    for each in planner.decisions():
        former.count(each)
        decision = DecisionRow.of(each)
        if decision.action == "leave":
            left[decision.why] += decision.splits
            continue
        window = windows.setdefault(decision.window, WindowPlan(decision.window))
        window.merges += 1
        window.splits += decision.splits
        window.splits_after += decision.outputs
        window.size_bytes += decision.size_bytes
    inputs, outputs = (sum(getattr(one, name) for one in windows.values()) for name in ("splits", "splits_after"))
    merges, read = (sum(getattr(one, name) for one in windows.values()) for name in ("merges", "size_bytes"))
    return CompactionPlan(
        table=planner.table.name,
        merges=merges,
        forecast=Forecast.of(left.total() + inputs, inputs, outputs, merges, read, rates),
        windows=tuple(windows.values()),
        left=dict(left.most_common()),
        apart=former.apart(),
        planner=planner,
    )

"""What a run of compaction did, merge by merge and in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from windrow.compaction.planner import PlannedMerge
from windrow.metastore import RunRecord, RunState
from windrow.model.rows import like
from windrow.model.shown import ShownByField

__all__ = ["CompactionResult", "MergeOutcome", "Outcome", "Tally"]

MOST_PROBLEMS = 100
"""Problems that a run's row keeps; the result has all."""


class Outcome(StrEnum):
    """How a merge ended."""

    DONE = "done"
    SKIPPED = "skipped"
    """Another commit took an input first, or the run was cancelled: nothing changed."""
    FAILED = "failed"
    """It could not be merged or published; the inputs are visible as before."""


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """How one merge ended."""

    commit_id: str
    window: str
    outcome: Outcome
    splits_in: int
    splits_out: int
    bytes_in: int
    bytes_out: int
    why: str
    """Why it was merged, or why it was not."""
    seconds: float = 0.0
    bytes_new: int = 0
    """Bytes of the inputs that had never been merged."""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.window}: {self.why}"

    @classmethod
    def of(cls, merge: PlannedMerge, commit_id: str, outcome: Outcome, why: str, **more: Any) -> MergeOutcome:
        """Return how a planned merge ended."""
        new = sum(split.size_bytes for split in merge.inputs if not split.generation)
        plain = {"splits_out": 0, "bytes_out": 0, "bytes_new": new if outcome is Outcome.DONE else 0}
        return cls(
            commit_id=commit_id,
            window=str(merge.window),
            outcome=outcome,
            splits_in=len(merge.inputs),
            bytes_in=merge.size_bytes,
            why=why,
            **plain | more,
        )


@dataclass(slots=True)
class Tally:
    """Counts as a run goes."""

    record: RunRecord
    on_merge: Callable[[MergeOutcome], None] | None = None
    """Hears of every merge that ended."""
    problems: list[MergeOutcome] = field(default_factory=list)

    def count(self, merge: MergeOutcome) -> None:
        """Add a merge that ended."""
        self._add(merge)
        if self.on_merge is not None:
            self.on_merge(merge)

    def _add(self, merge: MergeOutcome) -> None:
        record = self.record
        if merge.outcome is not Outcome.DONE:
            self.problems.append(merge)
            name = str(merge.outcome)
            self.record = replace(record, **{name: getattr(record, name) + 1})
            return
        self.record = replace(
            record,
            done=record.done + 1,
            splits_in=record.splits_in + merge.splits_in,
            splits_out=record.splits_out + merge.splits_out,
            bytes_in=record.bytes_in + merge.bytes_in,
            bytes_out=record.bytes_out + merge.bytes_out,
            bytes_new=record.bytes_new + merge.bytes_new,
        )

    def ended(self, state: RunState, now: int) -> RunRecord:
        """Return the row of the run."""
        words = tuple(str(each) for each in self.problems[:MOST_PROBLEMS])
        return replace(self.record, state=state, ended_at=now, problems=words)


@dataclass(frozen=True, slots=True, repr=False)
class CompactionResult(ShownByField):
    """A run of compaction, counted; what was not merged is named with its reason."""

    table: str
    run_id: str
    state: str
    planned: int
    done: int
    skipped: int
    failed: int
    splits_in: int
    splits_out: int
    bytes_in: int
    bytes_out: int
    write_amplification: float | None
    seconds: float
    problems: tuple[MergeOutcome, ...] = ()

    @classmethod
    def of(cls, table: str, record: RunRecord, problems: list[MergeOutcome]) -> CompactionResult:
        """Return the result of a run that ended."""
        seconds = ((record.ended_at or record.started_at) - record.started_at) / 1e6
        return like(cls, record, table=table, state=str(record.state), seconds=seconds, problems=tuple(problems))

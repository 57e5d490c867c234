"""Some merges on their way: each is opened, merged, and published, tried again or given up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windrow.compaction.execution import Execute
from windrow.compaction.merge_report import MergeReport
from windrow.compaction.merge_task import Job, MergeTask
from windrow.compaction.outcomes import MergeOutcome, Outcome
from windrow.compaction.planner import PlannedMerge
from windrow.compaction.publish import Publisher
from windrow.errors import WindrowError
from windrow.metastore import CommitKind
from windrow.runners.leases import Leases

__all__ = ["Wave"]

_LOST = "its task ended without a report: the worker was lost; look at its log"
_CANCELLED = "the run was cancelled before it began"


@dataclass(slots=True)
class Wave:
    """Merges that are tried together."""

    publisher: Publisher
    task: MergeTask
    execute: Execute
    leases: Leases
    tell: Callable[[MergeOutcome], None]
    """Hears of every merge once, when it has ended."""
    cancelled: threading.Event
    waits: Sequence[float] = (1.0, 5.0)
    """Seconds before merges that failed for a reason other than bad input are tried again."""
    sleep: Callable[[float], None] = time.sleep
    _open: dict[str, Job] = field(default_factory=dict)
    """Merges that have not reported, by their commits."""
    _begun: dict[str, Job] = field(default_factory=dict)
    """The newest attempt at each merge that was begun and has not ended."""
    _again: dict[str, str] = field(default_factory=dict)
    """Why merges are to be tried again, by their commits."""

    def run(self, merges: Mapping[str, PlannedMerge]) -> None:
        """Try the merges, given by the ids of their commits."""
        try:
            for wait in (*self.waits, None):
                self._round(merges)
                merges = {commit_id: merges[commit_id] for commit_id in self._again}
                if not merges or wait is None or self.cancelled.is_set():
                    break
                self.sleep(wait)
        finally:
            for commit_id, job in self._begun.items():
                self.leases.drop(commit_id)
                self.publisher.give_up(job)
        for commit_id, why in self._again.items():
            self.tell(MergeOutcome.of(merges[commit_id], commit_id, Outcome.FAILED, why))

    def _round(self, merges: Mapping[str, PlannedMerge]) -> None:
        self._again = {}
        begun: set[str] = set()
        self.execute(self._opened(merges, begun), self.task, self._on_report)
        self._again.update(dict.fromkeys(self._open, _LOST))
        for commit_id in merges.keys() - begun:
            self.tell(MergeOutcome.of(merges[commit_id], commit_id, Outcome.SKIPPED, _CANCELLED))

    def _opened(self, merges: Mapping[str, PlannedMerge], begun: set[str]) -> Iterator[Job]:
        """Open a commit for each merge as it is wanted; an earlier attempt of it can no longer publish."""
        for commit_id, merge in merges.items():
            if self.cancelled.is_set():
                return
            begun.add(commit_id)
            try:
                record = self.publisher.metastore.open_commit(
                    self.publisher.table_id, CommitKind.COMPACT, commit_id=commit_id, lease=self.leases.seconds
                )
            except WindrowError as error:
                self._again[commit_id] = str(error)
                continue
            self._open[commit_id] = self._begun[commit_id] = job = Job(merge, commit_id, record.attempt)
            self.leases.hold(commit_id, record.attempt)
            yield job

    def _on_report(self, text: str) -> None:
        """Publish what was merged. Only the first report of the newest attempt counts; files of others are orphans."""
        report = MergeReport.from_text(text)
        job = self._open.get(report.commit_id)
        if job is None or job.attempt != report.attempt:
            return
        del self._open[job.commit_id]
        try:
            self._settle(job, report)
        except WindrowError as error:
            self._again[job.commit_id] = str(error)
        finally:
            self.leases.drop(job.commit_id)

    def _settle(self, job: Job, report: MergeReport) -> None:
        if report.problem is None:
            self._end(self.publisher.publish(job, report))
        elif report.retryable:
            self._again[job.commit_id] = report.problem
        else:
            self._end(self._refused(job, report, report.problem))

    def _end(self, outcome: MergeOutcome) -> None:
        del self._begun[outcome.commit_id]
        self.tell(outcome)

    def _refused(self, job: Job, report: MergeReport, problem: str) -> MergeOutcome:
        """Keep bad inputs away from further merges, unless they are gone since another commit replaced them."""
        visible = self.publisher.still_visible(job)
        if visible and report.culprits:
            self.publisher.metastore.quarantine(self.publisher.table_id, report.culprits)
            problem += f" (in quarantine now: {', '.join(sorted(report.culprits))})"
        self.publisher.give_up(job)
        outcome = Outcome.FAILED if visible else Outcome.SKIPPED
        why = problem if visible else f"another commit replaced an input meanwhile; {problem}"
        return MergeOutcome.of(job.merge, job.commit_id, outcome, why, seconds=report.seconds)

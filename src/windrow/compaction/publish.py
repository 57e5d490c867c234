"""Makes merges visible: one transaction replaces the inputs by the outputs, or nothing changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from windrow.compaction.merge_report import MergeReport
from windrow.compaction.merge_task import Job
from windrow.compaction.outcomes import MergeOutcome, Outcome
from windrow.errors import CommitUnknown, Conflict, LeaseExpired, MetastoreError, NotFound, WindrowError
from windrow.metastore import CommitState, Metastore
from windrow.model.invariants import require
from windrow.model.split import SplitMetadata
from windrow.statistics.inheritance import RowGroups, inherit

__all__ = ["Publisher"]

_log = logging.getLogger(__name__)


def _unknown(split: SplitMetadata) -> Sequence[int]:
    raise NotFound(f"{split.key}: its row groups are not known here")


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes the merges of one run."""

    metastore: Metastore
    table_id: str
    run_id: str
    rewrites_bound: int
    """How often a row is rewritten at most."""
    waits: tuple[float, ...] = (0.5, 2.0, 8.0)
    """Seconds to wait before a publish that the metastore did not answer is tried again."""
    sleep: Callable[[float], None] = time.sleep
    row_groups: RowGroups = _unknown
    """The rows of row groups, for the statistics of a merged split."""

    def publish(self, job: Job, report: MergeReport) -> MergeOutcome:
        """Publish a merge whose outputs are stored; inputs that are no longer visible discard it."""
        merge = job.merge
        try:
            require("TW-3", windows_in=[merge.window], windows_out=[split.window for split in report.splits])
            if merge.windows:
                require("CW-2", cold=merge.window, windows=merge.windows, scopes=[merge.scope])
            require("CS-1", scopes=[merge.scope, *(split.scope for split in report.splits)])
            self._until_answered(job, report)
        except Conflict as error:
            self.give_up(job)
            return MergeOutcome.of(merge, job.commit_id, Outcome.SKIPPED, str(error), seconds=report.seconds)
        except LeaseExpired:
            raise  # the merge may be tried again
        except WindrowError as error:
            self.give_up(job)
            return MergeOutcome.of(merge, job.commit_id, Outcome.FAILED, str(error), seconds=report.seconds)
        inherit(self.metastore, self.table_id, merge.splits(), report.splits, self.row_groups)
        return MergeOutcome.of(
            merge,
            job.commit_id,
            Outcome.DONE,
            merge.why,
            splits_out=len(report.splits),
            bytes_out=sum(split.size_bytes for split in report.splits),
            seconds=report.seconds,
        )

    def give_up(self, job: Job) -> None:
        """Abort the commit of a merge; one that is published after all stays so."""
        try:
            self.metastore.abort(job.commit_id, attempt=job.attempt)
        except (Conflict, LeaseExpired):
            return  # it is published, or another attempt has it
        except WindrowError as error:
            _log.warning("commit %s could not be aborted, its lease will run out: %s", job.commit_id, error)

    def still_visible(self, job: Job) -> bool:
        """Whether all inputs of a merge can still be seen; else another commit has taken them."""
        wanted = set(job.merge.split_ids)
        for window in job.merge.places:
            scope = replace(job.merge.scope, window_duration=window.duration)
            for _, page in self.metastore.candidates(self.table_id, window, scope=scope):
                wanted.difference_update(split.split_id for split in page)
        return not wanted

    def _until_answered(self, job: Job, report: MergeReport) -> None:
        for wait in (*self.waits, None):
            try:
                self._publish(job, report)
            except (MetastoreError, CommitUnknown) as error:
                if wait is None:
                    self._read_back(job, error)
                    return
                if not error.retryable:
                    raise
                self.sleep(wait)
            else:
                return

    def _publish(self, job: Job, report: MergeReport) -> None:
        """Publishing the same commit again changes nothing, so that an unknown outcome may be tried again."""
        self.metastore.publish(
            job.commit_id,
            attempt=job.attempt,
            add=report.splits,
            replace=job.merge.split_ids,
            summary={
                "run": self.run_id,
                "window": str(job.merge.window),
                "bytes_in": job.merge.size_bytes,
                "bytes_out": sum(split.size_bytes for split in report.splits),
                "seconds": round(report.seconds, 3),
                "why": job.merge.why,
                "rewrites": max((split.generation for split in report.splits), default=0),
                "rewrites_bound": self.rewrites_bound,
            },
        )

    def _read_back(self, job: Job, error: WindrowError) -> None:
        """The last word on a publish that was never answered."""
        try:
            if self.metastore.commit(job.commit_id).state is CommitState.PUBLISHED:
                return
        except WindrowError:
            pass
        raise error

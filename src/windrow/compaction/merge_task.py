"""The work of one task: merge what it is given, one merge after the other, and report how each ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windrow.compaction.merge_report import MergeReport
from windrow.compaction.planner import PlannedMerge
from windrow.compaction.probe import culprits, may_be_poisoned
from windrow.errors import InvariantViolation, NotFound, StorageError, WindrowError
from windrow.merging.merge import MergeOptions
from windrow.merging.splits import merge_splits
from windrow.model.settings import TableSettings, Verify
from windrow.model.split import SplitMetadata
from windrow.sidecar import Sidecar
from windrow.splits.writer import SplitName
from windrow.storage import ByteRange, Store, reach_store

__all__ = ["Job", "MergeTask"]


@dataclass(frozen=True, slots=True)
class Job:
    """A merge that a commit was opened for."""

    merge: PlannedMerge
    commit_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class MergeTask:
    """What every task of a run knows; plain values, so that it travels to any worker."""

    lake_url: str
    table: str
    settings: TableSettings
    created_at: int
    field_ids: Mapping[str, int]
    store_options: Mapping[str, str] = field(default_factory=dict)
    memory_budget: int = 512 * 2**20
    """Bytes that one merge takes."""
    verify: Verify | None = None
    requests: int = 16
    """How many requests a merge makes at once to open its inputs, where the store is slow to answer."""

    def report(self, jobs: Sequence[Job], task_attempt: int) -> Iterator[str]:
        """Do the merges, and yield how each ended as text; one that fails does not stop the others."""
        store = reach_store(self.lake_url, self.store_options)
        for job in jobs:
            yield self.run(store, job, task_attempt).to_text()

    def run(self, store: Store, job: Job, task_attempt: int) -> MergeReport:
        """Do one merge; whatever goes wrong is part of the report."""
        start = time.perf_counter()
        splits = job.merge.splits()
        try:
            merged = tuple(self._merge(store, job, splits, task_attempt))
        except Exception as error:
            return _failure(store, job, splits, error, time.perf_counter() - start)
        return MergeReport(job.commit_id, job.attempt, time.perf_counter() - start, merged)

    def row_groups(self, split: SplitMetadata) -> list[int]:
        """The rows of the row groups of a split that was merged, as its sidecar has them."""
        place = split.sidecar
        if place is None:
            raise NotFound(f"{split.key}: it has no sidecar; run windrow check {self.table} --repair")
        store = reach_store(self.lake_url, self.store_options)
        [data] = store.get_ranges(place.key, [ByteRange(place.offset, place.length)])
        return [int(rows) for rows in Sidecar.of(data, name=place.key, verify=False).row_counts]

    def _merge(
        self, store: Store, job: Job, splits: Sequence[SplitMetadata], task_attempt: int
    ) -> Sequence[SplitMetadata]:
        def name(number: int) -> SplitName:
            split_id = f"{job.commit_id}-{job.attempt}-{task_attempt}-{number}"
            return SplitName(self.table, split_id, job.commit_id, self.created_at)

        options = MergeOptions(outputs=job.merge.outputs, memory_budget=self.memory_budget, threads=self.requests)
        into = job.merge.window if job.merge.windows else None
        return merge_splits(
            store, splits, self.settings, name, options, field_ids=self.field_ids, verify=self.verify, gather_into=into
        )


def _failure(store: Store, job: Job, splits: Sequence[SplitMetadata], error: Exception, seconds: float) -> MergeReport:
    blamed = culprits(store, splits) if may_be_poisoned(error) else {}
    if not blamed and isinstance(error, InvariantViolation):
        # Each of them is fine alone: what they break, they break together.
        blamed = {split.split_id: f"a merge with {len(splits) - 1} others fails: {error}" for split in splits}
    is_ours = isinstance(error, WindrowError)
    return MergeReport(
        job.commit_id,
        job.attempt,
        seconds,
        problem=str(error) if is_ours else f"{type(error).__name__}: {error}",
        retryable=not blamed and (not is_ours or error.retryable or isinstance(error, StorageError)),  # type: ignore[attr-defined]
        culprits=blamed,
    )

"""A run of compaction from start to end: merges on a runner, published as results arrive, counted in a row."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from windrow.compaction.execution import Execute
from windrow.compaction.merge_task import MergeTask
from windrow.compaction.outcomes import CompactionResult, MergeOutcome, Tally
from windrow.compaction.planner import PlannedMerge
from windrow.compaction.publish import Publisher
from windrow.compaction.wave import Wave
from windrow.errors import WindrowError
from windrow.metastore import Metastore, RunRecord, RunState, TableRecord
from windrow.runners.leases import Leases

__all__ = ["Compaction"]

_log = logging.getLogger(__name__)
_WAVE = 512

Progress = Callable[[MergeOutcome], None]


@dataclass(frozen=True, slots=True)
class Compaction:
    """One run over one table."""

    metastore: Metastore
    table: TableRecord
    task: MergeTask
    execute: Execute
    run_id: str
    now: Callable[[], int]
    new_id: Callable[[], str]
    lease: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    cancelled: threading.Event = field(default_factory=threading.Event)
    """When it is set, merges that run are finished and published, and no others are begun."""

    def run(self, merges: Iterable[PlannedMerge], on_merge: Progress | None = None) -> CompactionResult:
        """Do the merges; each is published, skipped or failed by itself, and the run leaves a row."""
        tally = Tally(RunRecord(self.run_id, RunState.RUNNING, self.now()), on_merge)
        self.metastore.record_run(self.table.table_id, tally.record)
        state = RunState.FAILED
        try:
            with Leases(self.metastore, self.lease) as leases:
                state = self._waves(iter(merges), tally, leases)
        except KeyboardInterrupt:
            state = RunState.CANCELLED
            raise
        finally:
            ended = tally.ended(state, self.now())
            self._record(ended)
        return CompactionResult.of(self.table.name, ended, tally.problems)

    def _waves(self, merges: Iterator[PlannedMerge], tally: Tally, leases: Leases) -> RunState:
        bound = self.table.settings.policy.rewrites_bound
        publisher = Publisher(
            self.metastore, self.table.table_id, self.run_id, bound, sleep=self.sleep, row_groups=self.task.row_groups
        )
        while not self.cancelled.is_set():
            wave = {self.new_id(): merge for merge in islice(merges, _WAVE)}
            if not wave:
                return RunState.DONE
            tally.record = replace(tally.record, planned=tally.record.planned + len(wave))
            before = tally.record.done + tally.record.skipped
            Wave(publisher, self.task, self.execute, leases, tally.count, self.cancelled, sleep=self.sleep).run(wave)
            self._record(tally.record)
            if len(wave) == _WAVE and tally.record.done + tally.record.skipped == before:
                # Not one of many went through: the store or the cluster is at fault, and the next wave would fail too.
                return RunState.FAILED
        return RunState.CANCELLED

    def _record(self, record: RunRecord) -> None:
        try:
            self.metastore.record_run(self.table.table_id, record)
        except WindrowError as error:
            _log.warning("run %s could not be written down: %s", self.run_id, error)

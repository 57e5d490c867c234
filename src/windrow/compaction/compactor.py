"""`table.compact`: the noun whose verbs plan and run compaction."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow.compaction.compaction_plan import CompactionPlan, make_plan
from windrow.compaction.forecast import Rates
from windrow.compaction.outcomes import CompactionResult, MergeOutcome
from windrow.compaction.planner import Planner
from windrow.compaction.policies import Policy
from windrow.compaction.windows import wanted_windows
from windrow.context import Context
from windrow.errors import WindrowError
from windrow.metastore import Quarantined, TableRecord
from windrow.model.limits import NO_LIMITS, Limits
from windrow.model.settings import Verify, verification
from windrow.model.units import parse_bytes
from windrow.runners.memory import Shares, check_threads, default_budget, shares

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.compaction.run import Compaction
    from windrow.compaction.tune import TuneResult

__all__ = ["Bounds", "Compact"]

_log = logging.getLogger(__name__)
_RUNS_TO_LEARN_FROM = 10
_MEMORY_OF_A_MERGE = 512 * 2**20
_LEAST_FOR_A_MERGE = 128 * 2**20
"""With less, a merge decodes many rows more than once."""

Progress = Callable[[MergeOutcome], None]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What merges may take."""

    local: Shares
    """In this process."""
    of_a_task: int
    """On Spark."""

    @classmethod
    def of(cls, memory: str | int | None, threads: int | None, limits: Limits = NO_LIMITS) -> Bounds:
        """Return the bounds of a caller, or refuse them; `limits` are those of the lake, in this process."""
        threads = check_threads(threads) or limits.threads
        if memory is None:
            all_of_it = limits.within(default_budget(_MEMORY_OF_A_MERGE, threads))
            of_a_task = _MEMORY_OF_A_MERGE
        else:
            all_of_it = of_a_task = parse_bytes(memory, "memory")
        return cls(shares(all_of_it, threads, _LEAST_FOR_A_MERGE), of_a_task)


@dataclass(frozen=True, slots=True)
class Compact:
    """Merges the splits of one table."""

    context: Context
    name: str
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    policy: Policy | None = None
    """Of windows that still grow; None is the one that the table's settings name."""
    heat: Mapping[int, float] | None = None
    """How often queries read windows; None is what they left in the metastore."""

    def plan(self, *, window: str | None = None) -> CompactionPlan:
        """Say what a run would merge now and why, what it would cost and what it would gain; nothing changes.

        `window` narrows: a moment, a range "from/to", or "overflow".
        """
        planner = self._planner(self._record(), window)
        runs = self.context.metastore.runs(planner.table.table_id, limit=_RUNS_TO_LEARN_FROM)
        return make_plan(planner, Rates.of(runs))

    def run(
        self,
        *,
        window: str | None = None,
        spark: SparkSession | None = None,
        threads: int | None = None,
        memory: str | int | None = None,
        verify: Verify | None = None,
        on_merge: Progress | None = None,
        cancelled: threading.Event | None = None,
    ) -> CompactionResult:
        """Merge what the plan says, on Spark when a session is given, else on threads of this process.

        Each merge becomes visible by itself as soon as it is done. One that fails is tried again and then reported; an
        input that is to blame is left out of further merges. When `cancelled` is set, what runs is finished and
        nothing else begins.

        `memory`, such as "512MiB", is what all merges together take beyond a constant (docs/memory.md): where it is
        small, fewer than `threads` run at once. On Spark it is for each task. By default it is 512 MiB for each thread,
        or half of the machine's memory, or the lake's `memory_limit`, if that is less; `threads` are the lake's.
        `verify` is how much of each merge is compared, "full" or "sample"; by default what the table's settings say.
        """
        if verify is not None:
            verification(verify)
        bounds = Bounds.of(memory, threads, self.context.limits)
        record = self._record()
        run = self._run(record, spark, bounds, verify, cancelled or threading.Event())
        return run.run(self._planner(record, window).merges(), on_merge)

    def watch(
        self,
        *,
        every: float = 60.0,
        window: str | None = None,
        spark: SparkSession | None = None,
        threads: int | None = None,
        memory: str | int | None = None,
        verify: Verify | None = None,
        on_merge: Progress | None = None,
        cancelled: threading.Event | None = None,
    ) -> Iterator[CompactionResult]:
        """Keep the table compacted: look every so many seconds, and yield the result of each run that had work."""
        Bounds.of(memory, threads, self.context.limits)
        stop = cancelled or threading.Event()
        how = {"spark": spark, "threads": threads, "memory": memory, "verify": verify, "on_merge": on_merge}
        return self._watch(every, window, stop, how)

    def _watch(
        self, every: float, window: str | None, stop: threading.Event, how: dict[str, Any]
    ) -> Iterator[CompactionResult]:
        while not stop.is_set():
            try:
                if any(True for _ in self._planner(self._record(), window).merges()):
                    yield self.run(window=window, cancelled=stop, **how)
            except WindrowError as error:
                if not error.retryable:
                    raise
                _log.warning("compaction of %s will be tried again: %s", self.name, error)
            stop.wait(every)

    def quarantined(self) -> list[Quarantined]:
        """Return the splits that merging leaves out, with the reasons; queries read them as before."""
        return self.context.metastore.quarantined(self._record().table_id)

    def pardon(self, split_ids: Collection[str] | None = None) -> int:
        """Let splits be merged again once they were repaired (all by default), and return how many there were."""
        ids = [each.split_id for each in self.quarantined()] if split_ids is None else split_ids
        return self.context.metastore.pardon(self._record().table_id, ids)

    def tune(
        self, *, rows: int = 500_000, arrived: Any = None, on_step: Callable[[str], None] = lambda _: None
    ) -> TuneResult:
        """Try sort order, fan-in, target size and window on rows of the largest window; the table is left alone.

        `arrived` is Arrow data in the order in which it came, to compare sorting with; without it the order of arrival
        is reconstructed by time.
        """
        from windrow.compaction.tune import tune

        metastore, store = self.context.metastore, self.context.store
        return tune(metastore, store, self._record(), most_rows=rows, on_step=on_step, arrived=arrived)

    def _record(self) -> TableRecord:
        return self.context.metastore.table(self.name)

    def _planner(self, record: TableRecord, window: str | None) -> Planner:
        heat = self.context.metastore.heat(record.table_id) if self.heat is None else self.heat
        return Planner(
            self.context.metastore,
            record,
            self.context.now(),
            policy=self.policy,
            wanted=wanted_windows(window),
            heat=lambda place: heat.get(place.start, 0.0),
        )

    def _run(
        self,
        record: TableRecord,
        spark: SparkSession | None,
        bounds: Bounds,
        verify: Verify | None,
        cancelled: threading.Event,
    ) -> Compaction:
        from windrow.compaction.execution import in_process, on_spark
        from windrow.compaction.merge_task import MergeTask
        from windrow.compaction.run import Compaction

        columns = self.context.metastore.columns(record.table_id)
        task = MergeTask(
            lake_url=self.context.url,
            table=record.folder,
            settings=record.settings,
            created_at=self.context.now(),
            field_ids={column.name: column.field_id for column in columns},
            store_options=self.context.store_options,
            memory_budget=bounds.local.size if spark is None else bounds.of_a_task,
            verify=verify,
        )
        return Compaction(
            metastore=self.context.metastore,
            table=record,
            task=task,
            execute=in_process(threads=bounds.local.tasks) if spark is None else on_spark(spark),
            run_id=self.context.new_id(),
            now=self.context.now,
            new_id=self.context.new_id,
            sleep=self.sleep,
            cancelled=cancelled,
        )

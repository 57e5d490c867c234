"""Compaction without files: splits arrive and merges happen in a real metastore, under a clock that is set by hand.

It answers what a policy does to a table over hours: how many splits a window is made of, and how often rows are
written, before anybody pays for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean

from windrow.compaction.planner import PlannedMerge, Planner
from windrow.metastore import CommitKind, Metastore, TableRecord
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata, split_key
from windrow.model.window import Window
from windrow.model.zones import NULL, ColumnZone

__all__ = ["Arrivals", "SimulatedClock", "Simulation", "TableSample", "measured_size"]

_START = 1_700_000_100
"""When simulated time begins: the start of a window of any duration but the longest."""


def measured_size(rows: int) -> int:
    """Bytes of a sorted split of metrics: what 4,000 rows take alone, and 500,000 together."""
    return 39_000 + int(3.5 * rows)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How splits come."""

    sources: int = 1
    seconds_between: float = 1.0
    """From one split of a source to its next."""
    rows: int = 100_000
    """In a split, on average."""
    late_share: float = 0.001
    """Of the splits, how many are late ones."""
    late_rows: int = 1_000
    latest: int = 3 * 3600
    """Seconds that late splits are late at most."""
    commit_every: int = 20
    """Seconds from commit to commit."""


@dataclass(slots=True)
class SimulatedClock:
    """Microseconds that pass by hand."""

    now: int = _START * 10**6

    def __call__(self) -> int:
        """Return the time."""
        return self.now


@dataclass(frozen=True, slots=True)
class TableSample:
    """The table at one moment."""

    hours: float
    splits: int
    """Visible in all."""
    closed_windows: int
    splits_per_closed_window: float
    most_in_a_closed_window: int
    splits_per_open_window: float
    write_amplification: float
    """Bytes that merges wrote for every byte that arrived."""
    rewrites: int
    """How often a row was rewritten, at most."""
    cold_windows: int = 0
    """Windows that closed ones were gathered into, which do not count as closed ones."""
    splits_per_cold_window: float = 0.0


@dataclass(slots=True)
class Simulation:
    """A table that grows and is compacted."""

    metastore: Metastore
    table: TableRecord
    clock: SimulatedClock
    arrivals: Arrivals = field(default_factory=Arrivals)
    size_of: Callable[[int], int] = measured_size
    compact_every: int = 60
    seed: int = 1
    arrived: int = 0
    written: int = 0
    merges: int = 0
    rewrites: int = 0
    _numbers: int = 0
    _random: random.Random = field(default_factory=random.Random)

    @classmethod
    def of(
        cls, metastore: Metastore, settings: TableSettings, clock: SimulatedClock, arrivals: Arrivals, seed: int = 1
    ) -> Simulation:
        """Begin with an empty table in a metastore that goes by the clock."""
        table = metastore.create_table("simulated", settings, table_id="simulated")
        return cls(metastore, table, clock, arrivals, seed=seed, _random=random.Random(seed))  # noqa: S311 - no secret

    def run(self, hours: float, sample_every: int = 600) -> Iterator[TableSample]:
        """Let time pass, and yield how the table stands every so many seconds."""
        step = self.arrivals.commit_every
        for second in range(step, int(hours * 3600) + 1, step):
            self.clock.now += step * 10**6
            self._arrive(step)
            if second % self.compact_every < step:
                self._compact()
            if second % sample_every < step:
                yield self._sample(second / 3600)

    def _arrive(self, seconds: int) -> None:
        now = self.clock.now // 10**6
        splits = []
        for source in range(self.arrivals.sources):
            for _ in range(round(seconds / self.arrivals.seconds_between)):
                late = self._random.random() < self.arrivals.late_share
                at = now - (self._random.randrange(self.arrivals.latest) if late else self._random.randrange(seconds))
                rows = self._rows(self.arrivals.late_rows if late else self.arrivals.rows)
                splits.append(self._split(f"source-{source}", Window.of(at, self.table.settings.window), rows))
        self.arrived += sum(split.size_bytes for split in splits)
        self._publish(CommitKind.INGEST, splits)

    def _rows(self, average: int) -> int:
        return max(1, int(average * math.exp(self._random.gauss(-0.125, 0.5))))

    def _compact(self) -> None:
        """Merge until the planner finds nothing more, as a compactor that keeps up does."""
        while True:
            planned = list(Planner(self.metastore, self.table, self.clock.now).merges())
            if not planned:
                return
            for merge in planned:
                self._merge(merge)

    def _merge(self, merge: PlannedMerge) -> None:
        rows = sum(split.row_count for split in merge.inputs)
        generation = 1 + max(split.generation for split in merge.inputs)
        shares = [rows // merge.outputs + (number < rows % merge.outputs) for number in range(merge.outputs)]
        outputs = [
            replace(self._split(merge.scope.source_id, merge.window, share), generation=generation) for share in shares
        ]
        self.written += sum(split.size_bytes for split in outputs)
        self.merges += 1
        self.rewrites = max(self.rewrites, generation)
        self._publish(CommitKind.COMPACT, outputs, merge.split_ids)

    def _split(self, source: str, window: Window, rows: int) -> SplitMetadata:
        self._numbers += 1
        schema = self.table.settings.sort
        scope = CompactionScope(self.table.table_id, source, 0, 0, schema.canonical(), window.duration)
        split_id = f"{self._numbers:012d}"
        return SplitMetadata(
            split_id=split_id,
            scope=scope,
            window=window,
            key=split_key(self.table.name, 0, window, split_id),
            size_bytes=self.size_of(rows),
            row_count=rows,
            created_at=self.clock.now,
            commit_id="",
            time_min=window.start * 10**6,
            time_max=window.end * 10**6 - 1,
            zones=(ColumnZone(NULL, NULL, rows),) * len(schema.column_names),
        )

    def _publish(self, kind: CommitKind, splits: Sequence[SplitMetadata], replaced: Sequence[str] = ()) -> None:
        self._numbers += 1
        commit_id = f"commit-{self._numbers:012d}"
        self.metastore.open_commit(self.table.table_id, kind, commit_id=commit_id, lease=600)
        add = [replace(split, commit_id=commit_id) for split in splits]
        self.metastore.publish(commit_id, add=add, replace=replaced)

    def _sample(self, hours: float) -> TableSample:
        planner = Planner(self.metastore, self.table, self.clock.now)
        groups = [(each.window, each.splits) for each in self.metastore.groups(self.table.table_id) if each.window]
        cold = [splits for window, splits in groups if window.is_cold]
        closed = [splits for window, splits in groups if not window.is_cold and planner.closed(window)]
        still_open = [splits for window, splits in groups if not planner.closed(window)]
        return TableSample(
            hours=round(hours, 3),
            splits=sum(splits for _, splits in groups),
            closed_windows=len(closed),
            splits_per_closed_window=round(mean(closed), 3) if closed else 0.0,
            most_in_a_closed_window=max(closed, default=0),
            splits_per_open_window=round(mean(still_open), 3) if still_open else 0.0,
            write_amplification=round(self.written / max(self.arrived, 1), 3),
            rewrites=self.rewrites,
            cold_windows=len(cold),
            splits_per_cold_window=round(mean(cold), 3) if cold else 0.0,
        )

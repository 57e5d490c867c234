"""A closed window under one target size or duration: measured where the table has the rows for it, else simulated.

Measured is what was merged with rows of the table: all rows of a window, or of all windows that a longer one would
hold. Simulated are splits that come as the table's do, merged by the real planner; what that takes is reckoned from
merges that were tried.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow as pa

from windrow.compaction.experiments import FanIn, Laboratory, Merging, Slices
from windrow.compaction.policies import fewest_files
from windrow.compaction.simulation import Arrivals, SimulatedClock, Simulation
from windrow.metastore import Candidate, GroupSummary, SqlMetastore
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window, window_starts

__all__ = ["SLICES", "Layout", "Reckoning", "measured_targets", "measured_window", "simulated"]

SLICES = 48
"""Splits that rows of a window are cut into."""
_MOST_SIMULATED = 1500
"""Splits of one simulated window; beyond that, more of them tell nothing new."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A closed window under one target size or duration, as it is or would be."""

    name: str
    """`target` or `window`: what is tried."""
    how: str
    """`measured` or `simulated`."""
    why: str
    """Why it is not measured; empty where it is."""
    target: int
    window: int
    size_bytes: int
    """Of a window."""
    splits_before: float
    splits_after: float
    write_amplification: float
    merge_seconds: float
    """To merge a window once, on one thread."""
    query_ms: float
    """A selective question to the window."""


@dataclass(frozen=True, slots=True)
class Reckoning:
    """What the tried merges tell of any."""

    splits_per_window: int
    rows_per_window: int
    bytes_per_file: float
    bytes_per_row: float
    bytes_per_second: float
    query_ms: float
    query_ms_per_file: float
    duration: int

    @classmethod
    def of(cls, group: GroupSummary, rows: int, tried: Sequence[FanIn], many_ms: float) -> Reckoning:
        """Learn from merges of so many rows, and from a question to the splits before any merge."""
        best = tried[-1]
        per_file = max(best.bytes_in - best.bytes_out, 0) / max(best.splits - 1, 1)
        seconds = sum(each.seconds for each in tried) or 1e-6
        read = sum(each.bytes_in * max(each.write_amplification, 0.1) for each in tried)
        return cls(
            splits_per_window=max(group.splits, 2),
            rows_per_window=group.rows,
            bytes_per_file=per_file,
            bytes_per_row=max(best.bytes_out - per_file, 1) / max(rows, 1),
            bytes_per_second=read / seconds,
            query_ms=best.query_ms,
            query_ms_per_file=max(many_ms - best.query_ms, 0) / max(best.splits - 1, 1),
            duration=group.scope.window_duration,
        )

    def size_of(self, rows: int) -> int:
        """Bytes of a split."""
        return max(1, int(self.bytes_per_file + self.bytes_per_row * rows))


def simulated(name: str, settings: TableSettings, reckoning: Reckoning, why: str) -> Layout:
    """Let a few windows pass, and look at the closed ones."""
    clock = SimulatedClock()
    share = settings.window / reckoning.duration
    splits = min(max(2.0, reckoning.splits_per_window * share), _MOST_SIMULATED)
    rows = max(1, int(reckoning.rows_per_window * share / splits))
    arrivals = Arrivals(
        sources=1,
        seconds_between=settings.window / splits,
        rows=rows,
        late_share=0.0,
        commit_every=settings.window // 20,
    )
    # A window closes when it ends: nothing is late here.
    changed = settings.changed(late_data_acceptance_window=0, retention=None, cold_window=None)
    with tempfile.TemporaryDirectory() as folder, SqlMetastore(f"sqlite:///{folder}/m.db", clock=clock) as metastore:
        run = Simulation.of(metastore, changed, clock, arrivals)
        run.size_of, run.compact_every = reckoning.size_of, settings.window // 5
        samples = list(run.run(3.5 * settings.window / 3600, settings.window))
    after = samples[-1].splits_per_closed_window or 1.0
    size = reckoning.size_of(int(reckoning.rows_per_window * share))
    return Layout(
        name=name,
        how="simulated",
        why=why,
        target=settings.target_split_size,
        window=settings.window,
        size_bytes=size,
        splits_before=round(reckoning.splits_per_window * share, 1),
        splits_after=after,
        write_amplification=samples[-1].write_amplification,
        merge_seconds=round(size / reckoning.bytes_per_second, 3),
        query_ms=round(reckoning.query_ms + reckoning.query_ms_per_file * (after - 1), 3),
    )


def measured_targets(
    laboratory: Laboratory, slices: Slices, settings: TableSettings, targets: Sequence[int]
) -> list[Layout]:
    """Merge all splits of a window into the files of each target size; equal numbers of files are merged once."""
    tried: dict[int, Merging] = {}
    layouts = []
    for target in targets:
        files = fewest_files([_candidate(split) for split in slices.splits], target)
        if files not in tried:
            tried[files] = laboratory.merge_into(slices, files)
        layouts.append(_measured("target", settings.changed(target_split_size=target), [tried[files]]))
    return layouts


def measured_window(folder: Path, rows: pa.Table, settings: TableSettings, duration: int) -> Layout:
    """Cut rows into windows of a duration, write and merge each of them as its own, and return what one took."""
    changed = settings.changed(window=duration, retention=None)
    starts, _ = window_starts(rows[settings.timestamp], duration, unit=settings.timestamp_unit)
    tried = []
    for start in np.unique(starts).tolist():
        place = folder / f"{duration}-{start}"
        place.mkdir()
        laboratory = Laboratory(place, changed, Window(start, duration))
        part = rows.filter(pa.array(starts == start))
        slices = laboratory.slices(part, min(max(2, SLICES * duration // 3600), part.num_rows))
        files = fewest_files([_candidate(split) for split in slices.splits], settings.target_split_size)
        tried.append(laboratory.merge_into(slices, files))
    return _measured("window", changed, tried)


def _measured(name: str, settings: TableSettings, tried: Sequence[Merging]) -> Layout:
    """What a window took on average."""
    return Layout(
        name=name,
        how="measured",
        why="",
        target=settings.target_split_size,
        window=settings.window,
        size_bytes=int(mean(each.bytes_out for each in tried)),
        splits_before=round(mean(each.splits for each in tried), 1),
        splits_after=round(mean(each.files for each in tried), 3),
        write_amplification=round(sum(each.bytes_out for each in tried) / sum(each.bytes_in for each in tried), 3),
        merge_seconds=round(mean(each.seconds for each in tried), 3),
        query_ms=round(mean(each.query_ms for each in tried), 3),
    )


def _candidate(split: SplitMetadata) -> Candidate:
    return Candidate(split.split_id, split.key, split.size_bytes, split.row_count, split.generation, split.created_at)

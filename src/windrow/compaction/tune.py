"""Experiments on a user's own table: is sorting worth it, which fan-in, which target size, which window.

Sorting and fan-in are tried with the table's rows. Target size and window are simulated with splits that come as the
table's do, by the real planner; what a merge of that size takes is reckoned from the merges that were tried.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.compaction.experiments import FanIn, Laboratory, sorting_saves
from windrow.compaction.plot import line_plot
from windrow.compaction.simulation import Arrivals, SimulatedClock, Simulation
from windrow.errors import InvalidInput
from windrow.metastore import GroupSummary, Metastore, SqlMetastore, TableRecord
from windrow.model.settings import TableSettings
from windrow.model.units import format_bytes, format_seconds
from windrow.storage import Store

__all__ = ["Advice", "Layout", "TuneResult", "tune"]

_FAN_INS = (4, 8, 16)
_TARGETS = tuple(mebibytes * 2**20 for mebibytes in (64, 128, 256, 512))
_WINDOWS = (300, 900, 3600)
_SLICES = 48
_MOST_SIMULATED = 1500
"""Splits of one simulated window; beyond that, more of them tell nothing new."""
_WORTH_SORTING = 0.10
"""Below this saving, ADR-003 calls the case for sorting into question."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A closed window under one target size or duration, as it would be."""

    name: str
    target: int
    window: int
    window_bytes: int
    splits_before: float
    splits_after: float
    write_amplification: float
    merge_seconds: float
    """To merge a window once, on one thread."""
    query_ms: float
    """A selective question to the window."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting that the experiments speak for."""

    setting: str
    now: Any
    better: Any
    why: str


@dataclass(frozen=True, slots=True)
class TuneResult:
    """What the experiments found."""

    table: str
    rows: int
    """Of one window, taken as a sample."""
    window: str
    sorted_bytes: int
    unsorted_bytes: int
    sorting_saves: float
    fan_in: tuple[FanIn, ...]
    layouts: tuple[Layout, ...]
    advice: tuple[Advice, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def plot(self) -> str:
        """Draw the experiments as SVG."""
        by_fan_in = {
            "seconds": [(each.fan_in, each.seconds) for each in self.fan_in],
            "write amplification": [(each.fan_in, each.write_amplification) for each in self.fan_in],
        }
        targets = [each for each in self.layouts if each.name == "target"]
        windows = [each for each in self.layouts if each.name == "window"]
        return line_plot(
            {
                "fan-in": by_fan_in,
                "target in MiB: splits of a closed window": {
                    "splits": [(each.target / 2**20, each.splits_after) for each in targets]
                },
                "window in minutes: splits of a closed window": {
                    "splits": [(each.window / 60, each.splits_after) for each in windows]
                },
            },
            "",
        )


def tune(
    metastore: Metastore, store: Store, table: TableRecord, *, most_rows: int, on_step: Callable[[str], None]
) -> TuneResult:
    """Make all experiments on a sample of the table, in folders that are gone afterwards."""
    group = _largest(metastore, table)
    window = group.window
    if window is None:  # the largest is one with a window
        raise InvalidInput(f"table {table.name!r} has no window to try anything on; ingest something first")
    on_step(f"reading {window}")
    rows = _sample(metastore, store, table, group, most_rows)
    on_step("sorted against unsorted")
    sorted_bytes, unsorted_bytes = sorting_saves(rows, table.settings)
    with tempfile.TemporaryDirectory(prefix="windrow-tune-") as folder:
        laboratory = Laboratory(Path(folder), table.settings, window)
        slices = laboratory.slices(rows, min(_SLICES, rows.num_rows))
        tried = []
        for fan_in in _FAN_INS:
            on_step(f"fan-in {fan_in}")
            tried.append(laboratory.fan_in(slices, fan_in))
        many = laboratory.query_ms(slices.splits, slices.question)
    reckoned = _Reckoning.of(group, rows.num_rows, tried, many)
    layouts = _layouts(table.settings, reckoned, on_step)
    saving = 1 - sorted_bytes / max(unsorted_bytes, 1)
    return TuneResult(
        table=table.name,
        rows=rows.num_rows,
        window=str(window),
        sorted_bytes=sorted_bytes,
        unsorted_bytes=unsorted_bytes,
        sorting_saves=round(saving, 4),
        fan_in=tuple(tried),
        layouts=tuple(layouts),
        advice=tuple(_advice(table.settings, saving, tried, layouts)),
    )


def _largest(metastore: Metastore, table: TableRecord) -> GroupSummary:
    groups = [each for each in metastore.groups(table.table_id) if each.window and not each.window.overflow]
    groups = [each for each in groups if each.scope.sort_schema == table.settings.sort.canonical()]
    if not groups:
        raise InvalidInput(f"table {table.name!r} has no rows in its present sort order; ingest something first")
    return max(groups, key=lambda each: (each.rows, each.splits))


def _sample(metastore: Metastore, store: Store, table: TableRecord, group: GroupSummary, most_rows: int) -> pa.Table:
    """Rows of whole splits of a group, so many at most."""
    found: list[pa.Table] = []
    rows = 0
    if group.window is not None:
        for scope, page in metastore.candidates(table.table_id, group.window):
            for split in page if scope == group.scope else ():
                if rows >= most_rows:
                    break
                found.append(pq.read_table(pa.BufferReader(store.get(split.key))))
                rows += split.row_count
    return pa.concat_tables(found, promote_options="permissive").slice(0, most_rows).combine_chunks()


@dataclass(frozen=True, slots=True)
class _Reckoning:
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
    def of(cls, group: GroupSummary, rows: int, tried: Sequence[FanIn], many_ms: float) -> _Reckoning:
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


def _layouts(settings: TableSettings, known: _Reckoning, on_step: Callable[[str], None]) -> list[Layout]:
    layouts = []
    for target in _TARGETS:
        on_step(f"target {format_bytes(target)}")
        layouts.append(_layout("target", settings.changed(target_split_size=target), known))
    for window in _WINDOWS:
        on_step(f"window {format_seconds(window)}")
        layouts.append(_layout("window", settings.changed(window=window), known))
    return layouts


def _layout(name: str, settings: TableSettings, known: _Reckoning) -> Layout:
    """Let a few windows pass, and look at the closed ones."""
    clock = SimulatedClock()
    share = settings.window / known.duration
    splits = min(max(2.0, known.splits_per_window * share), _MOST_SIMULATED)
    rows = max(1, int(known.rows_per_window * share / splits))
    arrivals = Arrivals(
        sources=1,
        seconds_between=settings.window / splits,
        rows=rows,
        late_share=0.0,
        commit_every=settings.window // 20,
    )
    # A window closes when it ends: nothing is late here.
    changed = settings.changed(late_data_acceptance_window=0, retention=None)
    with tempfile.TemporaryDirectory() as folder, SqlMetastore(f"sqlite:///{folder}/m.db", clock=clock) as metastore:
        run = Simulation.of(metastore, changed, clock, arrivals)
        run.size_of, run.compact_every = known.size_of, settings.window // 5
        samples = list(run.run(3.5 * settings.window / 3600, settings.window))
    after = samples[-1].splits_per_closed_window or 1.0
    window_bytes = known.size_of(int(known.rows_per_window * share))
    return Layout(
        name=name,
        target=settings.target_split_size,
        window=settings.window,
        window_bytes=window_bytes,
        splits_before=round(known.splits_per_window * share, 1),
        splits_after=after,
        write_amplification=samples[-1].write_amplification,
        merge_seconds=round(window_bytes / known.bytes_per_second, 3),
        query_ms=round(known.query_ms + known.query_ms_per_file * (after - 1), 3),
    )


def _advice(settings: TableSettings, saving: float, tried: Sequence[FanIn], layouts: Sequence[Layout]) -> list[Advice]:
    found = []
    if saving < _WORTH_SORTING:
        why = f"sorting saves {saving:.0%} of the bytes; put columns with few values first, or columns that go together"
        found.append(Advice("sort", str(settings.sort), None, why))
    fastest = min(tried, key=lambda each: (each.write_amplification * each.seconds, -each.fan_in))
    if fastest.fan_in != settings.policy.merge_factor:
        why = f"rows were written {fastest.write_amplification:.2f} times in {fastest.seconds:.2f} s, the least of all"
        found.append(Advice("policy.merge_factor", settings.policy.merge_factor, fastest.fan_in, why))
    targets = [each for each in layouts if each.name == "target"]
    least = min(each.splits_after for each in targets)
    target = next(each.target for each in targets if each.splits_after <= least)
    if target != settings.target_split_size:
        why = f"the smallest target that leaves {least:g} files in a closed window"
        found.append(Advice("target_split_size", settings.target_split_size, target, why))
    windows = [each for each in layouts if each.name == "window"]
    full = [each for each in windows if each.window_bytes >= settings.target_split_size // 4]
    window = (full[0] if full else windows[-1]).window
    if window != settings.window:
        size = format_bytes(next(each.window_bytes for each in windows if each.window == window))
        found.append(Advice("window", settings.window, window, f"a window then holds {size}, near the target"))
    return found

"""Experiments on a user's own table: is sorting worth it, which fan-in, which target size, which window.

Sorting and fan-in are tried with the table's rows. So are target sizes and windows where a sample has all the rows that
they need; else they are simulated, and say so.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.compaction.arrival import Sorting, compare_given, compare_stored
from windrow.compaction.experiments import FanIn, Laboratory
from windrow.compaction.layouts import SLICES, Layout, Reckoning, measured_targets, measured_window, simulated
from windrow.compaction.plot import line_plot
from windrow.errors import InvalidInput
from windrow.metastore import GroupSummary, Metastore, TableRecord
from windrow.model.settings import TableSettings
from windrow.model.shown import ShownByField
from windrow.model.units import format_bytes, format_seconds
from windrow.model.window import Window
from windrow.storage import Store

__all__ = ["Advice", "TuneResult", "tune"]

_FAN_INS = (4, 8, 16)
_TARGETS = tuple(mebibytes * 2**20 for mebibytes in (64, 128, 256, 512))
_WINDOWS = (300, 900, 3600)


@dataclass(frozen=True, slots=True)
class Advice:
    """A setting that the experiments speak for."""

    setting: str
    now: Any
    better: Any
    why: str


@dataclass(frozen=True, slots=True, repr=False)
class TuneResult(ShownByField):
    """What came of the experiments."""

    table: str
    rows: int
    """Of one window, taken as a sample."""
    window: str
    sorting: Sorting
    verdict: str
    """Whether sorting pays."""
    fan_in: tuple[FanIn, ...]
    layouts: tuple[Layout, ...]
    advice: tuple[Advice, ...]

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
    metastore: Metastore,
    store: Store,
    table: TableRecord,
    *,
    most_rows: int,
    on_step: Callable[[str], None],
    arrived: Any = None,
) -> TuneResult:
    """Make all experiments on a sample of the table, in folders that are gone afterwards."""
    group = _largest(metastore, table)
    window = group.window
    if window is None:  # the largest is one with a window
        raise InvalidInput(f"table {table.name!r} has no window to try anything on; ingest something first")
    on_step("sorted against the order of arrival")
    given = None if arrived is None else compare_given(arrived, table.settings, most_rows)
    on_step(f"reading {window}")
    rows = _sample(metastore, store, table, group, most_rows)
    sorting = given or compare_stored(rows, table.settings)
    with tempfile.TemporaryDirectory(prefix="windrow-tune-") as folder:
        bench = _Bench(metastore, store, table, group, rows, most_rows, Path(folder), on_step)
        tried, layouts = bench.experiments(window)
    return TuneResult(
        table=table.name,
        rows=rows.num_rows,
        window=str(window),
        sorting=sorting,
        verdict=sorting.verdict(),
        fan_in=tuple(tried),
        layouts=tuple(layouts),
        advice=tuple(_advice(table.settings, sorting, tried, layouts)),
    )


@dataclass(frozen=True, slots=True)
class _Bench:
    """The experiments on merges of one window's rows, and of its neighbours'."""

    metastore: Metastore
    store: Store
    table: TableRecord
    group: GroupSummary
    rows: pa.Table
    most_rows: int
    folder: Path
    on_step: Callable[[str], None]

    def experiments(self, window: Window) -> tuple[list[FanIn], list[Layout]]:
        """Try fan-ins, then target sizes and windows: with rows where they allow it."""
        settings = self.table.settings
        laboratory = Laboratory(self.folder, settings, window)
        slices = laboratory.slices(self.rows, min(SLICES, self.rows.num_rows))
        tried = []
        for fan_in in _FAN_INS:
            self.on_step(f"fan-in {fan_in}")
            tried.append(laboratory.fan_in(slices, fan_in))
        many = laboratory.query_ms(slices.splits, slices.question)
        reckoning = Reckoning.of(self.group, self.rows.num_rows, tried, many)
        self.on_step("target sizes")
        targets = sorted({*_TARGETS, settings.target_split_size})
        if self._part_of_window() is None:
            layouts = measured_targets(laboratory, slices, settings, targets)
        else:
            why = self._part_of_window() or ""
            changed = (settings.changed(target_split_size=target) for target in targets)
            layouts = [simulated("target", each, reckoning, why) for each in changed]
        for duration in sorted({*_WINDOWS, settings.window}):
            self.on_step(f"window {format_seconds(duration)}")
            layouts.append(self._window(duration, reckoning))
        return tried, layouts

    def _part_of_window(self) -> str | None:
        """Why the rows do not stand for the window; None when they are all of it."""
        if self.rows.num_rows == self.group.rows:
            return None
        return f"the sample has {self.rows.num_rows:,} of the window's {self.group.rows:,} rows; take all to measure it"

    def _window(self, duration: int, reckoning: Reckoning) -> Layout:
        mine = self.group.scope.window_duration
        if duration % mine and mine % duration:
            why: str | None = f"windows of {format_seconds(mine)} make none of {format_seconds(duration)}"
        elif duration <= mine:
            rows, why = self.rows, self._part_of_window()
        else:
            rows, why = self._neighbours(duration)
        if why is None:
            return measured_window(self.folder, rows, self.table.settings, duration)
        changed = self.table.settings.changed(window=duration, retention=None)
        return simulated("window", changed, reckoning, why)

    def _neighbours(self, duration: int) -> tuple[pa.Table, str | None]:
        """The rows of all windows that a longer one would hold, or why there are none such."""
        mine = self.group.scope.window_duration
        whole = Window.of(self.group.window.start if self.group.window else 0, duration)
        inside = [each for each in self._timed() if whole.start <= each[0] < whole.end]
        count, rows = len(inside), sum(each.rows for _, each in inside)
        if count < duration // mine:
            return self.rows, f"{count} of the {duration // mine} windows that it would hold have rows"
        if rows > self.most_rows:
            return self.rows, f"it would hold {rows:,} rows; take a sample of all to measure it"
        parts = [_sample(self.metastore, self.store, self.table, each, each.rows) for _, each in inside]
        return pa.concat_tables(parts, promote_options="permissive").combine_chunks(), None

    def _timed(self) -> Iterator[tuple[int, GroupSummary]]:
        """The windows of the same scope, by their starts."""
        for each in self.metastore.groups(self.table.table_id):
            if each.scope == self.group.scope and each.window is not None and not each.window.overflow:
                yield each.window.start, each


def _largest(metastore: Metastore, table: TableRecord) -> GroupSummary:
    groups = [each for each in metastore.groups(table.table_id) if each.window and not each.window.overflow]
    groups = [each for each in groups if each.scope.sort_schema == table.settings.sort.canonical()]
    if not groups:
        raise InvalidInput(f"table {table.name!r} has no rows in its present sort order; ingest something first")
    return max(groups, key=lambda each: (each.rows, each.splits))


def _sample(metastore: Metastore, store: Store, table: TableRecord, group: GroupSummary, most_rows: int) -> pa.Table:
    """Rows of whole splits of a group, so many at most."""
    gathered: list[pa.Table] = []
    rows = 0
    if group.window is not None:
        for scope, page in metastore.candidates(table.table_id, group.window):
            for split in page if scope == group.scope else ():
                if rows >= most_rows:
                    break
                gathered.append(pq.read_table(pa.BufferReader(store.get(split.key))))
                rows += split.row_count
    return pa.concat_tables(gathered, promote_options="permissive").slice(0, most_rows).combine_chunks()


def _advice(
    settings: TableSettings, sorting: Sorting, tried: Sequence[FanIn], layouts: Sequence[Layout]
) -> list[Advice]:
    advice = []
    if not sorting.pays and not sorting.arrives_sorted:
        why = f"{sorting.verdict()}; put columns with few values first, or columns that go together"
        advice.append(Advice("sort", str(settings.sort), None, why))
    fastest = min(tried, key=lambda each: (each.write_amplification * each.seconds, -each.fan_in))
    if fastest.fan_in != settings.policy.merge_factor:
        why = f"rows were written {fastest.write_amplification:.2f} times in {fastest.seconds:.2f} s, the least of all"
        advice.append(Advice("policy.merge_factor", settings.policy.merge_factor, fastest.fan_in, why))
    targets = [each for each in layouts if each.name == "target"]
    mine = next(each for each in targets if each.target == settings.target_split_size)
    fewest = min(targets, key=lambda each: (each.splits_after, each.target))
    if fewest.splits_after < mine.splits_after:
        why = f"{fewest.how}: a closed window then has {fewest.splits_after:g} files, not {mine.splits_after:g}"
        advice.append(Advice("target_split_size", settings.target_split_size, fewest.target, why))
    windows = [each for each in layouts if each.name == "window"]
    full = [each for each in windows if each.size_bytes >= settings.target_split_size // 4]
    window = full[0] if full else windows[-1]
    if window.window != settings.window:
        why = f"{window.how}: a window then holds {format_bytes(window.size_bytes)}, " + (
            "near the target" if full else f"still far from the target of {format_bytes(settings.target_split_size)}"
        )
        advice.append(Advice("window", settings.window, window.window, why))
    return advice

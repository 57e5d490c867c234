"""Experiments with rows of a table: what merging costs with one fan-in or another, and into so many files.

They write to a folder of their own and leave the table alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.merging.merge import MergeOptions
from windrow.merging.splits import merge_splits
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.splits.writer import SplitName, write_split
from windrow.storage import Store, open_store

__all__ = ["FanIn", "Laboratory", "Merging", "Slices"]

_ASKED = 5


@dataclass(frozen=True, slots=True)
class FanIn:
    """What it took to make one file of a window's splits, so many at a time."""

    fan_in: int
    splits: int
    seconds: float
    peak_mib: float | None
    """Memory beyond what was taken before; None where the system does not tell."""
    write_amplification: float
    bytes_in: int
    bytes_out: int
    query_ms: float
    """A selective question to what came out."""


@dataclass(frozen=True, slots=True)
class Merging:
    """What it took to make so many files of a window's splits at once."""

    splits: int
    files: int
    seconds: float
    bytes_in: int
    bytes_out: int
    query_ms: float


@dataclass(frozen=True, slots=True)
class Slices:
    """A window's rows as they may have come: one split for each slice of time."""

    splits: tuple[SplitMetadata, ...]
    question: str
    """A condition that a few rows match."""


@dataclass(frozen=True, slots=True)
class Laboratory:
    """A folder in which rows of one window are cut, merged and queried."""

    folder: Path
    settings: TableSettings
    window: Window

    def slices(self, rows: pa.Table, count: int) -> Slices:
        """Cut rows by time and write a split of each slice."""
        order = pc.sort_indices(rows, sort_keys=[(self.settings.timestamp, "ascending")])
        parts = [part for part in np.array_split(np.asarray(order), count) if part.size]
        store = open_store(str(self.folder))
        scope = CompactionScope("tune", "tune", 0, 0, self.settings.sort.canonical(), self.window.duration)
        ids = {name: place + 1 for place, name in enumerate(rows.column_names)}
        splits = tuple(
            write_split(store, rows.take(pa.array(part)), self.settings, scope, self.window, _name(f"in-{number}"), ids)
            for number, part in enumerate(parts)
        )
        return Slices(splits, _question(rows, self.settings.sort.column_names[0]))

    def fan_in(self, slices: Slices, fan_in: int) -> FanIn:
        """Merge splits, so many at a time and then what came of it, until there is one."""
        store = open_store(str(self.folder))
        self._merge(store, slices.splits[:2], "warm")
        before = _resident()
        start, written, level, splits = time.perf_counter(), 0, 0, list(slices.splits)
        while len(splits) > 1:
            level += 1
            merged: list[SplitMetadata] = []
            for place in range(0, len(splits), fan_in):
                inputs = splits[place : place + fan_in]
                outputs = self._merge(store, inputs, f"{fan_in}-{level}-{place}") if len(inputs) > 1 else inputs
                written += sum(split.size_bytes for split in outputs) if len(inputs) > 1 else 0
                merged += outputs
            splits = merged
        seconds, peak = time.perf_counter() - start, _peak()
        total = sum(split.size_bytes for split in slices.splits)
        return FanIn(
            fan_in=fan_in,
            splits=len(slices.splits),
            seconds=round(seconds, 4),
            peak_mib=None if before is None or peak is None else round((peak - before) / 2**20, 1),
            write_amplification=round(written / total, 3),
            bytes_in=total,
            bytes_out=sum(split.size_bytes for split in splits),
            query_ms=self.query_ms(splits, slices.question),
        )

    def merge_into(self, slices: Slices, files: int) -> Merging:
        """Merge splits at once, as a closed window is, into so many files where their rows allow it."""
        store, start = open_store(str(self.folder)), time.perf_counter()
        outputs = self._merge(store, slices.splits, f"into-{files}", files)
        return Merging(
            splits=len(slices.splits),
            files=len(outputs),
            seconds=round(time.perf_counter() - start, 4),
            bytes_in=sum(split.size_bytes for split in slices.splits),
            bytes_out=sum(split.size_bytes for split in outputs),
            query_ms=self.query_ms(outputs, slices.question),
        )

    def query_ms(self, splits: Sequence[SplitMetadata], question: str) -> float:
        """Return how long DuckDB takes to count the rows that match; the median of a few times, after one."""
        import duckdb

        files = [str(self.folder / split.key) for split in splits]
        taken = []
        with duckdb.connect() as connection:
            for _ in range(_ASKED + 1):
                start = time.perf_counter()
                connection.execute(
                    f"select count(*) from read_parquet(?, union_by_name=true) where {question}", [files]
                )
                connection.fetchall()
                taken.append(time.perf_counter() - start)
        return round(median(taken[1:]) * 1000, 3)

    def _merge(self, store: Store, inputs: Sequence[SplitMetadata], name: str, files: int = 1) -> list[SplitMetadata]:
        options = MergeOptions(outputs=files)
        return merge_splits(store, inputs, self.settings, lambda number: _name(f"{name}-{number}"), options)


def _name(split_id: str) -> SplitName:
    return SplitName("tune", split_id, "tune", 0)


def _question(rows: pa.Table, column: str) -> str:
    """The value in the middle of the first sort column."""
    values = pc.sort_indices(rows.column(column))
    value = rows.column(column)[values[len(values) // 2].as_py()].as_py()
    if value is None:
        return f'"{column}" is null'
    text = str(value).replace("'", "''")
    return f"\"{column}\"::varchar = '{text}'"


def _resident() -> int | None:
    """Begin a new peak of memory and return what is taken now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _status("VmRSS")


def _peak() -> int | None:
    return _status("VmHWM")


def _status(name: str) -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)

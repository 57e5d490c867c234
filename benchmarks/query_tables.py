"""The tables that queries are measured on: the same rows for Windrow and, as plain Parquet files, for its peers.

Two hours of 292 metrics, four million rows, in so many time slices: a flush every few seconds. Peers get each slice as
one sorted file in a folder of its window, as a careful user would keep it; Windrow gets it as one split.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow.lake import Lake
from windrow.metastore import CommitKind
from windrow.model.scope import CompactionScope
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.splits.writer import SplitName, write_split

__all__ = ["COLUMNS", "METRICS", "START", "WINDOW", "Slices", "delta_table", "windrow_table", "write_files"]

START = 1_767_225_600  # 2026-01-01
SECONDS = 7200
WINDOW = 900
METRICS = 292
COLUMNS = ("metric_name", "timestamp", "value")
_SORT = "metric_name|service|env|host|timestamp/V2"
_KEYS = ("metric_name", "service", "env", "host", "timestamp")
_PER_COMMIT = 1000


@dataclass(frozen=True)
class Slices:
    """How many files there are, and how many rows in each."""

    files: int
    rows: int

    @property
    def seconds(self) -> float:
        """The time that a file covers."""
        return SECONDS / self.files

    def window(self, number: int) -> int:
        """Where the window of a file starts."""
        return START + int(number * self.seconds) // WINDOW * WINDOW

    def table(self, number: int) -> pa.Table:
        """The rows of one file, sorted."""
        random = np.random.default_rng(number)
        series = random.integers(0, METRICS * 20, self.rows)
        times = START + (number + random.uniform(0, 0.999, self.rows)) * self.seconds
        host = series % 20
        table = pa.table(
            {
                "metric_name": _texts("metric", series // 20, METRICS),
                "service": _texts("service", host % 5, 5),
                "env": _texts("env", host % 2, 2),
                "host": _texts("host", host, 20),
                "timestamp": pa.array((times * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
                "value": np.round(random.normal(50, 20, self.rows), 3),
            }
        )
        return table.sort_by([(name, "ascending") for name in _KEYS])


def _texts(name: str, codes: Any, count: int) -> pa.Array:
    return pa.array([f"{name}_{number:04d}" for number in range(count)]).take(pa.array(codes))


def write_files(slices: Slices, folder: Path) -> list[Path]:
    """Write the plain files: sorted, zstd, statistics, in folders named after their windows."""
    paths = []
    for number in range(slices.files):
        home = folder / f"window_start={slices.window(number)}"
        home.mkdir(parents=True, exist_ok=True)
        paths.append(home / f"{number:06d}.parquet")
        pq.write_table(slices.table(number), paths[-1], compression="zstd")
    return paths


def delta_table(folder: Path) -> Any:
    """The plain files as a Delta table."""
    from deltalake import DeltaTable, Field, Schema, convert_to_deltalake
    from deltalake.schema import PrimitiveType

    windows = Schema([Field("window_start", PrimitiveType("long"))])
    convert_to_deltalake(str(folder), partition_by=windows, partition_strategy="hive")
    return DeltaTable(str(folder))


def windrow_table(slices: Slices, folder: Path, name: str = "metrics") -> Lake:
    """A lake with a table that holds the slices as its splits."""
    lake = windrow.connect(folder)
    lake.create_table(name, sort=_SORT, window="15m", mirror=False)
    store, metastore, record = lake.context.store, lake.context.metastore, lake.table(name).record()
    scope = CompactionScope(record.table_id, "default", 0, 0, record.settings.sort.canonical(), WINDOW)
    found = metastore.reserve_columns(record.table_id, slices.table(0).schema)
    ids = {column: each.field_id for column, each in found.items()}
    for first in range(0, slices.files, _PER_COMMIT):
        commit = f"commit-{first}"
        metastore.open_commit(record.table_id, CommitKind.INGEST, commit_id=commit, lease=600)
        splits: list[SplitMetadata] = []
        for number in range(first, min(first + _PER_COMMIT, slices.files)):
            window = Window(slices.window(number), WINDOW)
            named = SplitName(name, f"split-{number:06d}", commit, 0)
            splits.append(write_split(store, slices.table(number), record.settings, scope, window, named, ids))
        metastore.publish(commit, add=splits, columns=list(ids))
    return lake

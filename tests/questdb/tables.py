"""Small tables of the partition store for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from windrow.questdb.readers import hold_snapshot
from windrow.questdb.store import StoreOptions

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("host", pa.string()), ("v", pa.float64())])
DAY = 86_400_000_000
MONDAY = 1_704_067_200_000_000
"""2024-01-01."""
NEVER = StoreOptions(row_group_rows=8, join_rows=0, rewrite_ratio=1.0)
"""Small row groups, no joins, no rewrites but by request."""


def rows(times: Sequence[int], tag: str = "a") -> pa.Table:
    """A row for each time, in microseconds after Monday."""
    stamps = pa.array(np.asarray(times, np.int64) + MONDAY).cast(SCHEMA.field("ts").type)
    hosts = [f"{tag}{number % 3}" for number in range(len(times))]
    return pa.table([stamps, hosts, np.arange(len(times)) * 0.5], schema=SCHEMA)


def content(table: Path) -> list[tuple]:
    """All rows of the newest snapshot, in their order, as plain values."""
    with hold_snapshot(table, deadline=0.05) as snapshot:
        return plain(snapshot.read())


def plain(found: pa.Table) -> list[tuple]:
    """Rows as plain values."""
    times = found["ts"].cast(pa.int64()).to_pylist()
    return list(zip(times, found["host"].to_pylist(), found["v"].to_pylist(), strict=True))

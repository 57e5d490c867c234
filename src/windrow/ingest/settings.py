"""How rows are taken into a table: the settings that batches, streams and sinks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.model.scope import DEFAULT_SOURCE

__all__ = ["IngestSettings"]


@dataclass(frozen=True, slots=True)
class IngestSettings:
    """Who sends the rows, and which of them are dropped."""

    source: str = DEFAULT_SOURCE
    """The stable name of the source; never one per run."""
    drop_late: bool = False
    """Whether points older than the table's acceptance window are dropped."""
    future: str | int | None = None
    """How far ahead of its arrival a point may lie; None does not bound."""
    most_dropped: float = 0.5
    """The share of the rows that may be dropped; when more would be, nothing is published."""
    lease: float = 120.0
    """Seconds for which the commit is held; a heartbeat prolongs it where a driver runs."""
    dead_letter: bool = False
    """Whether rows that are dropped are written to files, and rows of other types are dropped instead of refused."""
    memory_budget: str | int | None = None
    """Memory that an ingest takes in this process, such as "256MiB", or that each of its tasks takes on Spark."""
    cast: Mapping[str, str | pa.DataType] | None = None
    """Types that columns get before they join the table, such as {"value": "double"}, though values lose digits."""
    threads: int | None = None
    """How many tasks run at once in this process; None is one for each core."""

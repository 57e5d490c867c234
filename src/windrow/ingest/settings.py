"""How rows are taken into a table: the settings that batches, streams and sinks share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.context import Context
from windrow.ingest.batch import StreamBatch
from windrow.ingest.casts import parse_casts
from windrow.ingest.late import ArrivalRule
from windrow.ingest.run import Ingest
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.units import parse_bytes, parse_seconds
from windrow.runners.memory import check_threads

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

    def ingest(self, context: Context, table: str, batch: StreamBatch | None = None) -> Ingest:
        """Return a run into a table, as a commit of its own or as that of a stream's batch."""
        record = context.metastore.table(table)
        oldest = record.settings.late_data_acceptance_window if self.drop_late else None
        newest = None if self.future is None else parse_seconds(self.future, "future")
        commit_id = context.new_id() if batch is None else batch.commit_id(record.table_id, self.source)
        return Ingest(
            metastore=context.metastore,
            table=record,
            lake_url=context.url,
            commit_id=commit_id,
            rule=ArrivalRule(context.now(), oldest, newest),
            source_id=self.source,
            store_options=context.store_options,
            lease=self.lease,
            most_dropped=self.most_dropped,
            batch=batch,
            dead_letter=self.dead_letter,
            memory_budget=None if self.memory_budget is None else parse_bytes(self.memory_budget, "memory_budget"),
            casts=parse_casts(self.cast),
            threads=check_threads(self.threads) or context.limits.threads,
            memory_limit=context.limits.memory,
        )

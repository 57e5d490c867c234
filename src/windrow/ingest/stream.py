"""Batches of Spark Structured Streaming into a table: each is one commit, named by query and batch, exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from windrow.context import Context
from windrow.errors import InvalidInput, WindrowError
from windrow.ingest.batch import StreamBatch
from windrow.ingest.checkpoints import QueryCheckpoint
from windrow.ingest.ingest_result import IngestResult
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sources import source_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["STREAM_SETTINGS", "StreamSink"]

STREAM_SETTINGS = IngestSettings(drop_late=True)
"""A stream drops what comes after the table's acceptance window, unless its settings say otherwise."""

_QUERY_ID = "sql.streaming.queryId"
"""Where Spark tells a batch whose it is."""


@dataclass(frozen=True, slots=True)
class StreamSink:
    """Where the batches of a streaming query go. It can be pickled, as Spark Connect does."""

    context: Context
    table: str
    settings: IngestSettings = STREAM_SETTINGS
    checkpoint: str | None = None
    """The checkpoint folder of the query. It tells an old copy of itself from the right one, and under Connect, where
    Spark does not tell a batch whose it is, it does.
    """

    def using(self, *, checkpoint: str | None = None, **settings: Any) -> StreamSink:
        """Return the stream with other settings: source, drop_late, future, most_dropped and so on."""
        return replace(self, settings=replace(self.settings, **settings), checkpoint=checkpoint or self.checkpoint)

    def write(self, rows: DataFrame, batch_id: int) -> None:
        """Publish a batch, unless it was published before: what `foreachBatch` takes."""
        self.publish(rows, batch_id)

    def publish(self, rows: DataFrame, batch_id: int) -> IngestResult:
        """Do the same and say what was done, for a function of your own that `foreachBatch` takes."""
        batch = StreamBatch(self._query_id(rows), batch_id, self._offsets(batch_id))
        source = source_of(rows)
        return Ingest.of(self.context, self.table, self.settings, batch).run(source)

    def start(
        self,
        rows: DataFrame,
        checkpoint: str,
        *,
        trigger: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> StreamingQuery:
        """Start a query that writes a streaming DataFrame into the table.

        `checkpoint` is the folder in which Spark keeps how far it got; the same one again goes on where the last run
        ended. `trigger` is what Spark's own `trigger` takes, such as {"processingTime": "1 minute"} or
        {"availableNow": True}.
        """
        if not getattr(rows, "isStreaming", False):
            raise InvalidInput(f"table {self.table!r}: the rows are no stream; ingest them, or use spark.readStream")
        writer = rows.writeStream.foreachBatch(self.using(checkpoint=checkpoint).write)
        writer = writer.option("checkpointLocation", checkpoint)
        if trigger is not None:
            writer = writer.trigger(**trigger)
        return (writer if name is None else writer.queryName(name)).start()

    def _query_id(self, rows: DataFrame) -> str:
        query_id = _query_id_of(rows)
        if query_id is not None:
            return query_id
        if self.checkpoint is None:
            raise InvalidInput(
                f"table {self.table!r}: the batch does not tell which query it is of; call this from foreachBatch, and "
                "under Spark Connect name the checkpoint folder: table.stream.using(checkpoint=...)"
            )
        return QueryCheckpoint.at(self.checkpoint, self.context.store_options).query_id()

    def _offsets(self, batch_id: int) -> str | None:
        """Return the fingerprint of the batch's offsets; a folder that only Spark can read tells none."""
        if self.checkpoint is None:
            return None
        with suppress(WindrowError):
            return QueryCheckpoint.at(self.checkpoint, self.context.store_options).offsets(batch_id)
        return None


def _query_id_of(rows: DataFrame) -> str | None:
    from pyspark.errors import PySparkException

    try:
        return rows.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    except PySparkException:  # a session of Connect has no context
        return None

"""Windrow as a sink of Spark: `df.write.format("windrow")` and `df.writeStream.format("windrow")`.

Spark takes the steps of a write in processes of their own. The writer is made in a planner beside the driver, and
pickled; tasks unpickle it and write; then a process beside the driver gets what they return. A batch writer is
unpickled there, a stream's writer is made anew. So a commit is opened where the writer is pickled, once, before any
task can write, and what publishing must know comes home in the messages of the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from windrow.errors import InvalidInput
from windrow.ingest.batch import StreamBatch
from windrow.ingest.run import Opened
from windrow.ingest.sink_options import SinkOptions
from windrow.ingest.sources import arrow_schema

__all__ = ["WindrowSink"]


class WindrowSink(DataSource):
    """The half of the data source that Spark knows as `windrow` by which it writes."""

    @classmethod
    def name(cls) -> str:
        """The name that `format` takes."""
        return "windrow"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001 - Spark's signature
        """Return the writer of a batch."""
        return _BatchWriter(_options(self.options, overwrite, streaming=False), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: FBT001, N802
        """Return the writer of a stream's batch."""
        return _StreamWriter(_options(self.options, overwrite, streaming=True), schema)


@dataclass
class _Written(WriterCommitMessage):
    """What a task of an attempt wrote."""

    commit_id: str
    attempt: int
    reports: tuple[str, ...]
    is_replay: bool
    batch: StreamBatch | None = None


class _BatchWriter(DataSourceArrowWriter):
    """Writes a DataFrame as one commit of its own."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._opened = _open(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        """Write the rows of a task, in it."""
        return _write(self._opened, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish what the tasks wrote."""
        _publish(self._options, _written(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's signature
        """Give the commit up."""
        _give_up(self._options, self._opened.commit.commit_id, self._opened.commit.attempt)


class _StreamWriter(DataSourceStreamArrowWriter):
    """Writes a batch of a stream as the commit that is named by query and batch."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._batch: StreamBatch | None = None
        self._opened: Opened | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._opened is None:
            self._batch = self._options.batch()
            self._opened = _open(self._options, self._schema, self._batch)
        return self.__dict__

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        """Write the rows of a task, in it; nothing, when the batch was published before."""
        if self._opened is None:
            raise InvalidInput("format windrow: a task got a writer whose commit is not open; start the query again")
        return replace(_write(self._opened, iterator), batch=self._batch)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Publish what the tasks wrote, unless an earlier run did."""
        written = _written(messages)
        for each in written:
            if each.batch is None or each.batch.batch_id != batchId:
                raise InvalidInput(
                    f"format windrow: Spark commits batch {batchId}, but its checkpoint stood at {each.batch} when the "
                    "batch began; write by foreachBatch(table.stream.write) instead"
                )
        _publish(self._options, written)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Give the commit up; when no task reported it, its lease runs out by itself."""
        for each in _written(messages)[:1]:
            _give_up(self._options, each.commit_id, each.attempt, each.batch)


def _options(options: Any, overwrite: bool, *, streaming: bool) -> SinkOptions:  # noqa: FBT001
    if overwrite:
        raise InvalidInput('format windrow: a table is appended to, never overwritten; use mode("append")')
    return SinkOptions.of(options, streaming=streaming)


def _open(options: SinkOptions, schema: StructType, batch: StreamBatch | None = None) -> Opened:
    with options.open() as context:
        return options.ingest(context, batch).open(arrow_schema(schema))


def _write(opened: Opened, rows: Iterator[pa.RecordBatch]) -> _Written:
    from pyspark import TaskContext

    context = TaskContext.get()
    attempt = 0 if context is None else context.taskAttemptId()
    reports = () if opened.is_replay else tuple(opened.task.report(rows, attempt))
    return _Written(opened.commit.commit_id, opened.commit.attempt, reports, opened.is_replay)


def _written(messages: Sequence[WriterCommitMessage | None]) -> list[_Written]:
    return [message for message in messages if isinstance(message, _Written)]


def _publish(options: SinkOptions, written: Sequence[_Written]) -> None:
    if not written or written[0].is_replay:
        return
    first = written[0]
    reports = [report for each in written for report in each.reports]
    with options.open() as context:
        ingest = replace(options.ingest(context, first.batch), commit_id=first.commit_id)
        ingest.publish(first.attempt, reports)


def _give_up(options: SinkOptions, commit_id: str, attempt: int, batch: StreamBatch | None = None) -> None:
    with options.open() as context:
        replace(options.ingest(context, batch), commit_id=commit_id).give_up(attempt)

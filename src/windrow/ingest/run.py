"""One ingest from start to end: open a commit, let Spark's tasks write, publish what they report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.errors import InvalidInput, WindrowError
from windrow.ingest.result import IngestResult
from windrow.ingest.steps import check_rows, written_schema
from windrow.ingest.task import WriteTask
from windrow.metastore import CommitKind, Metastore, TableColumn, TableRecord
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.split import SplitMetadata
from windrow.runners.heartbeat import Heartbeat
from windrow.runners.spark import run_on_partitions
from windrow.runners.task_errors import errors_of_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Ingest"]

Progress = Callable[[SplitMetadata], None]


@dataclass(frozen=True, slots=True)
class Ingest:
    """A run that brings the rows of one Spark DataFrame into a table."""

    metastore: Metastore
    table: TableRecord
    lake_url: str
    commit_id: str
    arrived_at: int
    source_id: str = DEFAULT_SOURCE
    store_options: Mapping[str, str] = field(default_factory=dict)
    lease: float = 120.0

    def run(self, rows: DataFrame, on_split: Progress | None = None) -> IngestResult:
        """Write and publish the rows as one commit; nothing is visible before all of it is."""
        schema = _arrow_schema(rows)
        check_rows(schema, self.table.settings)
        written = written_schema(schema, self.table.settings)
        columns = self.metastore.reserve_columns(self.table.table_id, written)
        commit = self.metastore.open_commit(
            self.table.table_id, CommitKind.INGEST, commit_id=self.commit_id, lease=self.lease
        )
        splits = self._written(rows, self._task(commit.attempt, columns), on_split)
        return self._publish(splits, commit.attempt, written.names)

    def _written(self, rows: DataFrame, task: WriteTask, on_split: Progress | None) -> list[SplitMetadata]:
        """Let the tasks write. What fails here was never published, so the commit is given up."""

        def tell(report: str) -> None:
            if on_split is not None:
                on_split(_split(report))

        try:
            with Heartbeat(self.metastore, self.commit_id, task.commit_attempt, self.lease), errors_of_tasks():
                return [_split(report) for report in run_on_partitions(rows, task.report, on_split and tell)]
        except BaseException:
            self.metastore.abort(self.commit_id, attempt=task.commit_attempt)
            raise

    def _task(self, attempt: int, columns: Mapping[str, TableColumn]) -> WriteTask:
        return WriteTask(
            lake_url=self.lake_url,
            table=self.table.name,
            table_id=self.table.table_id,
            settings=self.table.settings,
            commit_id=self.commit_id,
            commit_attempt=attempt,
            source_id=self.source_id,
            schema_epoch=self.table.schema_epoch,
            arrived_at=self.arrived_at,
            columns=columns,
            store_options=self.store_options,
        )

    def _publish(self, splits: list[SplitMetadata], attempt: int, columns: list[str]) -> IngestResult:
        if not splits:
            self.metastore.abort(self.commit_id, attempt=attempt)
            raise InvalidInput(f"table {self.table.name!r}: the data has no rows; nothing was published")
        published = self.metastore.publish(self.commit_id, attempt=attempt, add=splits, columns=columns)
        return IngestResult(
            table=self.table.name,
            commit_id=self.commit_id,
            version=published.version,
            rows=published.rows_added,
            splits=published.added,
            windows=len({split.window for split in splits}),
            size_bytes=sum(split.size_bytes for split in splits),
            null_timestamps=sum(split.row_count for split in splits if split.window and split.window.overflow),
        )


def _split(report: str) -> SplitMetadata:
    return SplitMetadata.from_dict(json.loads(report))


def _arrow_schema(rows: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(rows.schema, timezone="UTC")
    except WindrowError:
        raise
    except Exception as error:
        raise InvalidInput(f"the DataFrame has a column that Arrow cannot hold: {error}") from error

"""One ingest from start to end: open a commit, let tasks write, publish what they report.

The three steps are apart, since Spark's sinks take them in three processes; `run` takes them in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow.context import Context
from windrow.errors import InvalidInput, WindrowError
from windrow.ingest.advice import unsorted_warnings
from windrow.ingest.batch import StreamBatch
from windrow.ingest.casts import cast_schema, joining, parse_casts
from windrow.ingest.ingest_result import IngestResult, nothing_of, result_of, summary_of
from windrow.ingest.late import ArrivalRule
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sources import Source
from windrow.ingest.spill import MEMORY_OF_A_TASK, held_rows
from windrow.ingest.steps import check_rows, written_schema
from windrow.ingest.task_reports import Reports, RowCounts, parse_reports, split_of
from windrow.ingest.write_task import WriteTask
from windrow.metastore import Checkpoint, CommitKind, CommitRecord, CommitState, TableColumn, TableRecord
from windrow.model.invariants import require
from windrow.model.sparse import Spread, sparse_warning
from windrow.model.split import SplitMetadata
from windrow.model.units import parse_bytes, parse_seconds
from windrow.runners.leases import given_up_on_error, held
from windrow.runners.memory import check_threads, default_budget, shares
from windrow.runners.task_errors import errors_of_tasks

__all__ = ["Ingest", "Opened"]

Progress = Callable[[SplitMetadata], None]


@dataclass(frozen=True, slots=True)
class Opened:
    """An ingest whose commit is open, with the work that its tasks do; plain values, so that it travels to them."""

    commit: CommitRecord
    task: WriteTask

    @property
    def is_replay(self) -> bool:
        """Whether an earlier run published the commit: then there is nothing to do."""
        return self.commit.state is CommitState.PUBLISHED


@dataclass(frozen=True, slots=True)
class Ingest:
    """A run that brings the rows of one source into a table."""

    context: Context
    table: TableRecord
    commit_id: str
    rule: ArrivalRule
    settings: IngestSettings
    casts: Mapping[str, pa.DataType]
    """Types that columns get before they join the table, though values may lose digits."""
    memory_budget: int | None
    """Bytes that the run takes in this process, or each of its tasks where Spark runs them; None is the default."""
    threads: int | None
    """How many tasks run at once in this process, if the memory is enough; None is one for each core."""
    batch: StreamBatch | None = None
    """The batch of a stream that this is; its checkpoint moves with the commit, and it may be empty."""

    @classmethod
    def of(cls, context: Context, table: str, settings: IngestSettings, batch: StreamBatch | None = None) -> Ingest:
        """Return a run into a table, as a commit of its own or as that of a stream's batch."""
        record, memory = context.metastore.table(table), settings.memory_budget
        oldest = record.settings.late_data_acceptance_window if settings.drop_late else None
        newest = None if settings.future is None else parse_seconds(settings.future, "future")
        return cls(
            context=context,
            table=record,
            commit_id=context.new_id() if batch is None else batch.commit_id(record.table_id, settings.source),
            rule=ArrivalRule(context.now(), oldest, newest),
            settings=settings,
            casts=parse_casts(settings.cast),
            memory_budget=None if memory is None else parse_bytes(memory, "memory_budget"),
            threads=check_threads(settings.threads) or context.limits.threads,
            batch=batch,
        )

    @property
    def closed_before(self) -> int:
        """The second before which no late points are accepted: what is older is a backfill."""
        return self.table.settings.closed_before(self.rule.arrived_at)

    def run(self, source: Source, on_split: Progress | None = None) -> IngestResult:
        """Write and publish the rows as one commit; nothing is visible before all of it is."""
        opened = self.open(source.schema)
        if opened.is_replay:
            return result_of(self.table.name, opened.commit, opened.commit.summary, replayed=True)
        attempt, task, threads = opened.commit.attempt, opened.task, None
        if not source.on_spark:
            budget = self.memory_budget
            if budget is None:
                budget = self.context.limits.within(default_budget(MEMORY_OF_A_TASK, self.threads))
            own = shares(budget, self.threads)
            task, threads = replace(task, held_rows=held_rows(own.size)), own.tasks
        lease = held(self.context.metastore, self.commit_id, attempt, self.settings.lease)
        with self._given_up_on_error(attempt), lease, errors_of_tasks():
            reports = source.run(task.report, None if on_split is None else _on_report(on_split), threads)
        return self.publish(attempt, reports)

    def open(self, schema: pa.Schema) -> Opened:
        """Open the commit, unless the rows cannot be points of the table.

        The arrival time that the first attempt noted counts for every later one, so that a replay decides alike.
        """
        written = self.check(schema)
        self.context.metastore.reserve_columns(self.table.table_id, written)
        noted = {"arrived_at": self.rule.arrived_at, "source": self.settings.source} | (
            {} if self.batch is None else self.batch.to_dict()
        )
        commit = self.context.metastore.open_commit(
            self.table.table_id, CommitKind.INGEST, commit_id=self.commit_id, lease=self.settings.lease, summary=noted
        )
        if self.batch is not None and commit.state is CommitState.PUBLISHED:
            self.batch.check_replay(commit.summary)
        arrived_at = int(commit.summary.get("arrived_at", self.rule.arrived_at))
        columns = self._reserved(written, commit.attempt)
        task = self._task(commit.attempt, columns, replace(self.rule, arrived_at=arrived_at))
        return Opened(commit, task)

    def _reserved(self, written: pa.Schema, attempt: int) -> dict[str, TableColumn]:
        """Return the columns as the table has them, which nobody can change any more while the commit is open."""
        with self._given_up_on_error(attempt):
            return self.context.metastore.reserve_columns(self.table.table_id, written)

    def check(self, schema: pa.Schema) -> pa.Schema:
        """Refuse rows that cannot be points of the table; return the columns that its splits will have."""
        schema = cast_schema(schema, self.casts)
        check_rows(schema, self.table.settings)
        columns = self.context.metastore.columns(self.table.table_id)
        return joining(written_schema(schema, self.table.settings), {each.name: each.type for each in columns})

    def publish(self, attempt: int, reports: Sequence[str]) -> IngestResult:
        """Make visible what the tasks of an attempt reported, and move the checkpoint of the stream with it."""
        with self._given_up_on_error(attempt):
            reported = parse_reports(reports)
            if not reported.counts.read and self.batch is None:
                self.give_up(attempt)
                return nothing_of(self.table.name, self.commit_id, self.table.version)
            self._check_counts(reported.splits, reported.counts)
            checkpoint = self._checkpoint()
        summary = summary_of(reported)
        published = self.context.metastore.publish(
            self.commit_id,
            attempt=attempt,
            add=reported.splits,
            columns=reported.names.columns,
            attributes=reported.names.attributes,
            checkpoint=checkpoint,
            summary=summary,
        )
        return result_of(self.table.name, published, summary, warnings=self._warnings(reported))

    def _warnings(self, reported: Reports) -> list[str]:
        """Return what to look at; a stream has nobody who reads it."""
        if self.batch is not None:
            return []
        settings = self.table.settings
        columns = {column.name for column in self.context.metastore.columns(self.table.table_id)}
        sparse = sparse_warning(Spread.of_splits(reported.splits), settings)
        unsorted = unsorted_warnings(settings, columns | reported.names.attributes)
        return [*([] if sparse is None else [sparse]), *unsorted]

    def give_up(self, attempt: int) -> None:
        """Give an attempt up before it was published; its files are orphans."""
        # What stopped the run is what the caller must hear of; a commit that is left open runs out by itself.
        with suppress(WindrowError):
            self.context.metastore.abort(self.commit_id, attempt=attempt)

    def _given_up_on_error(self, attempt: int) -> AbstractContextManager[None]:
        return given_up_on_error(self.context.metastore, self.commit_id, attempt)

    def _checkpoint(self) -> Checkpoint | None:
        if self.batch is None:
            return None
        return self.batch.checkpoint(self.context.metastore, self.table.table_id, self.settings.source)

    def _task(self, attempt: int, columns: Mapping[str, TableColumn], rule: ArrivalRule) -> WriteTask:
        return WriteTask(
            lake_url=self.context.url,
            table=self.table.folder,
            table_id=self.table.table_id,
            settings=self.table.settings,
            commit_id=self.commit_id,
            commit_attempt=attempt,
            source_id=self.settings.source,
            schema_epoch=self.table.schema_epoch,
            rule=rule,
            columns=columns,
            store_options=self.context.store_options,
            dead_letter=self.settings.dead_letter,
            casts=self.casts,
            held_rows=held_rows(MEMORY_OF_A_TASK if self.memory_budget is None else self.memory_budget),
        )

    def _check_counts(self, splits: Sequence[SplitMetadata], counts: RowCounts) -> None:
        """Every row that was read was written or counted as dropped, and not too many were dropped."""
        written = sum(split.row_count for split in splits)
        for id_ in ("DM-2", "DM-3"):
            require(id_, points_accepted=counts.read - counts.dropped, points_written=written)
        name = self.table.name
        if counts.dropped > self.settings.most_dropped * counts.read or not (splits or self.batch):
            raise InvalidInput(
                f"table {name!r}: {counts.late} of {counts.read} rows are late, {counts.future} lie in the future, "
                f"{counts.conflicting} are of other types and {counts.unfit} lack what a point needs or have a time "
                f"out of range; more than {self.settings.most_dropped:.0%} would be dropped, so nothing was published. "
                "Look at the clock, the types and the values of the source, allow more to be dropped "
                "(most_dropped), or take rows of any age (drop_late=False)"
            )


def _on_report(on_split: Progress) -> Callable[[str], None]:
    def tell(report: str) -> None:
        split = split_of(report)
        if split is not None:
            on_split(split)

    return tell

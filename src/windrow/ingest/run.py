"""One ingest from start to end: open a commit, let tasks write, publish what they report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.ingest.late import ArrivalRule
from windrow.ingest.report import Counts, Names, counts_of, names_of, split_of
from windrow.ingest.result import IngestResult
from windrow.ingest.sources import Source
from windrow.ingest.steps import check_rows, written_schema
from windrow.ingest.task import WriteTask
from windrow.metastore import CommitKind, Metastore, TableColumn, TableRecord
from windrow.model.invariants import require
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.split import SplitMetadata
from windrow.runners.heartbeat import Heartbeat
from windrow.runners.task_errors import errors_of_tasks

__all__ = ["Ingest"]

Progress = Callable[[SplitMetadata], None]


@dataclass(frozen=True, slots=True)
class Ingest:
    """A run that brings the rows of one source into a table."""

    metastore: Metastore
    table: TableRecord
    lake_url: str
    commit_id: str
    rule: ArrivalRule
    source_id: str = DEFAULT_SOURCE
    store_options: Mapping[str, str] = field(default_factory=dict)
    lease: float = 120.0
    most_dropped: float = 0.5
    """The share of the rows that may be dropped; when more would be, nothing is published."""

    def run(self, source: Source, on_split: Progress | None = None) -> IngestResult:
        """Write and publish the rows as one commit; nothing is visible before all of it is."""
        written = self.check(source)
        columns = self.metastore.reserve_columns(self.table.table_id, written)
        commit = self.metastore.open_commit(
            self.table.table_id, CommitKind.INGEST, commit_id=self.commit_id, lease=self.lease
        )
        task = self._task(commit.attempt, columns)
        try:
            with Heartbeat(self.metastore, self.commit_id, commit.attempt, self.lease), errors_of_tasks():
                reports = source.run(task.report, None if on_split is None else _telling(on_split))
            splits = [split for split in map(split_of, reports) if split is not None]
            counts = counts_of(reports)
            self._check_counts(splits, counts)
        except BaseException:
            # Nothing was published, so the commit can be given up; its files are orphans.
            self.metastore.abort(self.commit_id, attempt=commit.attempt)
            raise
        return self._publish(splits, counts, names_of(reports), commit.attempt)

    def check(self, source: Source) -> pa.Schema:
        """Refuse rows that cannot be points of the table; return the columns that its splits will have."""
        check_rows(source.schema, self.table.settings)
        return written_schema(source.schema, self.table.settings)

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
            rule=self.rule,
            columns=columns,
            store_options=self.store_options,
        )

    def _check_counts(self, splits: Sequence[SplitMetadata], counts: Counts) -> None:
        """Every row that was read was written or counted as dropped, and not too many were dropped."""
        written = sum(split.row_count for split in splits)
        for id_ in ("DM-2", "DM-3"):
            require(id_, points_accepted=counts.read - counts.dropped, points_written=written)
        name = self.table.name
        if not counts.read:
            raise InvalidInput(f"table {name!r}: the data has no rows; nothing was published")
        if counts.dropped > self.most_dropped * counts.read or not splits:
            raise InvalidInput(
                f"table {name!r}: {counts.late} of {counts.read} rows are late and {counts.future} lie in the future; "
                f"more than {self.most_dropped:.0%} would be dropped, so nothing was published. Look at the clock of "
                "the source, or ingest the rows as a backfill"
            )

    def _publish(self, splits: Sequence[SplitMetadata], counts: Counts, names: Names, attempt: int) -> IngestResult:
        published = self.metastore.publish(
            self.commit_id,
            attempt=attempt,
            add=splits,
            columns=names.columns,
            attributes=names.attributes,
            summary={"late": counts.late, "future": counts.future},
        )
        return IngestResult(
            table=self.table.name,
            commit_id=self.commit_id,
            version=published.version,
            rows=published.rows_added,
            splits=published.added,
            windows=len({split.window for split in splits}),
            size_bytes=sum(split.size_bytes for split in splits),
            null_timestamps=sum(split.row_count for split in splits if split.window and split.window.overflow),
            late=counts.late,
            future=counts.future,
        )


def _telling(on_split: Progress) -> Callable[[str], None]:
    def tell(report: str) -> None:
        split = split_of(report)
        if split is not None:
            on_split(split)

    return tell

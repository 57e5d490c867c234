"""The work of one task: take batches of rows, write one split for each tenant and window among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.ingest.attributes import residual_names
from windrow.ingest.coerce import coerced
from windrow.ingest.dead_letter import DeadLetters, Rejected, dead_letter_key, set_apart, write_dead_letters
from windrow.ingest.late import ArrivalRule
from windrow.ingest.report import Counts, Names, Report, text_of
from windrow.ingest.steps import add_timeseries_id, cut
from windrow.metastore import TableColumn
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.splits.writer import SplitName, write_sorted
from windrow.storage import Store, open_store

__all__ = ["WriteTask"]


@dataclass(frozen=True, slots=True)
class WriteTask:
    """What every task of a run knows; plain values, so that it travels to any worker."""

    lake_url: str
    table: str
    table_id: str
    settings: TableSettings
    commit_id: str
    commit_attempt: int
    source_id: str
    schema_epoch: int
    rule: ArrivalRule
    columns: Mapping[str, TableColumn]
    store_options: Mapping[str, str] = field(default_factory=dict)
    dead_letter: bool = False
    """Keep rows that are dropped, and drop those of other types instead of refusing them."""

    def run(self, batches: Iterable[pa.RecordBatch], task_attempt: int) -> Iterator[Report]:
        """Write the rows of this task; yield the splits that came of them, then names and counts."""
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        types = {column.name: column.type for column in self.columns.values()}
        fitting, rejected = set_apart(held, types) if self.dead_letter else (held, [])
        rows = coerced(_joined(fitting, types), types)
        judged = self.rule.judge(rows, self.settings.timestamp, self.settings.timestamp_unit)
        store = open_store(self.lake_url, options=self.store_options)
        taken = add_timeseries_id(judged.taken, self.settings)
        for number, (partition_id, window, part) in enumerate(cut(taken, self.settings)):
            yield self._write(store, partition_id, window, part, f"{task_attempt}-{number}")
        if self.dead_letter:
            yield from self._bury(store, [*rejected, *judged.rejected()], task_attempt)
        if taken.num_rows:
            yield Names(frozenset(taken.column_names), residual_names(taken))
        conflicting = sum(each.rows.num_rows for each in rejected)
        yield Counts(rows.num_rows + conflicting, judged.late.num_rows, judged.future.num_rows, conflicting)

    def report(self, batches: Iterable[pa.RecordBatch], task_attempt: int) -> Iterator[str]:
        """Run, and yield what it reports as text that travels to the driver."""
        return map(text_of, self.run(batches, task_attempt))

    def _write(self, store: Store, partition_id: int, window: Window, part: pa.Table, suffix: str) -> SplitMetadata:
        scope = CompactionScope(
            index_uid=self.table_id,
            source_id=self.source_id,
            partition_id=partition_id,
            doc_mapping_uid=self.schema_epoch,
            sort_schema=self.settings.sort.canonical(),
            window_duration=self.settings.window,
        )
        split_id = f"{self.commit_id}-{self.commit_attempt}-{suffix}"
        name = SplitName(self.table, split_id, self.commit_id, self.rule.arrived_at)
        field_ids = {column.name: column.field_id for column in self.columns.values()}
        return write_sorted(store, part, self.settings, scope, window, name, field_ids)

    def _bury(self, store: Store, rejected: Iterable[Rejected], task_attempt: int) -> Iterator[DeadLetters]:
        for number, each in enumerate(each for each in rejected if each.rows.num_rows):
            name = f"{self.commit_id}-{self.commit_attempt}-{task_attempt}-{number}"
            key = dead_letter_key(self.table, name)
            yield write_dead_letters(store, key, each, self.source_id, self.rule.arrived_at)


def _joined(batches: Sequence[pa.RecordBatch], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the rows of batches that may lack columns; without batches, none, but with the columns that need be."""
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(tables or [pa.schema(types).empty_table()], promote_options="permissive")

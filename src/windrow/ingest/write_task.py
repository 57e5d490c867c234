"""The work of one task: take batches of rows, write one split for each tenant and window among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import pyarrow as pa

from windrow.ingest.attributes import residual_names
from windrow.ingest.dead_letter import DeadLetters, Rejected, set_apart, together, write_dead_letters
from windrow.ingest.fitting import Fitted, fitted
from windrow.ingest.late import ArrivalRule
from windrow.ingest.share_rows import ShareRows
from windrow.ingest.spill import HELD_ROWS, RUN_GROUP_ROWS, Group, Held, Spill, cut_down, in_budget
from windrow.ingest.steps import add_timeseries_id, cut
from windrow.ingest.task_reports import Report, RowCounts, WrittenNames, text_of
from windrow.merging.heap import return_freed_memory
from windrow.metastore import TableColumn
from windrow.model.invariants import require
from windrow.model.ordering import encoded
from windrow.model.points import required_columns
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata, dead_letter_key
from windrow.splits.layout import ROW_GROUP_ROWS
from windrow.splits.texts import with_codes
from windrow.splits.writer import SplitName, write_sorted
from windrow.storage import Store, reach_store

__all__ = ["WriteTask"]

_BATCHES_HELD = 4
"""So many batches of files are held at once, or more."""


@dataclass(frozen=True, slots=True)
class WriteTask:
    """What every task of a run knows; plain values, so that it travels to any worker."""

    lake_url: str
    table: str
    """Its folder."""
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
    casts: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types that columns get before they join the table, though values may lose digits."""
    held_rows: int = HELD_ROWS
    """Bytes of rows that the task holds at once."""

    def run(self, batches: Iterable[pa.RecordBatch], task_attempt: int) -> Iterator[Report]:
        """Write the rows of this task; yield the splits that came of them, and names and counts.

        Rows beyond the memory budget are spilled as sorted runs; a split holds all rows of its tenant and window.
        """
        store = reach_store(self.lake_url, self.store_options)
        with Spill() as spill:
            numbers = count()
            for chunk, held in enumerate(self._held(batches)):
                for report in self._take(store, held.batches, f"{task_attempt}-{chunk}"):
                    if not isinstance(report, tuple):
                        yield report
                    elif report[0] not in spill and (held.is_last or held.progress.is_behind(report[0][1])):
                        yield self._write(store, f"{task_attempt}-{next(numbers)}", *report)
                    else:
                        write = partial(self._write, group=report[0], part=report[1], row_group_rows=RUN_GROUP_ROWS)
                        spill.add(report[0], write)
                        del write
                    del report
                if spill.groups:
                    return_freed_memory()
            for group in spill.groups:
                name = self._name(f"{task_attempt}-{next(numbers)}")
                yield spill.merge(group, store, self.settings, name, self._field_ids(), self.held_rows)
                return_freed_memory()

    def _held(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Held]:
        """Yield batches that are held together; those of files end between windows where they can."""
        if not isinstance(batches, ShareRows):
            return in_budget(map(with_codes, cut_down(batches, self.held_rows)), self.held_rows)
        rows = batches.batches(self.held_rows // _BATCHES_HELD, self.settings.window)
        coded = map(with_codes, cut_down(rows, self.held_rows))
        return in_budget(coded, self.held_rows, lambda: batches.progress, self.settings.window)

    def _take(
        self, store: Store, held: list[pa.RecordBatch], suffix: str
    ) -> Iterator[tuple[Group, pa.Table] | DeadLetters | WrittenNames | RowCounts]:
        """Yield what is to be reported of batches, then the sorted rows of each tenant and window among them.

        The batches are let go as soon as their rows are in another place: they count against the task's memory.
        """
        types = {column.name: column.type for column in self.columns.values()}
        fitting, rejected = set_apart(held, types, self.casts) if self.dead_letter else (held, [])
        fit = self._fitted(fitting, types)
        rejected += fit.rejected
        rows = fit.rows
        fitting.clear()
        held.clear()
        judged = self.rule.judge(rows, self.settings.timestamp, self.settings.timestamp_unit)
        apart, unfit = _rows(rejected), _rows(fit.rejected)
        yield RowCounts(
            read=rows.num_rows + apart,
            late=judged.late.num_rows,
            future=judged.future.num_rows,
            conflicting=apart - unfit,
            unfit=unfit,
            rounded=fit.rounded,
        )
        if self.dead_letter:
            yield from self._bury(store, [*rejected, *judged.rejected()], suffix)
        taken = add_timeseries_id(judged.taken, self.settings)
        if taken.num_rows:
            yield WrittenNames(frozenset(taken.column_names), residual_names(taken))
        parts = cut(taken, self.settings, self.settings.closed_before(self.rule.arrived_at))
        del rows, judged, taken, rejected, fit
        for partition_id, window, part in parts:
            yield (partition_id, window), part

    def _fitted(self, batches: Sequence[pa.RecordBatch], types: Mapping[str, pa.DataType]) -> Fitted:
        """Bring batches to the table's types; without dead letters, all of their rows must fit."""
        required = required_columns(self.settings.signal)
        time = self.settings.timestamp, self.settings.timestamp_unit
        parts = [fitted(pa.Table.from_batches([batch]), types, required, time, self.casts) for batch in batches]
        tables = [part.rows if self.dead_letter else part.require_all() for part in parts]
        rejected = together(each for part in parts for each in part.rejected)
        return Fitted(_joined(tables, types), sum(part.rounded for part in parts), rejected)

    def report(self, batches: Iterable[pa.RecordBatch], task_attempt: int) -> Iterator[str]:
        """Run, and yield what it reports as text that travels to the driver."""
        return map(text_of, self.run(batches, task_attempt))

    def _write(
        self, store: Store, suffix: str, group: Group, part: pa.Table, row_group_rows: int = ROW_GROUP_ROWS
    ) -> SplitMetadata:
        partition_id, window = group
        scope = CompactionScope(
            index_uid=self.table_id,
            source_id=self.source_id,
            partition_id=partition_id,
            doc_mapping_uid=self.schema_epoch,
            sort_schema=self.settings.sort.canonical(),
            window_duration=window.duration,
        )
        if window.is_cold:
            require("CW-3", cold=window, closed_before=self.settings.closed_before(self.rule.arrived_at))
        return write_sorted(
            store,
            part,
            self.settings,
            scope,
            window,
            self._name(suffix),
            self._field_ids(),
            row_group_rows=row_group_rows,
        )

    def _name(self, suffix: str) -> SplitName:
        split_id = f"{self.commit_id}-{self.commit_attempt}-{suffix}"
        return SplitName(self.table, split_id, self.commit_id, self.rule.arrived_at)

    def _field_ids(self) -> dict[str, int]:
        return {column.name: column.field_id for column in self.columns.values()}

    def _bury(self, store: Store, rejected: Iterable[Rejected], suffix: str) -> Iterator[DeadLetters]:
        for number, each in enumerate(each for each in rejected if each.rows.num_rows):
            key = dead_letter_key(self.table, f"{self.commit_id}-{self.commit_attempt}-{suffix}-{number}")
            yield write_dead_letters(store, key, each, self.source_id, self.rule.arrived_at)


def _rows(rejected: Iterable[Rejected]) -> int:
    return sum(each.rows.num_rows for each in rejected)


def _joined(tables: Sequence[pa.Table], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the rows of tables that may lack columns; without tables, none, but with the columns that need be.

    Text is coded in all of them where it is in one.
    """
    coded = {field.name for table in tables for field in table.schema if pa.types.is_dictionary(field.type)}
    tables = [_with_codes(table, coded) for table in tables]
    return pa.concat_tables(tables or [pa.schema(types).empty_table()], promote_options="default")


def _with_codes(table: pa.Table, names: Collection[str]) -> pa.Table:
    columns = [
        encoded(column) if name in names and not pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, table.column_names)

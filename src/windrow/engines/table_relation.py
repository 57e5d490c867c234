"""One version of a table of a lake as queries and scans read it: what its name stands for, and how it is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from windrow.context import Context
from windrow.engines.duckdb.relations import Relation
from windrow.engines.newest_plans import NarrowedPlan, narrowed, newest_plan
from windrow.ingest.attributes import RESIDUAL
from windrow.ingest.foreign import RegisteredFiles
from windrow.metastore import TableRecord
from windrow.model.epochs import OldColumns
from windrow.model.expected import expected_columns
from windrow.model.points import is_text
from windrow.model.predicate import Predicate
from windrow.model.split import SplitMetadata
from windrow.model.timeseries import TIMESERIES_ID
from windrow.planning.answers import answered, table_answer, table_labels
from windrow.planning.guessed_statistics import guessed_columns
from windrow.planning.listed_files import ListedSplits, ListedVersions
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan
from windrow.planning.table_plans import plan_table
from windrow.questions.naming import AggregateKind, Question
from windrow.reading.pins import Hold
from windrow.reading.read_context import ReadContext
from windrow.statistics.cached_statistics import MOST_FILES, CachedStatistics
from windrow.statistics.label_answers import LabelAnswers
from windrow.statistics.layout import FileId, split_id_of
from windrow.statistics.table_statistics import ColumnStatistics

__all__ = ["TableVersion", "read_context", "scan_context"]


def read_context(context: Context) -> ReadContext:
    """How bytes of a lake's tables are read."""
    return ReadContext(
        context.url,
        context.reading or context.store,
        context.cache,
        context.decoded,
        limits=context.limits,
        forcing=context.forcing,
    )


def scan_context(context: Context, old: OldColumns | None = None, *, table_id: str | None = None) -> ScanContext:
    """How scans of a lake's tables are planned; of one of them, by its statistics too."""
    return ScanContext(
        context.url,
        context.reading or context.store,
        context.cache,
        context.parsed,
        context.store_options,
        threads=context.limits.workers,
        prune=context.prune,
        statistics=None if table_id is None else context.statistics_of(table_id),
        old=old or {},
    )


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table at a version."""

    context: Context
    record: TableRecord
    version: int

    def relation(self) -> Relation:
        """What the table's name stands for in a query: its columns, and how to plan a scan of it."""
        record, version, metastore = self.record, self.version, self.context.metastore
        learner = self.context.learner
        columns = metastore.columns(record.table_id, version)
        # A column that is no text is something else of the same name.
        others = {column.name for column in columns if not is_text(column.type)}
        names = metastore.attributes(record.table_id, version)
        schema = pa.schema([(column.name, column.type) for column in columns])
        schema = schema if columns else expected_columns(record.settings)
        old = self._old_columns()
        planner = _Planner(
            self,
            scan_context(self.context, old, table_id=record.table_id),
            schema,
            RegisteredFiles(record.name, self.context.store_options),
        )
        return Relation(
            schema,
            planner.plan,
            {name: RESIDUAL for name in names if name not in others},
            hold=self.hold,
            labels=planner.labels,
            explain=planner.explain,
            old=old,
            primary_key=record.settings.primary_key,
            timestamp=record.settings.timestamp,
            newest=planner.newest,
            statistics=CachedStatistics(
                self.context.statistics_of(record.table_id), self._rows_by_split, guess=planner.guess
            ),
            scanned=None if learner is None else learner.relation(self.context.statistics_of(record.table_id)),
        )

    def plan(self, question: Question) -> ScanPlan:
        """Plan a scan, and count how much there was to begin with."""
        context = scan_context(self.context, self._old_columns(), table_id=self.record.table_id)
        return plan_table(context, self.context.metastore, self.record, self.version, question, explain=True)

    def hold(self) -> Hold:
        """Pin the version."""
        return self.context.pins.hold(self.record.table_id, self.version)

    def _rows_by_split(self) -> dict[FileId, int] | None:
        """The rows of each split, under what its statistics are stored by; None where there are too many."""
        pages = self.context.metastore.splits(self.record.table_id, self.version, page_size=MOST_FILES + 1)
        splits = next(iter(pages), ())
        return None if len(splits) > MOST_FILES else {split_id_of(split): split.row_count for split in splits}

    def _old_columns(self) -> OldColumns:
        """By schema epoch, columns that have another type at the version than they had then."""
        record, metastore = self.record, self.context.metastore
        if not record.schema_epoch:
            return {}
        names = set(metastore.attributes(record.table_id, self.version))
        return {
            epoch: {
                name: replace(each, residual=RESIDUAL if name in names and is_text(each.type) else None)
                for name, each in columns.items()
            }
            for epoch, columns in metastore.history(record.table_id, self.version).old_columns().items()
        }


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans of one version, and answers from its metadata; every question counts for the windows that it reads."""

    table: TableVersion
    context: ScanContext
    schema: pa.Schema
    registered: RegisteredFiles

    def plan(self, question: Question, *, explain: bool = False) -> ScanPlan:
        """Plan a scan; where metadata has all that is wanted, the plan has it."""
        table, seen = self.table, list[SplitMetadata]()
        answer = self._answer(question) if question.aggregates else None
        if answer is not None:
            return answer
        plan = plan_table(
            self.context,
            table.context.metastore,
            table.record,
            table.version,
            question,
            explain=explain,
            see=seen.extend,
            listed=table.context.listed,
        )
        # Files are looked at when nothing is locked any more: that may take requests.
        self._read(seen)
        return plan

    def explain(self, question: Question) -> ScanPlan:
        """Plan a scan, and count how much there was to begin with."""
        return self.plan(question, explain=True)

    def newest(self, question: Question) -> NarrowedPlan | None:
        """Plan a question about newest rows; None where that takes all rows of its predicate."""
        lake = self.table.context
        if lake.series is None:
            return None
        timestamp = self.table.record.settings.timestamp
        found = newest_plan(self.context, self._listed, lake.series, question, self.schema, timestamp)
        if isinstance(found, NarrowedPlan):
            self._read(list(found.splits))
            return found
        return None if found is None else NarrowedPlan(self.plan(narrowed(question, found)), None, ())

    def _listed(self, within: tuple[int, int] | None) -> Sequence[ListedSplits]:
        """The splits that reach into a range of time, by schema epoch."""
        table, lake = self.table, self.table.context
        listed = lake.listed or ListedVersions(0)
        return listed.splits(self.context, lake.metastore, table.record, table.version, within)

    def _answer(self, question: Question) -> ScanPlan | None:
        """Counts and extremes without data, where metadata is certain of them."""
        table, seen = self.table, list[SplitMetadata]()
        lake = table.context
        if any(each.kind is AggregateKind.DISTINCT for each in question.aggregates):
            return self._distinct_counts(question)
        answer = table_answer(
            self.context, lake.metastore, table.record, table.version, lake.listed, question, self.schema, seen.extend
        )
        if answer is not None:
            self._read(seen)
        return answer

    def _distinct_counts(self, question: Question) -> ScanPlan | None:
        """Counts of distinct labels or series of all rows, where these are on record in full, and of what is beside."""
        table, others = self.table, [each for each in question.aggregates if each.kind is not AggregateKind.DISTINCT]
        columns = {each.column for each in question.aggregates if each.kind is AggregateKind.DISTINCT}
        changed = any(not columns.isdisjoint(names) for names in self.context.old.values())
        recordable = all(name == TIMESERIES_ID or is_text(self.schema.field(name).type) for name in columns)
        if question.predicate is not None or changed or not recordable or not self.context.prune:
            return None
        recorded = LabelAnswers(table.context.metastore, table.record.table_id, table.version)
        counts: dict[str, int | None] = {}
        for name in columns:
            counts[name] = recorded.distinct(name)
            if counts[name] is None:
                return None
        rest = self._answer(replace(question, aggregates=tuple(others))) if others else answered(())
        if rest is None:
            return None
        values = iter(rest.answer or ())
        is_distinct = AggregateKind.DISTINCT
        counted = [
            pa.scalar(counts[each.column], pa.int64()) if each.kind is is_distinct else next(values)
            for each in question.aggregates
        ]
        return replace(rest, answer=counted, answered_by="statistics have")

    def labels(self, column: str, where: Predicate | None) -> list[str]:
        """Values of a column of text of which metadata is certain."""
        table, seen = self.table, list[SplitMetadata]()
        lake = table.context
        values = table_labels(
            self.context, lake.metastore, table.record, table.version, lake.listed, column, where, seen.extend
        )
        self.registered.check(seen)
        return values

    def guess(self, columns: Sequence[str]) -> dict[str, ColumnStatistics]:
        """Vague statistics of columns, from sidecars and dictionaries."""
        return guessed_columns(self.context, self._listed(None), columns, self.schema)

    def _read(self, splits: list[SplitMetadata]) -> None:
        windows = [split.window for split in splits]
        self.table.context.heat.asked(self.table.record.table_id, windows)
        if None in windows:
            self.registered.check(splits)

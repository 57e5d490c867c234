"""A table of a lake: what it is, what it holds, and the verbs that change it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.compaction.noun import Compact
from windrow.context import Context
from windrow.engines.duckdb.constants import Parameters
from windrow.engines.duckdb.engine import Answer
from windrow.engines.duckdb.frames import named_frames
from windrow.engines.duckdb.relations import Relation
from windrow.engines.labels import Labels
from windrow.engines.lake_queries import queries_of
from windrow.engines.table_relation import TableVersion, read_context
from windrow.errors import InvalidInput, WindrowError
from windrow.ingest.attributes import AttributeRule
from windrow.ingest.result import IngestResult
from windrow.inspection import Inspect, TableDescription, describe
from windrow.metastore import TableRecord
from windrow.model.predicate import Predicate, negation_normal_form
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.units import format_bytes, format_count, parse_bytes, parse_moment
from windrow.planning.scan_plan import ScanPlan
from windrow.questions.literals import fitted
from windrow.questions.naming import Question
from windrow.questions.where import parse_where

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.engines.scan import Scan
    from windrow.ingest.files import FileFormat
    from windrow.ingest.plan import IngestPlan
    from windrow.ingest.register import Register, RegisterPlan, RegisterResult
    from windrow.ingest.sources import Source
    from windrow.ingest.stream import Stream
    from windrow.retyping import Retype
    from windrow.upkeep.noun import Upkeep

__all__ = ["Table"]

_log = logging.getLogger(__name__)
_AHEAD = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Table:
    """One table, read at its newest version, or at an older one after `at`."""

    context: Context
    name: str
    as_of: int | None = None
    """The version that is read; None follows the newest."""

    def __repr__(self) -> str:
        try:
            found = self.describe()
        except WindrowError as error:
            return f"<Table {self.name}: {error}>"
        parts = [
            format_count(found.rows, "row"),
            format_count(found.splits, "split"),
            format_count(found.windows, "window"),
        ]
        parts += [format_bytes(found.size_bytes), f"sort {found.settings['sort']}"]
        return f"<Table {self.name}, version {found.version}: {', '.join(parts)}>"

    @property
    def record(self) -> TableRecord:
        """The table as the metastore knows it now."""
        return self.context.metastore.table(self.name)

    @property
    def settings(self) -> TableSettings:
        """How the table is kept."""
        return self.record.settings

    @property
    def version(self) -> int:
        """The version that is read."""
        return self.record.version if self.as_of is None else self.as_of

    @property
    def inspect(self) -> Inspect:
        """Read-only views of what the table is made of: windows, splits, commits, columns."""
        return Inspect(self.context.metastore, self.record.table_id, self.version, self._labels)

    @property
    def compact(self) -> Compact:
        """Merging of the table's splits: `compact.plan()` says what and why, `compact.run()` does it."""
        return Compact(self.context, self.name)

    def describe(self) -> TableDescription:
        """Return what the table is and how much it holds."""
        return describe(self.context.metastore, self.record, self.version)

    def at(self, *, version: int | None = None, timestamp: str | date | int | None = None) -> Table:
        """Return the table as it was at a version, or at a moment.

        A moment is a datetime, a date, ISO text such as "2026-01-31T12:00", or microseconds since the epoch; a time
        without a zone is UTC, and a date is its midnight. What is read of the table then, by `sql`, `scan` or
        `inspect`, is of that version.
        """
        if (version is None) == (timestamp is None):
            raise InvalidInput("at: give a version or a timestamp, one of the two")
        if timestamp is not None:
            moment = parse_moment(timestamp, "timestamp")
            version = self.context.metastore.version_at(self.record.table_id, moment)
        elif isinstance(version, bool) or not isinstance(version, int) or version < 0:
            raise InvalidInput(f"version: {version!r} is no version; give a whole number from 0 on")
        return Table(self.context, self.name, version)

    def change(self, **settings: Any) -> Table:
        """Change settings; new splits use the new values, old ones keep theirs."""
        record = self.record
        self.context.metastore.change_settings(record.table_id, record.settings.changed(**settings))
        return self

    def ingest(  # noqa: PLR0913 - each is a word that a user may say
        self,
        rows: Any,
        *,
        source: str = DEFAULT_SOURCE,
        drop_late: bool = False,
        future: str | int | None = None,
        most_dropped: float = 0.5,
        file_format: FileFormat | None = None,
        rare_attributes: float = 0.01,
        cast: Mapping[str, Any] | None = None,
        dead_letter: bool = False,
        shuffle: bool | None = None,
        memory_budget: str | int | None = None,
        threads: int | None = None,
        spark: SparkSession | None = None,
        on_split: Callable[[SplitMetadata], None] | None = None,
    ) -> IngestResult:
        """Bring rows in, as one commit.

        `rows` are a Spark DataFrame, an Arrow table or anything with `__arrow_c_stream__`, a lazy frame of Polars, a
        dict of columns, a list of dicts, or paths of Parquet, CSV, JSON and OTLP files, folders of them, globs or URLs.
        DataFrames are written by Spark's tasks, and so are files when `spark` is given; otherwise threads of this
        process do the work. An attribute of OTLP metrics becomes a column, unless fewer than `rare_attributes` of the
        rows have it and the table has no such column. Numbers widen where that is exact; `cast={"value": "double"}`
        gives columns a type though digits are lost.

        A batch is a backfill: points of any age are taken, unless `drop_late` asks for the table's acceptance window.
        `future` bounds how far ahead of now a point may lie. When more than `most_dropped` of the rows would be
        dropped, nothing is published. With `dead_letter`, what is dropped is kept in files that the result names, and
        files whose types conflict with the table's are dropped into them instead of stopping the rest.

        Each task writes a split for every tenant and window that it sees. Where that would make too many small files,
        by a sample of the rows, Spark gathers them by tenant and window first; `shuffle` decides otherwise, and
        `plan_ingest` says why. `on_split` hears of each split that was written.

        `memory_budget`, such as "256MiB", is what the whole ingest takes beyond a constant (docs/memory.md): rows that
        do not fit are spilled as sorted runs, and fewer than `threads` tasks run at once where it is small. On Spark it
        is for each task. By default it is 1 GiB for each thread, or half of the machine's memory, or the lake's
        `memory_limit`, if that is less; `threads` are the lake's.
        """
        from windrow.ingest.settings import IngestSettings
        from windrow.ingest.shuffle import gathered

        settings = IngestSettings(
            source,
            drop_late,
            future,
            most_dropped,
            dead_letter=dead_letter,
            memory_budget=memory_budget,
            cast=cast,
            threads=threads,
        )
        run = settings.ingest(self.context, self.name)
        found = self._source(rows, file_format, spark, rare_attributes, run.casts, set_aside=dead_letter)
        run.check(found.schema)
        found, _ = gathered(found, self.settings, shuffle)
        result = run.run(found, on_split)
        for warning in result.warnings:
            _log.warning("table %s: %s", self.name, warning)
        return result

    @property
    def retype(self) -> Retype:
        """Changes of the type of a column: `retype.plan()` says what would change, `retype.run()` does it."""
        from windrow.retyping import Retype

        context, name = self.context, self.name
        return Retype(context, name, lambda version: Table(context, name, version).relation(), read_context(context))

    @property
    def upkeep(self) -> Upkeep:
        """What keeps the table well: retention, garbage collection, checks."""
        from windrow.upkeep.noun import Upkeep

        return Upkeep(self.context, self.name)

    @property
    def stream(self) -> Stream:
        """Batches of Spark Structured Streaming into the table, each exactly once."""
        from windrow.ingest.stream import Stream

        return Stream(self.context, self.name)

    def plan_ingest(
        self,
        rows: Any,
        *,
        file_format: FileFormat | None = None,
        rare_attributes: float = 0.01,
        cast: Mapping[str, Any] | None = None,
        dead_letter: bool = False,
        shuffle: bool | None = None,
        spark: SparkSession | None = None,
    ) -> IngestPlan:
        """Say what ingesting the rows would change, or refuse them as `ingest` would; nothing is written."""
        from windrow.ingest.plan import plan_of
        from windrow.ingest.settings import IngestSettings
        from windrow.ingest.shuffle import gathered

        run = IngestSettings(cast=cast).ingest(self.context, self.name)
        found = self._source(rows, file_format, spark, rare_attributes, run.casts, set_aside=dead_letter)
        written, gathering = run.check(found.schema), gathered(found, self.settings, shuffle)[1]
        return plan_of(self.name, found, written, self._types(), gathering, self.settings)

    def _source(
        self,
        rows: Any,
        file_format: FileFormat | None,
        spark: SparkSession | None,
        rare: float,
        casts: Mapping[str, Any],
        *,
        set_aside: bool,
    ) -> Source:
        from windrow.ingest.sources import source_of

        types = self._types()
        return source_of(
            rows,
            spark=spark,
            file_format=file_format,
            store_options=self.context.store_options,
            types=types,
            casts=casts,
            attributes=AttributeRule.of_table(self.settings, types, rare),
            set_aside=set_aside,
        )

    def register(
        self,
        paths: str | Path | Sequence[str | Path],
        *,
        source: str = DEFAULT_SOURCE,
        on_file: Callable[[SplitMetadata], None] | None = None,
    ) -> RegisterResult:
        """Let existing Parquet files join the table as they are: read, never merged, never written to or deleted.

        `paths` are files, folders, globs or URLs outside of the lake. Files that are in the table already are passed
        by. `on_file` hears of each file.
        """
        return self._register(source).run(_texts(paths), on_file)

    def plan_register(self, paths: str | Path | Sequence[str | Path]) -> RegisterPlan:
        """Say which files would join the table, or refuse them as `register` would; nothing is written."""
        return self._register(DEFAULT_SOURCE).plan(_texts(paths))

    def unregister(self, paths: str | Path | Sequence[str | Path]) -> RegisterResult:
        """Take registered files out of the table, by path, folder or URL; the files stay as they are, or gone."""
        return self._register(DEFAULT_SOURCE).remove(_texts(paths))

    def plan_unregister(self, paths: str | Path | Sequence[str | Path]) -> list[str]:
        """Return the URLs of the files that `unregister` would take out."""
        return [split.key for split in self._register(DEFAULT_SOURCE).leaving(_texts(paths))]

    def _register(self, source: str) -> Register:
        from windrow.ingest.register import Register

        context = self.context
        return Register(
            metastore=context.metastore,
            table=self.record,
            store=context.store,
            commit_id=context.new_id(),
            created_at=context.now(),
            source_id=source,
            store_options=context.store_options,
            threads=context.limits.threads,
        )

    def _types(self) -> dict[str, Any]:
        columns = self.context.metastore.columns(self.record.table_id)
        return {column.name: column.type for column in columns}

    def sql(self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None) -> Answer:
        """Answer a query on DuckDB in which this table is at its version, and others of the lake at their newest.

        `params`, `tables` and data frames of the caller are as in `Lake.sql`.

        >>> metrics.at(version=41).sql("select count(*) from metrics")  # doctest: +SKIP
        """
        variables = named_frames(query, sys._getframe(1))  # noqa: SLF001 (where the query was written)
        queries = queries_of(self.context)
        at = None if self.as_of is None else (self.name, self.relation)
        return queries.engine().answer(queries.request(query, params, tables, variables, at))

    def _labels(self) -> Labels:
        # What metadata tells and what rows tell must be of one version.
        fixed = Table(self.context, self.name, self.version)
        return Labels(self.name, fixed.relation(), fixed.settings, fixed.scan)

    def scan(
        self,
        where: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        memory_budget: str | int | None = None,
    ) -> Scan:
        """Return the rows that meet a condition, for Arrow, Polars, DuckDB or Spark; nothing is read yet.

        `where` is any condition of DuckDB's SQL, such as `metric_name = 'cpu' and value > 2 * limit`, or a `Predicate`;
        times in it are UTC. Columns are named as in a query, and so are attributes that rows keep in a map. The scan
        is of the version that the table has now. `memory_budget` bounds what is fetched ahead of remote files: 256 MiB,
        or the lake's `memory_limit` if that is less.

        >>> metrics.scan(where="host = 'h1'", columns=["value"]).to_arrow()  # doctest: +SKIP
        """
        from windrow.engines.scan import Scan

        limits = self.context.limits
        budget = limits.within(_AHEAD) if memory_budget is None else parse_bytes(memory_budget, "memory_budget")
        context = replace(read_context(self.context), in_flight=max(budget // 4, 1))
        options, sandbox = self.context.store_options, self.context.sandbox
        return Scan.of(self.name, self.relation(), context, where, columns, options, sandbox=sandbox)

    def plan(self, where: str | None = None, columns: Sequence[str] | None = None) -> ScanPlan:
        """Say what a scan would read: virtual files, and how many windows, splits, row groups, granules and bytes.

        `where` is what stands behind WHERE, such as `metric_name = 'cpu' and timestamp >= date '2026-01-01'`; what
        cannot be asked of metadata is refused.
        """
        predicate = None
        if where is not None:
            # Names that rows may keep in a map are no columns.
            predicate = fitted(negation_normal_form(parse_where(where)), self.relation().plain_columns)
        return self._read().plan(Question(None if columns is None else tuple(columns), predicate))

    def relation(self) -> Relation:
        """Return what the table's name stands for in a query."""
        return self._read().relation()

    def _read(self) -> TableVersion:
        record = self.record
        return TableVersion(self.context, record, record.version if self.as_of is None else self.as_of)


def _texts(paths: str | Path | Sequence[str | Path]) -> list[str]:
    return [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]

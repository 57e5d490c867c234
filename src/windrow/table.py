"""A table of a lake: what it is, what it holds, and the verbs that change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from windrow.compaction.compactor import Compact
from windrow.context import Context
from windrow.engines.duckdb.constants import Parameters
from windrow.engines.duckdb.engine import Answer
from windrow.engines.duckdb.relations import Relation
from windrow.engines.labels import Labels
from windrow.engines.lake_queries import queries_of
from windrow.engines.table_relation import TableVersion, read_context
from windrow.errors import InvalidInput, WindrowError
from windrow.inspection import Inspect, TableDescription, VersionRow, describe, history
from windrow.metastore import TableRecord
from windrow.model.predicate import Predicate, negation_normal_form
from windrow.model.rows import Rows
from windrow.model.settings import TableSettings
from windrow.model.units import format_bytes, format_count, parse_bytes, parse_moment
from windrow.planning.scan_plan import ScanPlan
from windrow.questions.literals import fitted
from windrow.questions.naming import Question
from windrow.questions.where import parse_where
from windrow.statistics.label_answers import LabelAnswers

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.engines.scan import Scan
    from windrow.ingest.ingest_rows import IngestRows
    from windrow.ingest.registration import RegisterFiles, UnregisterFiles
    from windrow.ingest.stream import StreamSink
    from windrow.retyping import Retype
    from windrow.settings_change import ChangeSettings
    from windrow.upkeep.table_upkeep import Upkeep

__all__ = ["Table"]

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
            description = self.describe()
        except WindrowError as error:
            return f"<Table {self.name}: {error}>"
        parts = [
            format_count(description.rows, "row"),
            format_count(description.splits, "split"),
            format_count(description.windows, "window"),
        ]
        parts += [format_bytes(description.size_bytes), f"sort {description.settings['sort']}"]
        return f"<Table {self.name}, version {description.version}: {', '.join(parts)}>"

    def record(self) -> TableRecord:
        """Return the metastore's row of the table as it is now."""
        return self.context.metastore.table(self.name)

    def settings(self) -> TableSettings:
        """Return the settings as they are now."""
        return self.record().settings

    def version(self) -> int:
        """Return the version that is read: the newest, or that of `at`."""
        return self._version_of(self.record())

    def _version_of(self, record: TableRecord) -> int:
        return record.version if self.as_of is None else self.as_of

    @property
    def inspect(self) -> Inspect:
        """Read-only views of what the table is made of: windows, splits, commits, columns."""
        return Inspect(self.context.metastore, self.name, self.as_of, self._labels, self._analyze)

    @property
    def compact(self) -> Compact:
        """Merging of the table's splits: `compact.plan()` says what and why, `compact.run()` does it."""
        return Compact(self.context, self.name)

    def describe(self) -> TableDescription:
        """Return what the table is and how much it holds."""
        record = self.record()
        return describe(self.context.metastore, record, self._version_of(record))

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types at the version; of an empty table those that the settings lead to expect."""
        return self.relation().columns

    def history(self, limit: int | None = None) -> Rows[VersionRow]:
        """Return the versions up to the one that is read, newest first: what made each, when, and what it changed.

        Commits that are open or were given up are in `inspect.commits()`.
        """
        record = self.record()
        return history(self.context.metastore, record.table_id, self._version_of(record), limit)

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
            version = self.context.metastore.version_at(self.record().table_id, moment)
        elif isinstance(version, bool) or not isinstance(version, int) or version < 0:
            raise InvalidInput(f"version: {version!r} is no version; give a whole number from 0 on")
        return Table(self.context, self.name, version)

    @property
    def change(self) -> ChangeSettings:
        """Changes of settings: `change.plan(window="5m")` says what would differ, `change.run(...)` does it."""
        from windrow.settings_change import ChangeSettings

        return ChangeSettings(self.context, self.name)

    @property
    def ingest(self) -> IngestRows:
        """Bring rows in: `ingest(rows)` is `ingest.run(rows)`; `ingest.plan(rows)` says what would be written."""
        from windrow.ingest.ingest_rows import IngestRows

        return IngestRows(self.context, self.name)

    @property
    def register(self) -> RegisterFiles:
        """Let existing Parquet files join the table as they are: `register.plan(paths)`, `register.run(paths)`."""
        from windrow.ingest.registration import RegisterFiles

        return RegisterFiles(self.context, self.name)

    @property
    def unregister(self) -> UnregisterFiles:
        """Take registered files out of the table: `unregister.plan(paths)`, `unregister.run(paths)`."""
        from windrow.ingest.registration import UnregisterFiles

        return UnregisterFiles(self.context, self.name)

    @property
    def retype(self) -> Retype:
        """Changes of the type of a column: `retype.plan()` says what would change, `retype.run()` does it."""
        from windrow.retyping import Retype

        context, name = self.context, self.name
        return Retype(context, name, lambda version: Table(context, name, version).relation(), read_context(context))

    @property
    def upkeep(self) -> Upkeep:
        """What keeps the table well: retention, garbage collection, checks."""
        from windrow.upkeep.table_upkeep import Upkeep

        return Upkeep(self.context, self.name)

    @property
    def stream(self) -> StreamSink:
        """Batches of Spark Structured Streaming into the table, each exactly once."""
        from windrow.ingest.stream import StreamSink

        return StreamSink(self.context, self.name)

    def sql(self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None) -> Answer:
        """Answer a query on DuckDB in which this table is at its version, and others of the lake at their newest.

        `params`, `tables` and data frames of the caller are as in `Lake.sql`.

        >>> metrics.at(version=41).sql("select count(*) from metrics")  # doctest: +SKIP
        """
        queries = queries_of(self.context)
        at = None if self.as_of is None else (self.name, self.relation)
        return queries.engine().answer(queries.request(query, params, tables, at))

    def _analyze(self) -> None:
        self.upkeep.analyze()

    def _labels(self) -> Labels:
        # What metadata tells and what rows tell must be of one version.
        fixed = Table(self.context, self.name, self.version())
        record, is_believed = fixed.record(), self.context.prune
        recorded = LabelAnswers(self.context.metastore, record.table_id, fixed.version())
        return Labels(self.name, fixed.relation(), record.settings, fixed.scan, recorded if is_believed else None)

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

    def latest(
        self,
        by: str | Sequence[str],
        where: str | Predicate | None = None,
        columns: Sequence[str] | None = None,
    ) -> Answer:
        """Return the newest row of each series, among rows that meet a condition: windows are read newest first.

        `by` are the columns that tell series apart; nulls are like each other, and `by=[]` is the newest row of all.
        `where` and `columns` are as in `scan`. Of rows that share the newest time one is returned; a row without a time
        only where its series has no other.

        >>> metrics.latest(by="host", where="region = 'eu'", columns=["host", "value"])  # doctest: +SKIP
        """
        from windrow.engines.latest import latest_rows

        context, sandbox = read_context(self.context), self.context.sandbox
        return latest_rows(self.name, self.relation(), context, by, where, columns, sandbox=sandbox)

    def plan(self, where: str | None = None, columns: Sequence[str] | None = None) -> ScanPlan:
        """Say what a scan would read: virtual files, and how many windows, splits, row groups, granules and bytes.

        `where` is what stands behind WHERE, such as `metric_name = 'cpu' and timestamp >= date '2026-01-01'`; what
        metadata cannot answer is refused.
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
        record = self.record()
        return TableVersion(self.context, record, self._version_of(record))

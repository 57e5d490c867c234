"""A table of a lake: what it is, what it holds, and the verbs that change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.context import Context
from windrow.engines.duckdb import Relation
from windrow.errors import InvalidInput
from windrow.ingest.result import IngestResult
from windrow.inspection import Inspect, TableDescription, describe
from windrow.metastore import TableRecord
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """One table, read at its newest version, or at an older one after `at`."""

    context: Context
    name: str
    as_of: int | None = None
    """The version that is read; None follows the newest."""

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
        return Inspect(self.context.metastore, self.record.table_id, self.version)

    def describe(self) -> TableDescription:
        """Return what the table is and how much it holds."""
        return describe(self.context.metastore, self.record, self.version)

    def at(self, *, version: int | None = None, timestamp: int | None = None) -> Table:
        """Return the table as it was at a version, or at a moment in microseconds since the epoch."""
        if (version is None) == (timestamp is None):
            raise InvalidInput("at: give a version or a timestamp, one of the two")
        if timestamp is not None:
            version = self.context.metastore.version_at(self.record.table_id, timestamp)
        return Table(self.context, self.name, version)

    def change(self, **settings: Any) -> Table:
        """Change settings; new splits use the new values, old ones keep theirs."""
        record = self.record
        self.context.metastore.change_settings(record.table_id, record.settings.changed(**settings))
        return self

    def ingest(
        self,
        rows: DataFrame,
        *,
        source: str = DEFAULT_SOURCE,
        on_split: Callable[[SplitMetadata], None] | None = None,
    ) -> IngestResult:
        """Bring the rows of a Spark DataFrame in, as one commit; `on_split` hears of each split that was written."""
        from windrow.ingest.run import Ingest

        run = Ingest(
            metastore=self.context.metastore,
            table=self.record,
            lake_url=self.context.url,
            commit_id=self.context.new_id(),
            arrived_at=self.context.now(),
            source_id=source,
            store_options=self.context.store_options,
        )
        return run.run(rows, on_split)

    def relation(self) -> Relation:
        """Return what the table's name stands for in a query: its columns and the files that hold its rows."""
        import pyarrow as pa

        record, version = self.record, self.version
        columns = self.context.metastore.columns(record.table_id, version)
        if not columns:
            raise InvalidInput(f"table {self.name!r} has no columns yet; ingest something first")
        pages = self.context.metastore.splits(record.table_id, version)
        keys = [split.key for page in pages for split in page]
        return Relation(pa.schema([(column.name, column.type) for column in columns]), keys)

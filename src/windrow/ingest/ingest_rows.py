"""`table.ingest`: rows come into a table.

metrics.ingest.plan(rows)    # what would be written, or why it cannot be
metrics.ingest.run(rows)     # or, shorter, metrics.ingest(rows)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.context import Context
from windrow.ingest.attributes import AttributeRule
from windrow.ingest.files import FileFormat
from windrow.ingest.ingest_plan import IngestPlan, plan_of
from windrow.ingest.ingest_result import IngestResult
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.ingest.shuffle import gathered
from windrow.ingest.sources import Source, source_of
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.split import SplitMetadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["IngestRows"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestRows:
    """Brings rows into one table."""

    context: Context
    name: str

    def plan(
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
        """Say what ingesting the rows would change, or refuse them as `run` would; nothing is written."""
        run = Ingest.of(self.context, self.name, IngestSettings(cast=cast))
        incoming, types = self._source(run, rows, file_format, spark, rare_attributes, set_aside=dead_letter)
        written, gathering = (
            run.check(incoming.schema),
            gathered(incoming, run.table.settings, run.closed_before, shuffle=shuffle)[1],
        )
        return plan_of(self.name, incoming, written, types, gathering, run.table.settings, run.closed_before)

    def run(  # noqa: PLR0913 - each is a word that a user may say
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
        dropped, nothing is published. With `dead_letter`, what is dropped goes to files that the result names, and
        files whose types conflict with the table's are dropped into them instead of stopping the rest.

        Each task writes a split for every tenant and window that it sees. Where that would make too many small files,
        by a sample of the rows, Spark gathers them by tenant and window first; `shuffle` decides otherwise, and `plan`
        says why. `on_split` hears of each split that was written.

        `memory_budget`, such as "256MiB", is what the whole ingest takes beyond a constant (docs/memory.md): rows that
        do not fit are spilled as sorted runs, and fewer than `threads` tasks run at once where it is small. On Spark it
        is for each task. By default it is 1 GiB for each thread, or half of the machine's memory, or the lake's
        `memory_limit`, if that is less; `threads` are the lake's.
        """
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
        run = Ingest.of(self.context, self.name, settings)
        incoming, _ = self._source(run, rows, file_format, spark, rare_attributes, set_aside=dead_letter)
        run.check(incoming.schema)
        incoming, _ = gathered(incoming, run.table.settings, run.closed_before, shuffle=shuffle)
        result = run.run(incoming, on_split)
        for warning in result.warnings:
            _log.warning("table %s: %s", self.name, warning)
        return result

    __call__ = run

    def _source(
        self,
        run: Ingest,
        rows: Any,
        file_format: FileFormat | None,
        spark: SparkSession | None,
        rare: float,
        *,
        set_aside: bool,
    ) -> tuple[Source, dict[str, Any]]:
        """Return the rows as a source, and the types of the columns that the table has."""
        columns = self.context.metastore.columns(run.table.table_id)
        types = {column.name: column.type for column in columns}
        source = source_of(
            rows,
            spark=spark,
            file_format=file_format,
            store_options=self.context.store_options,
            types=types,
            casts=run.casts,
            attributes=AttributeRule.of_table(run.table.settings, types, rare),
            set_aside=set_aside,
            timestamp=run.table.settings.timestamp,
        )
        return source, types

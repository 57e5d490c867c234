"""Windrow as a source of Spark: `spark.read.format("windrow")`, beside the sink of the same name.

Spark plans a read in a process beside the driver: the table is looked at there, and the files that can matter are dealt
out. Tasks read them through our own storage and hand Arrow batches over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pyspark_windrow.options import ReadOptions
from windrow.engines.arrow import virtual_files
from windrow.engines.scan import Scan
from windrow.engines.selection import Selection
from windrow.engines.spark.data_frame import rows_for_spark
from windrow.engines.spark.shares import Share, Task, deal_out, files_of
from windrow.engines.spark.types import spark_schema
from windrow.errors import InvalidInput
from windrow.ingest.spark_sink import WindrowSink
from windrow.questions.spark_filters import spark_filters_to_predicate
from windrow.questions.spelling import spelled

__all__ = ["WindrowSource"]


class WindrowSource(WindrowSink):
    """The data source that Spark knows as `windrow`."""

    def schema(self) -> StructType:
        """The columns that are read."""
        options = ReadOptions.of(self.options)
        with options.scanning() as scan:
            return spark_schema(scan.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a query.

        Spark 4.3 keeps the filters of the last query with the DataFrame, and hands rows that were read by them to every
        other query of it that pushes none, and to both sides of a union. So filters are taken only where the
        option promises one query for each DataFrame.
        """
        options = ReadOptions.of(self.options)
        return (_FilteringReader if options.pushdown else _Reader)(options, schema)


@dataclass
class _Partition(InputPartition):
    """What one task reads."""

    task: Task
    share: Share


class _Reader(DataSourceReader):
    """Plans where Spark plans, and reads where its tasks are."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._filters: tuple[Filter, ...] = ()

    def partitions(self) -> list[InputPartition]:
        """Deal the files that can matter out to tasks."""
        options = self._options
        with options.scanning(self._schema.names) as scan:
            self._check(scan)
            selection = self._filtered(scan.selection)
            plan = virtual_files(selection, scan.context).source.plan
            task = Task.of(selection, scan.context.path, options.store_options)
            return [_Partition(task, share) for share in deal_out(files_of(plan), options.share_count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read what one task has to read; nothing, where no file can matter."""
        if isinstance(partition, _Partition):
            yield from rows_for_spark(partition.task, partition.share, to_arrow_schema(self._schema, timezone="UTC"))

    def _check(self, scan: Scan) -> None:
        """A schema that somebody gave can choose columns, not change them."""
        wanted = spark_schema(scan.schema)
        for given, own in zip(self._schema, wanted, strict=True):
            if given.dataType != own.dataType:
                raise InvalidInput(
                    f"format windrow: column {given.name!r} is {own.dataType.simpleString()} in the table, and "
                    f"{given.dataType.simpleString()} in the schema that was given; leave the schema out, and cast"
                )

    def _filtered(self, selection: Selection) -> Selection:
        predicate = spark_filters_to_predicate(self._filters, selection.relation.plain_columns)
        if predicate is None:
            return selection
        where = spelled(predicate) if selection.where is None else f"({selection.where}\n) AND {spelled(predicate)}"
        return replace(selection, where=where)


class _FilteringReader(_Reader):
    """Leaves out what filters of the query leave out, as far as we can say it; Spark filters again."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take filters down; all are given back, for Spark to apply them to what comes."""
        self._filters = tuple(filters)
        return filters

"""Where rows come from: a Spark DataFrame, files, or anything that speaks Arrow; and who runs the tasks on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from windrow.errors import Damaged, InvalidInput
from windrow.ingest.attributes import AttributeRule
from windrow.ingest.chunks import Chunk, chunks_of
from windrow.ingest.coerce import joined_types
from windrow.ingest.files import FileFormat, FilePart, SourceFile, deal_out, find_files, read_part, schema_of
from windrow.ingest.parquet_heads import Head, heads_of
from windrow.ingest.promotion import with_promoted_attributes
from windrow.ingest.share_rows import ShareRows
from windrow.ingest.values import table_of
from windrow.model.widening import plain
from windrow.runners.local import run_locally
from windrow.runners.spark import Work, numbered, run_on_partitions, run_on_spark, slots, units_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["ArrowSource", "FilesSource", "FrameSource", "Source", "arrow_schema", "source_of"]

_CHUNK_BYTES = 256 * 2**20
"""A stream is dealt out to tasks in chunks of about this size."""
_TASKS_PER_CORE = 2
_SHARE_BYTES = 64 * 2**20
"""Without Spark, files are dealt out in shares of about this size, or one for each core."""
_TASK_BYTES = 256 * 2**20
"""With Spark, a task that reads more than this has the rest read by others: less is lost when it fails."""
_SAMPLED_ROWS = 500_000
_SAMPLED_TASKS = 4
_FIRST_ROWS = 100_000
"""Rows of a DataFrame that are looked at; they have to travel."""
_DEFAULT_RULE = AttributeRule()

OnReport = Callable[[str], None] | None
Read = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Source(Protocol):
    """Rows, and how the work of a task is run on all of them."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""

    @property
    def on_spark(self) -> bool:
        """Whether Spark's tasks do the work."""

    def run(self, work: Work, on_report: OnReport, threads: int | None = None) -> list[str]:
        """Run the work on all rows and return what it reports; `threads` of this process do it unless Spark does."""


@dataclass(frozen=True)
class FrameSource:
    """The rows of a Spark DataFrame; Spark's tasks do the work."""

    rows: DataFrame
    on_spark: bool = True
    size_bytes: int | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return arrow_schema(self.rows.schema)

    @cached_property
    def tasks(self) -> int:
        """How many tasks read the rows, as far as Spark tells."""
        try:
            return int(self.rows.rdd.getNumPartitions())
        except Exception:  # under Connect there is no such thing
            return _TASKS_PER_CORE * slots(self.rows.sparkSession)

    def sample(self, columns: Sequence[str]) -> list[list[pa.RecordBatch]]:
        """Return some columns of the first rows, those of one task."""
        return [self.rows.select(*(f"`{name}`" for name in columns)).limit(_FIRST_ROWS).toArrow().to_batches()]

    def partitions(self) -> tuple[DataFrame, Read]:
        """Return what Spark deals out to tasks, and how a task gets rows of it."""
        return self.rows, iter

    def run(self, work: Work, on_report: OnReport, threads: int | None = None) -> list[str]:  # noqa: ARG002
        """Run the work on the partitions of the DataFrame."""
        return run_on_partitions(self.rows, work, on_report)


@dataclass(frozen=True)
class FilesSource:
    """The rows of files. Tasks read them by themselves: Spark's tasks, or threads of this process without Spark."""

    files: Sequence[SourceFile]
    spark: SparkSession | None = None
    known: Mapping[str, pa.DataType] | None = None
    """The table's columns; when they are given, files that conflict with them or with others are set aside."""
    casts: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types that columns get before they join the table."""
    timestamp: str | None = None
    """The column of the points' times, by which files are put in order."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of all files that fit, each of a type that holds its values in all of them."""
        return pa.schema(list(self._joined[0].items()))

    @property
    def conflicts(self) -> tuple[str, ...]:
        """What is wrong with the files that are set aside."""
        return self._joined[1]

    @cached_property
    def _joined(self) -> tuple[dict[str, pa.DataType], tuple[str, ...]]:
        types: dict[str, pa.DataType] = {}
        conflicts = []
        for file in self.files:
            try:
                types |= joined_types(file.name, self._cast(self._schema_of(file)), types, self.known or {})
            except (InvalidInput, Damaged) as error:
                if self.known is None or (isinstance(error, Damaged) and not file.is_text):
                    raise
                conflicts.append(str(error))
        if not types and conflicts:
            raise InvalidInput(f"{conflicts[0]}; no file fits the table")
        return types, tuple(conflicts)

    @cached_property
    def _heads(self) -> dict[str, Head]:
        """What the footers of local Parquet files tell."""
        by_name = {file.name: file for file in self.files if file.format is FileFormat.PARQUET and not file.is_remote}
        return heads_of(list(by_name), self.timestamp, lambda name: schema_of(by_name[name]))

    def _schema_of(self, file: SourceFile) -> pa.Schema:
        head = self._heads.get(file.name)
        return schema_of(file) if head is None else head.schema

    def _cast(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([(each.name, self.casts.get(each.name, each.type)) for each in schema])

    def run(self, work: Work, on_report: OnReport, threads: int | None = None) -> list[str]:
        """Deal the files out and run the work on each share."""
        if self.spark is None:
            return run_locally(self._shares, _on_share(work), on_report, threads=threads)
        return run_on_spark(self.spark, self._shares, _on_share(work), on_report)

    @property
    def on_spark(self) -> bool:
        """Whether Spark's tasks do the work."""
        return self.spark is not None

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def tasks(self) -> int:
        """How many tasks read the files."""
        return len(self._shares)

    @cached_property
    def _shares(self) -> list[tuple[FilePart, ...]]:
        if self.spark is None:
            tasks = max(os.cpu_count() or 1, self.size_bytes // _SHARE_BYTES)
        else:
            tasks = max(_TASKS_PER_CORE * slots(self.spark), self.size_bytes // _TASK_BYTES)
        return deal_out(self.files, tasks, self._heads)

    def sample(self, columns: Sequence[str]) -> list[list[pa.RecordBatch]]:
        """Return some columns of the first rows of some tasks; of remote files, which are fetched whole, of one."""
        most = 1 if any(file.is_remote for file in self.files) else _SAMPLED_TASKS
        chosen = self._shares[:: -(-len(self._shares) // most)] if self._shares else []
        return [list(_sample(share, columns)) for share in chosen]

    def partitions(self) -> tuple[DataFrame, Read]:
        """Return what Spark deals out to tasks, the numbers of their shares, and how a task reads its share."""
        if self.spark is None:
            raise InvalidInput("files are dealt out by Spark only where a session is given; give spark=")
        shares = self._shares

        def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for share in units_of(shares, batches):
                yield from ShareRows(share)

        return numbered(self.spark, shares), read


@dataclass(frozen=True)
class ArrowSource:
    """The rows of a table or stream of Arrow data; threads of this process do the work."""

    stream: pa.RecordBatchReader
    chunk_bytes: int = field(default=_CHUNK_BYTES)
    table: pa.Table | None = field(default=None, repr=False)
    """All rows, where they are in memory."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, of types that do not say how they lie in memory."""
        return pa.schema([(each.name, plain(each.type)) for each in self.stream.schema])

    @property
    def on_spark(self) -> bool:
        """Whether Spark's tasks do the work: they do not."""
        return False

    @property
    def tasks(self) -> int:
        """How many tasks read the rows, as far as the source shows."""
        return 1 if self.table is None else max(-(-self.table.nbytes // self.chunk_bytes), 1)

    def sample(self, columns: Sequence[str]) -> list[list[pa.RecordBatch]]:
        """Return some columns of all rows; none of a stream, which can be read but once."""
        if self.table is None or not set(columns) <= set(self.table.column_names):
            return []
        whole = self.table.select(list(columns))
        rows = max(-(-whole.num_rows // self.tasks), 1)
        return [whole.slice(start, rows).to_batches() for start in range(0, whole.num_rows, rows)]

    def run(self, work: Work, on_report: OnReport, threads: int | None = None) -> list[str]:
        """Run the work on chunks of the stream, each of which is read as its task takes it."""
        return run_locally(chunks_of(self.stream, self.chunk_bytes), _on_chunk(work), on_report, threads=threads)


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the columns of a DataFrame as Arrow has them."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(columns, timezone="UTC")
    except Exception as error:  # Spark's own have no other root
        raise InvalidInput(f"the DataFrame has a column that Arrow cannot hold: {error}") from error


def source_of(  # noqa: PLR0913 - what is known of the rows, each by its name
    rows: Any,
    *,
    spark: SparkSession | None = None,
    file_format: FileFormat | None = None,
    store_options: Mapping[str, str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    casts: Mapping[str, pa.DataType] | None = None,
    attributes: AttributeRule = _DEFAULT_RULE,
    set_aside: bool = False,
    timestamp: str | None = None,
) -> Source:
    """Return the source that a value is: a DataFrame, paths, anything with `__arrow_c_stream__`, or Python's own.

    `types` are those of columns that the table has; files of text are read by them, or by `casts`, instead of guessing.
    `attributes` says which attributes of OTLP metrics become columns. With `set_aside`, files that do not fit the table
    are read nevertheless, for the tasks to drop. `timestamp` is the column of the points' times.
    """
    if hasattr(rows, "mapInArrow"):
        return FrameSource(rows)
    if isinstance(rows, str | Path):
        rows = [rows]
    if isinstance(rows, list | tuple) and rows and all(isinstance(each, str | Path) for each in rows):
        names = [str(each) for each in rows]
        wanted = {**(types or {}), **(casts or {})}
        files = find_files(names, file_format=file_format, store_options=store_options, types=wanted)
        files = [
            replace(file, set_aside=set_aside)
            for file in with_promoted_attributes(files, attributes, keep=spark is None)
        ]
        return FilesSource(files, spark, (types or {}) if set_aside else None, casts or {}, timestamp)
    table = table_of(rows)
    if table is not None:
        # Arrow's C interface cuts names at a NUL.
        return ArrowSource(table.to_reader(), table=table)
    if hasattr(rows, "__arrow_c_stream__"):
        return ArrowSource(pa.RecordBatchReader.from_stream(rows))
    raise InvalidInput(
        f"cannot ingest a {type(rows).__name__}; give a DataFrame of Spark, Polars or pandas, an Arrow table or "
        "stream, a dict of columns, a list of dicts, or paths of files"
    )


def _on_chunk(work: Work) -> Callable[[Chunk, int], Iterator[str]]:
    def on_chunk(chunk: Chunk, number: int) -> Iterator[str]:
        with chunk:
            yield from work(chunk, number)

    return on_chunk


def _on_share(work: Work) -> Callable[[tuple[FilePart, ...], int], Iterator[str]]:
    return lambda share, number: work(ShareRows(share), number)


def _sample(share: tuple[FilePart, ...], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    rows = 0
    for part in share:
        for batch in read_part(part, columns):
            if set(columns) <= set(batch.schema.names):  # else it is no batch of points
                yield batch.select(list(columns))
            rows += batch.num_rows
            if rows >= _SAMPLED_ROWS:
                return

"""A selection as a DataFrame of Spark.

Files that Spark can reach are read by Spark's own Parquet reader, those alone that can hold a row that is asked for.
All others are read by tasks of ours through our own storage, and so is what Spark's reader cannot do exactly: types
that it lacks, and conditions that only DuckDB can answer.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.engines.arrow import scanning_engine, virtual_files
from windrow.engines.duckdb.relations import Relation, found_columns
from windrow.engines.selection import Selection
from windrow.engines.spark.conditions import exact_predicate, spark_condition, spark_name, spark_text
from windrow.engines.spark.shares import Share, Task, deal_out, files_of
from windrow.engines.spark.types import for_spark, is_native, spark_arrow_schema, spark_schema
from windrow.model.predicate import Predicate
from windrow.planning.data_files import DataFile
from windrow.planning.scan_plan import ScanPlan
from windrow.reading.pins import Hold
from windrow.reading.read_context import ReadContext
from windrow.runners.spark import numbered, slots, units_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["data_frame", "rows_for_spark"]

_TASKS_PER_SLOT = 2
_FEW_FILES, _LARGE_FILE = 32, 4 * 2**20
"""Spark looks at each path before it reads: some 8 ms for each of 10,000, and by a job of its own beyond 32."""
_PLAIN_PATH = re.compile(r"[\w /.=@+-]+")
"""Spark takes other characters for patterns, or for parts of an address."""
_AS_WRITTEN = {
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}


def data_frame(
    selection: Selection, spark: SparkSession, context: ReadContext, store_options: Mapping[str, str]
) -> DataFrame:
    """Return the rows as a DataFrame; the version is held for as long as that object is there."""
    relation = selection.relation
    hold = None if relation.hold is None else relation.hold()
    plan = virtual_files(selection, context).source.plan
    files = files_of(plan)
    exact = None if selection.where is None else exact_predicate(selection.where, _searchable(selection.relation))
    if not files:
        frame = spark.createDataFrame([], spark_schema(selection.schema))
    elif (selection.where is None or exact is not None) and _reads_natively(selection, plan, files):
        frame = _native(selection, spark, files, exact)
    else:
        task = Task.of(selection, context.path, store_options)
        frame = _by_tasks(task, spark, deal_out(files, _TASKS_PER_SLOT * slots(spark)), selection.schema)
    # Spark's objects take no part in it; whoever keeps the frame keeps the version.
    weakref.finalize(frame, _end, hold).atexit = False
    return frame


def _end(_hold: Hold | None) -> None:
    """The hold ends as this reference to it does."""


def rows_for_spark(task: Task, share: Share, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read a share, in a task of Spark."""
    # There are as many tasks as cores already, each in a process of its own.
    scanning_engine().use_threads(1)
    for batch in task.rows(share):
        yield for_spark(batch, schema)


# ---- by Spark's own reader


def _searchable(relation: Relation) -> pa.Schema:
    """Every name that a condition can use."""
    extra = [pa.field(name, pa.string()) for name in relation.extra_names]
    return pa.schema([*relation.columns, *extra])


def _reads_natively(selection: Selection, plan: ScanPlan, files: Sequence[DataFile]) -> bool:
    found = found_columns(plan.virtual)
    columns = selection.needed.columns
    size = sum(file.identity.size for file in files)
    return (
        (len(files) <= _FEW_FILES or size >= _LARGE_FILE * len(files))
        and all(each.epoch is None for each in plan.virtual)
        and all(is_native(column.type, found.get(column.name, set())) for column in columns)
        and len({name.lower() for name in columns.names}) == len(columns.names)
        and all(_path(file) is not None for file in files)
    )


def _path(file: DataFile) -> str | None:
    """The path by which Spark can open a file."""
    path = None if file.described is not None or file.store.local is None else file.store.local.path(file.key)
    if path is None:
        return None
    # Spark passes by what begins like this, even when it is named.
    hidden = path.name.startswith(("_", "."))
    return str(path) if not hidden and _PLAIN_PATH.fullmatch(str(path)) else None


def _native(
    selection: Selection, spark: SparkSession, files: Sequence[DataFile], predicate: Predicate | None
) -> DataFrame:
    relation = selection.needed
    paths = [f"file://{_path(file)}" for file in files]
    rows = spark.read.schema(spark_schema(relation.columns)).options(**_AS_WRITTEN).parquet(*paths)
    rows = rows.selectExpr(*_expressions(relation))
    if predicate is not None:
        types = {column.name: column.type for column in _searchable(relation)}
        rows = rows.where(spark_condition(predicate, types))
    return rows.selectExpr(*(spark_name(name) for name in selection.columns))


def _expressions(relation: Relation) -> Iterator[str]:
    """Yield what each column is; one that rows may keep in a map too is looked up in both places."""
    for column in relation.columns:
        name, place = spark_name(column.name), relation.attributes.get(column.name)
        if place is not None:
            yield f"coalesce({name}, {_entry(place, column.name)}) AS {name}"
        elif pa.types.is_floating(column.type):
            # Changes nothing, and keeps Spark from passing over NaN by statistics that leave it out.
            yield f"nanvl({name}, {name}) AS {name}"
        else:
            yield name
    for extra in relation.extra_names:
        yield f"{_entry(relation.attributes[extra], extra)} AS {spark_name(extra)}"


def _entry(column: str, key: str) -> str:
    return f"try_element_at({spark_name(column)}, {spark_text(key)})"


# ---- by tasks of ours


def _by_tasks(task: Task, spark: SparkSession, shares: Sequence[Share], schema: pa.Schema) -> DataFrame:
    wanted = spark_arrow_schema(schema)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for share in units_of(shares, batches):
            yield from rows_for_spark(task, share, wanted)

    return numbered(spark, shares).mapInArrow(read, spark_schema(schema))

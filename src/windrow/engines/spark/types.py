"""The columns of a table as Spark has them, and batches of Arrow as Spark takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from windrow.model.column_types import type_of
from windrow.model.widening import plain

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["for_spark", "is_native", "spark_arrow_schema", "spark_schema"]

_WIDER = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64()),
    pa.int16(): (pa.int32(), pa.int64()),
    pa.int32(): (pa.int64(),),
    pa.float32(): (pa.float64(),),
}
"""What Spark's Parquet reader widens by itself."""


def spark_arrow_schema(schema: pa.Schema) -> pa.Schema:
    """Columns in types that Spark has: no unsigned numbers, no times of day, and none finer than a microsecond."""
    return pa.schema([(column.name, _kind(column.type)) for column in schema])


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the columns as Spark declares them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(spark_arrow_schema(schema))


def for_spark(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch in types that Spark has; `schema` is that of `spark_arrow_schema`."""
    columns = [_cast(column, each.type) for column, each in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def is_native(kind: pa.DataType, found: set[pa.DataType]) -> bool:
    """Say whether Spark's own reader gives a column of the table's type from files that have it in these types."""
    if pa.types.is_timestamp(kind):
        same = {pa.timestamp(unit, kind.tz) for unit in ("s", "ms", "us")}
        return kind in same and found <= same
    return _kind(kind) == kind and all(each == kind or kind in _WIDER.get(each, ()) for each in found)


def _kind(kind: pa.DataType) -> pa.DataType:
    kind = plain(kind)
    if pa.types.is_map(kind):
        return pa.map_(_kind(kind.key_type), _kind(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_kind(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _kind(each.type)) for each in kind])
    return type_of(kind).spark


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        # Towards the past, before 1970 too.
        column = pc.floor_temporal(column, unit="microsecond")
    if pa.types.is_time(column.type):
        return column.cast(pa.time64("ns")).cast(kind)
    return column.cast(kind, safe=False) if pa.types.is_duration(kind) else column.cast(kind)

"""The answer to a query that DuckDB need not run: values of metadata, with the names and types that it would give."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from windrow.engines.duckdb.relations import Relation, rows_sql
from windrow.questions.spelling import sql_name

__all__ = ["metadata_table"]


def metadata_table(
    cursor: duckdb.DuckDBPyConnection, query: str, name: str, relation: Relation, values: Sequence[pa.Scalar]
) -> pa.Table:
    """Return values as the answer to a query of one table."""
    with cursor.cursor() as apart:
        apart.execute(f"CREATE TEMP VIEW {sql_name(name)} AS {rows_sql(apart, relation, [], [])}")
        schema = apart.sql(query).to_arrow_table().schema
    arrays = [pa.array([value.as_py()], value.type).cast(each.type) for value, each in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)

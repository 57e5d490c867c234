"""Queries that DuckDB need not run: their answer is in the metadata of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from windrow.engines.duckdb.relations import Relation, rows_sql
from windrow.questions.aggregates import asked_by
from windrow.questions.naming import Naming
from windrow.questions.spelling import sql_name

__all__ = ["metadata_answer"]


def metadata_answer(
    cursor: duckdb.DuckDBPyConnection, query: str, naming: Naming, relations: Mapping[str, Relation]
) -> pa.Table | None:
    """Return the answer to a query if metadata is certain of it; the names and types are those that DuckDB gives."""
    known = {name: relation for name, relation in relations.items() if relation.answer is not None}
    if not known:
        return None

    def constant(expression: Any) -> Any:
        return cursor.execute(f"SELECT {expression.sql('duckdb')}").fetchall()[0][0]

    try:
        asked = asked_by(naming.tree, {name: each.plain_columns for name, each in known.items()}, constant)
    except duckdb.Error:
        # A constant without a value: the query itself will say so, if it ever comes to need it.
        cursor.rollback()
        cursor.begin()
        return None
    relation = None if asked is None else known[asked.table]
    values = None if asked is None or relation is None or relation.answer is None else relation.answer(asked)
    if values is None or asked is None or relation is None:
        return None
    cursor.execute(f"CREATE OR REPLACE TEMP VIEW {sql_name(asked.table)} AS {rows_sql(cursor, relation, [], [])}")
    schema = cursor.sql(query).to_arrow_table().schema
    arrays = [pa.array([value.as_py()], value.type).cast(each.type) for value, each in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)

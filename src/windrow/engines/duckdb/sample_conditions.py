"""Conditions of a query, tried on the rows of samples by DuckDB itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.statistics.join_graph import Filter
from windrow.statistics.selectivity import Evaluate

__all__ = ["evaluate_with"]

_SAMPLE = "windrow_sample_rows"


def evaluate_with(cursor: duckdb.DuckDBPyConnection) -> Evaluate:
    """Return an evaluator of conditions on samples, which are Arrow tables."""

    def evaluate(rows: pa.Table, filters: Sequence[Filter]) -> list[NDArray[np.bool_] | None]:
        if not filters:
            return []
        cursor.register(_SAMPLE, rows)
        try:
            return list(_masks(cursor, filters))
        except duckdb.Error:
            return [_mask(cursor, each) for each in filters]
        finally:
            cursor.unregister(_SAMPLE)

    return evaluate


def _mask(cursor: duckdb.DuckDBPyConnection, condition: Filter) -> NDArray[np.bool_] | None:
    try:
        return next(_masks(cursor, [condition]))
    except duckdb.Error:
        return None  # a value of the sample that the condition fails on says nothing of others


def _masks(cursor: duckdb.DuckDBPyConnection, filters: Sequence[Filter]) -> Iterator[NDArray[np.bool_]]:
    columns = ", ".join(f"coalesce(({each.sql}), false) AS m{number}" for number, each in enumerate(filters))
    found: pa.Table = cursor.sql(f"SELECT {columns} FROM {_SAMPLE}").to_arrow_table()
    for column in found.columns:
        yield column.to_numpy().astype(np.bool_)

"""Rows that are in memory as something other than a stream: Arrow's own, a lazy frame, or plain values of Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from windrow.errors import InvalidInput

__all__ = ["table_of"]


def table_of(rows: Any) -> pa.Table | None:
    """Return rows as a table; None for what is none of these.

    A dictionary has a list for each column; a list has a dictionary for each row, and what one lacks is null in it.
    """
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, Mapping):
        return _of_columns(rows)
    if isinstance(rows, list | tuple) and rows and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        return _of_columns({name: [row.get(name) for row in rows] for name in names})
    if _is_lazy(rows):
        return rows.collect().to_arrow()
    return None


def _is_lazy(rows: Any) -> bool:
    """Whether rows are a lazy frame of Polars, which needs not be installed."""
    kind = type(rows)
    return kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars"


def _of_columns(columns: Mapping[Any, Any]) -> pa.Table:
    made = {str(name): _array(name, values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in made.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InvalidInput(f"the columns are not of one length: {counts}; give each a value for every row")
    return pa.table(made)


def _array(name: Any, values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"column {name!r} is {values!r}, not a list; a row of its own goes into a list: [{{...}}]")
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"column {name!r} has values that no type of Arrow holds together: {error}") from error

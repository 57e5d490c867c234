"""Some rows of a decoded column, as codes or as Arrow values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.numbers import to_arrow
from windrow.parquet.page_reader import Coded, CodedRows, Fixed
from windrow.splits.column_plans import ColumnPlan

__all__ = ["as_arrow", "codes_at", "values_at"]

Longs = npt.NDArray[np.int64]


def codes_at(values: Coded | CodedRows, rows: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """The codes of some rows."""
    places = rows if isinstance(values, CodedRows) else np.searchsorted(values.ends, rows, side="right")
    return np.asarray(values.codes[places])


def values_at(values: Any, column: ColumnPlan, rows: Longs) -> pa.Array:
    """Some rows of a column as Arrow values."""
    kind = column.field.type
    if isinstance(values, Coded | CodedRows):
        codes = codes_at(values, rows)
        return values.texts.take(to_arrow(codes, codes < 0)).cast(kind)
    if isinstance(values, Fixed):
        return as_arrow(values.values[rows].view(column.dtype or values.values.dtype), kind, values.valid, rows)
    return values.take(to_arrow(rows)).combine_chunks()


def as_arrow(
    numbers: npt.NDArray[Any], kind: pa.DataType, valid: npt.NDArray[np.uint8] | None, rows: Longs
) -> pa.Array:
    """Numbers as values of a type; `valid` says which of the rows of the column they come from are set."""
    plain = to_arrow(numbers, None if valid is None else valid[rows] == 0)
    return plain.cast(kind) if pa.types.is_integer(kind) or pa.types.is_floating(kind) else plain.view(kind)

"""The first sort key of every granule, as the sidecar keeps it: plain Parquet bytes of each sort column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.model.numbers import to_arrow
from windrow.model.sort_schema import SortSchema
from windrow.sidecar.granules import FirstKeys, first_keys

__all__ = ["granule_keys", "keys_of_rows"]


def granule_keys(
    rows: pa.Table, schema: SortSchema, *, row_group_rows: int, granule_rows: int
) -> list[tuple[FirstKeys, ...]]:
    """Return the keys of each row group of sorted rows whose sort columns come first.

    Keys end before the first column whose type they cannot hold: what follows it says nothing without it.
    """
    groups = range(0, rows.num_rows, row_group_rows)
    firsts = [np.arange(start, min(start + row_group_rows, rows.num_rows), granule_rows) for start in groups]
    return keys_of_rows(rows, schema, firsts)


def keys_of_rows(
    rows: pa.Table, schema: SortSchema, firsts: Sequence[npt.NDArray[np.int64]]
) -> list[tuple[FirstKeys, ...]]:
    """Return the keys of row groups whose granules begin with the given rows."""
    ends = np.cumsum([len(first) for first in firsts])
    keyed = _keyed_columns(rows, schema, np.concatenate([*firsts, np.empty(0, np.int64)]))
    return [
        tuple(first_keys(place, values[end - len(first) : end]) for place, values in enumerate(keyed))
        for first, end in zip(firsts, ends.tolist(), strict=True)
    ]


def _keyed_columns(rows: pa.Table, schema: SortSchema, places: npt.NDArray[np.int64]) -> list[list[bytes | None]]:
    """Return what some of the rows have in each sort column that keys can hold."""
    keyed = []
    for column in schema.columns:
        if column.name not in rows.column_names:
            continue  # null in all rows, so it never decides
        writer = _writer(rows.schema.field(column.name).type)
        if writer is None:
            break
        write, stored = writer
        values = rows[column.name].take(to_arrow(places)).cast(stored).to_pylist()
        keyed.append([None if value is None else write(value) for value in values])
    return keyed


def _writer(kind: pa.DataType) -> tuple[Callable[[Any], bytes], pa.DataType] | None:
    """Return how a value becomes plain Parquet bytes, and the type that its column has to be cast to before."""
    if pa.types.is_dictionary(kind):
        return _writer(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str.encode, kind
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return bytes, kind
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        if pa.types.is_unsigned_integer(kind):
            return None
        size = 4 if kind.bit_width < 64 else 8
        return (lambda value: value.to_bytes(size, "little", signed=True)), pa.int64()
    return None

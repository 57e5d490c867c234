"""The page writer of merges, for the rows of a split: runs of codes for texts, numbers for what has a fixed width.

What it does not take, such as nested values and texts that hardly repeat, becomes chunks by pyarrow.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from windrow.model.numbers import from_arrow, validity
from windrow.model.points import is_text
from windrow.model.settings import TableSettings
from windrow.model.sort_schema import Direction, SortSchema
from windrow.parquet.chunk_writer import EncodedChunk
from windrow.parquet.file_writer import FileSchema, FileWriter
from windrow.parquet.footer import SortingColumn
from windrow.parquet.page_reader import Coded, Fixed
from windrow.splits.column_plans import ColumnPlan, Way, created_by, encode, plan_columns
from windrow.splits.encodings import Encodings
from windrow.splits.layout import GRANULE_ROWS, ROW_GROUP_ROWS

__all__ = ["write_pages"]


def write_pages(
    rows: pa.Table,
    described: pa.Schema,
    settings: TableSettings,
    encodings: Encodings,
    key_value: Mapping[str, str],
    row_group_rows: int = ROW_GROUP_ROWS,
) -> memoryview:
    """The bytes of a file of sorted rows, whose columns are described as readers are to see them."""
    schema = _file_schema(described.serialize().to_pybytes())
    groups = [min(row_group_rows, rows.num_rows - start) for start in range(0, rows.num_rows, row_group_rows)]
    sink = io.BytesIO()
    writer = FileWriter(sink, schema, _sorting_columns(schema, settings.sort))
    columns = [
        _chunks(rows[column.name], column, groups, encodings)
        for column in plan_columns(schema, blooms=settings.bloom_filters)
    ]
    for count, chunks in zip(groups, zip(*columns, strict=True), strict=True):
        writer.append(count, [chunk for leaves in chunks for chunk in leaves])
    writer.finish(key_value)
    return sink.getbuffer()


@lru_cache(maxsize=64)
def _file_schema(stored: bytes) -> FileSchema:
    """What all files of a schema have in common; by its bytes, since schemas are equal whatever their field ids are."""
    return FileSchema(pa.ipc.read_schema(pa.py_buffer(stored)), created_by())


def _chunks(
    values: pa.ChunkedArray, column: ColumnPlan, groups: Sequence[int], encodings: Encodings
) -> list[list[EncodedChunk]]:
    """The chunks of a column: by our own page writer, as far as it takes such values."""
    if pa.types.is_dictionary(values.type) and is_text(values.type):
        return encode(_coded(values), replace(column, way=Way.CODED), groups, GRANULE_ROWS)
    if column.way is Way.FIXED and column.dtype is not None and not _is_converted(values.type):
        return encode(_fixed(values, column.dtype), column, groups, GRANULE_ROWS)
    encoding = encodings["column_encoding"].get(column.name)
    if encoding is None and not any(_is_of(path, column.name) for path in encodings["use_dictionary"]):
        encoding = "PLAIN"
    return encode(values, replace(column, way=Way.ARROW), groups, GRANULE_ROWS, encoding)


def _is_of(path: str, column: str) -> bool:
    return path == column or path.startswith(f"{column}.")


def _sorting_columns(file: FileSchema, schema: SortSchema) -> list[SortingColumn]:
    """A null is greater than any value: last when ascending, first when descending."""
    first_leaf = {leaf.path[0]: leaf.index for leaf in reversed(file.footer.leaves)}
    return [
        SortingColumn(first_leaf[column.name], descending, descending)
        for column in schema.columns
        if column.name in first_leaf
        for descending in [column.direction is Direction.DESCENDING]
    ]


def _is_converted(kind: pa.DataType) -> bool:
    """Whether a file holds other numbers than Arrow: it has no seconds."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_time32(kind)) and kind.unit == "s"


def _coded(values: pa.ChunkedArray) -> Coded:
    """Runs of codes; the dictionary is in order and holds each text once."""
    from windrow.kernels.pages import join_rows

    array = _one_array(values)
    codes = from_arrow(array.indices.cast(pa.int32()), np.int32)
    if array.null_count:
        codes = np.where(validity(array), codes, np.int32(-1))
    runs = int(np.count_nonzero(codes[1:] != codes[:-1])) + 1
    out, ends = np.empty(runs, np.int32), np.empty(runs, np.int64)
    join_rows(np.ascontiguousarray(codes), out, ends)
    return Coded(out, ends, array.dictionary.cast(pa.large_binary()))


def _fixed(values: pa.ChunkedArray, dtype: np.dtype[np.generic]) -> Fixed:
    """Numbers as a file holds them: those of one or two bytes take four."""
    array = _one_array(values)
    width = array.type.bit_width // 8
    numbers = from_arrow(array, np.dtype(f"{dtype.kind}{width}")).astype(dtype, copy=False)
    return Fixed(numbers.view(f"u{dtype.itemsize}"), validity(array).astype(np.uint8) if array.null_count else None)


def _one_array(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks)

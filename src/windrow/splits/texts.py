"""Text by its distinct values: what repeats is held as codes, from the rows of a task to the pages of a split.

Codes are sorted, moved and written for a fraction of what text costs. A dictionary is in order, holds each value once
and no null, so that its first and last value are the bounds of the column once values without rows are dropped.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.model.ordering import encoded
from windrow.model.points import is_text

__all__ = ["by_row_group", "coded", "plain_schema", "values_of", "with_codes"]

ROWS_A_TEXT = 2
"""Text is held as codes from so many rows for each value on: that is rarely larger than plain text then."""


def coded(rows: pa.Table) -> pa.Table:
    """Return the rows in one chunk, with text that repeats as codes."""
    columns = [_coded(column) if is_text(column.type) else _one_chunk(column) for column in rows.columns]
    return pa.table(columns, names=rows.column_names)


def with_codes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with text that repeats as codes of values in any order, which takes less memory to hold."""
    arrays, fields = list(batch.columns), list(batch.schema)
    for place, field in enumerate(fields):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            array = arrays[place].dictionary_encode()
            if _repeats(len(array.dictionary), len(array)):
                arrays[place], fields[place] = array, field.with_type(array.type)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata))


def by_row_group(rows: pa.Table, row_group_rows: int) -> pa.Table:
    """Return coded rows in chunks of a row group each, with dictionaries that hold the values of their rows only.

    Text that does not repeat within row groups is plain again.
    """
    starts = range(0, rows.num_rows, row_group_rows)
    columns = {}
    for name in rows.column_names:
        column = rows[name]
        if pa.types.is_dictionary(column.type) and is_text(column.type):
            array = _one_chunk(column)
            chunks = [_with_own_values(array.slice(start, row_group_rows)) for start in starts]
            column = pa.chunked_array(chunks, column.type)
            if not _repeats(sum(len(chunk.dictionary) for chunk in chunks), len(column), len(chunks)):
                column = column.cast(column.type.value_type)
        columns[name] = column
    return pa.table(columns)


def values_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values among which are all distinct ones of a column that `by_row_group` gave."""
    if not pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([chunk.dictionary for chunk in column.chunks], column.type.value_type)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as readers are to see them: the type of the values instead of codes."""
    return pa.schema([field.with_type(_plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _repeats(values: int, rows: int, groups: int = 1) -> bool:
    """Say whether codes pay; each group may have one value for nothing, so that a single row has a dictionary too."""
    return (values - groups) * ROWS_A_TEXT <= rows


def _coded(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())  # Arrow has no dictionaries of views
    array = _one_chunk(encoded(column))
    places, values = _in_order(array.dictionary)
    if not _repeats(len(values), len(column)):
        return _one_chunk(column.cast(_plain(column.type)))
    return pa.DictionaryArray.from_arrays(pc.take(places, array.indices), values)


def _in_order(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return where each value goes, and the values in order, each once and without null."""
    distinct = pc.unique(values).drop_null()
    ordered = distinct.take(pc.array_sort_indices(distinct))
    return pc.index_in(values, ordered), ordered


def _with_own_values(array: pa.DictionaryArray) -> pa.DictionaryArray:
    count = len(array.dictionary)
    codes = np.asarray(pc.fill_null(array.indices, count))
    used = np.bincount(codes, minlength=count + 1)[:count] > 0
    if used.all():
        return array
    places = pa.array((np.cumsum(used) - 1).astype(np.int32))
    return pa.DictionaryArray.from_arrays(pc.take(places, array.indices), array.dictionary.filter(pa.array(used)))

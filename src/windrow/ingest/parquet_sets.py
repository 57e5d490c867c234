"""Sets of small Parquet files as one batch: the pages of a column are decoded by one call, from however many files.

Text comes as codes of one dictionary. Files with columns that are neither text nor of fixed width, or with pages that
only pyarrow reads, are not taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.model.numbers import to_arrow
from windrow.model.widening import plain
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.page_reader import Chunks, Coded, CodedRows, Fixed, scan_pages, unpack, unreadable
from windrow.parquet.schema import Leaf, PhysicalType

__all__ = ["decoded_set", "is_decodable"]

_WIDTHS = {PhysicalType.INT32: 4, PhysicalType.INT64: 8, PhysicalType.FLOAT: 4, PhysicalType.DOUBLE: 8}


def is_decodable(schema: pa.Schema, footer: ParquetFooter) -> bool:
    """Whether files of a schema can be taken: flat columns of text, numbers and times."""
    return len(footer.leaves) == len(schema) and all(
        leaf.path == (field.name,) and leaf.max_repetition == 0 and leaf.max_definition <= 1 and _fits(field.type, leaf)
        for field, leaf in zip(schema, footer.leaves, strict=True)
    )


def _fits(kind: pa.DataType, leaf: Leaf) -> bool:
    """Whether the values of a column lie in its pages as they do in Arrow's memory, or as 32 bits for fewer."""
    physical = leaf.element.physical_type
    kind = plain(kind)
    if pa.types.is_string(kind):
        return physical == PhysicalType.BYTE_ARRAY
    types = pa.types
    is_number = types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind) or types.is_date32(kind)
    is_time = (types.is_timestamp(kind) or types.is_time(kind)) and kind.unit != "s"
    if not (is_number or is_time) or physical not in _WIDTHS:
        return False
    return bool(_WIDTHS[physical] == max(kind.bit_width // 8, 4))


def decoded_set(
    data: bytes, starts: Sequence[int], footers: Sequence[ParquetFooter], names: Sequence[str], schema: pa.Schema
) -> pa.RecordBatch | None:
    """Return the rows of files with one schema, which begin in the data at the given places.

    Nothing is returned when only pyarrow reads one of the pages.
    """
    chunks = _chunks(starts, footers, names)
    outside = (chunks.starts < 0) | (chunks.ends < chunks.starts) | (chunks.ends > len(data))
    if bool(outside.any()) or bool((chunks.values != chunks.last).any()):
        return None
    pages = scan_pages(np.frombuffer(data, np.uint8), chunks)
    if unreadable(pages, chunks).size:
        return None
    count = len(chunks.names) // len(schema)
    cuts = np.searchsorted(pages["chunk"], np.arange(0, len(chunks.names) + 1, count))
    columns: list[pa.Array] = []
    for place, field in enumerate(schema):
        own = pages[cuts[place] : cuts[place + 1]].copy()
        own["chunk"] -= place * count
        unpacked = unpack(memoryview(data), own, chunks[place * count : (place + 1) * count])
        kind = plain(field.type)
        if pa.types.is_string(kind):
            columns.append(_texts(unpacked.coded(), kind))
        else:
            width = max(kind.bit_width // 8, 4)
            columns.append(_numbers(unpacked.fixed(np.dtype(f"u{width}")), kind))
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _chunks(starts: Sequence[int], footers: Sequence[ParquetFooter], names: Sequence[str]) -> Chunks:
    """All chunks, column by column, as they lie in the data."""
    groups = [footer.row_group_rows.size for footer in footers]
    records = np.concatenate([footer.chunks for footer in footers]).T
    columns = len(records)
    begins = (chunk_starts(records) + np.repeat(np.array(starts, np.int64), groups)).reshape(-1)
    rows = np.tile(np.concatenate([footer.row_group_rows for footer in footers]), columns)
    records, nullable = records.reshape(-1), [leaf.max_definition > 0 for leaf in footers[0].leaves]
    fixed = [leaf.element.physical_type != PhysicalType.BYTE_ARRAY for leaf in footers[0].leaves]
    return Chunks(
        starts=begins,
        ends=begins + records["total_compressed_size"],
        values=records["num_values"].astype(np.int64),
        codecs=records["codec"].astype(np.int64),
        nullable=np.repeat(nullable, begins.size // columns),
        fixed=np.repeat(fixed, begins.size // columns),
        first=np.zeros(begins.size, np.int64),
        last=rows,
        names=[name for name, count in zip(names, groups, strict=True) for _ in range(count)] * columns,
    )


def _texts(values: Coded | CodedRows, kind: pa.DataType) -> pa.Array:
    codes = values.codes
    if isinstance(values, Coded):
        codes = np.repeat(codes, np.diff(values.ends, prepend=0))
    is_null = codes < 0
    indices = to_arrow(codes, is_null if is_null.any() else None)
    return pa.DictionaryArray.from_arrays(indices, values.texts.view(pa.large_string()).cast(kind))


def _numbers(values: Fixed, kind: pa.DataType) -> pa.Array:
    numbers, width = values.values, kind.bit_width // 8
    if width < numbers.itemsize:
        numbers = numbers.astype(f"u{width}")
    nulls = None if values.valid is None else pa.py_buffer(np.packbits(values.valid, bitorder="little"))
    return pa.Array.from_buffers(kind, numbers.size, [nulls, pa.py_buffer(numbers)])

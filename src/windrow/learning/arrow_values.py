"""Values of pages, as they are written there, as Arrow arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from windrow.kernels.texts import copy_texts
from windrow.learning.scanned_files import FlatColumn
from windrow.parquet.decimals import decimals_of_bytes
from windrow.parquet.schema import PhysicalType

__all__ = ["WIDEST_DECIMAL", "decimal_array", "fixed_array", "text_array", "word_of"]

WIDEST_DECIMAL = 16
_WORDS: dict[PhysicalType, type[np.unsignedinteger[Any]]] = {
    PhysicalType.INT32: np.uint32,
    PhysicalType.INT64: np.uint64,
    PhysicalType.FLOAT: np.uint32,
    PhysicalType.DOUBLE: np.uint64,
}


def word_of(column: FlatColumn) -> type[np.unsignedinteger[Any]] | None:
    """The words that values of a column are written in; None where Arrow makes something else of them."""
    physical, kind = column.leaf.element.physical_type, column.type
    word = None if physical is None else _WORDS.get(physical)
    if word is None or types.is_boolean(kind):
        return None
    width = np.dtype(word).itemsize
    if types.is_decimal(kind):
        return word if kind.byte_width == WIDEST_DECIMAL else None
    is_narrow = types.is_integer(kind) and physical is PhysicalType.INT32
    is_alike = types.is_primitive(kind) and kind.bit_width == 8 * width
    return word if is_narrow or is_alike else None


def fixed_array(column: FlatColumn, words: npt.NDArray[Any], valid: npt.NDArray[np.uint8] | None = None) -> pa.Array:
    """Values in the words that they are written in, of a column that has some; or decimals of 16 bytes."""
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    kind = column.type
    if types.is_decimal(kind):
        if words.dtype.itemsize != WIDEST_DECIMAL:
            wide = np.empty((words.size, 2), np.int64)
            wide[:, 0] = words.view(np.dtype(f"i{words.dtype.itemsize}"))
            wide[:, 1] = wide[:, 0] >> 63
            words = wide
        return pa.Array.from_buffers(kind, len(words), [bitmap, pa.py_buffer(np.ascontiguousarray(words))])
    if kind.bit_width == 8 * words.dtype.itemsize:
        return pa.Array.from_buffers(kind, words.size, [bitmap, pa.py_buffer(words)])
    narrow = words.view(np.int32).astype(kind.to_pandas_dtype())
    return pa.Array.from_buffers(kind, words.size, [bitmap, pa.py_buffer(narrow)])


def decimal_array(column: FlatColumn, raw: npt.NDArray[np.uint8], width: int) -> pa.Array:
    """Decimals from numbers of a width, with the high byte first."""
    return fixed_array(column, decimals_of_bytes(raw.reshape(-1, width)))


def text_array(
    column: FlatColumn,
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
) -> pa.Array:
    """Texts, or bytes, that stand at places of some data."""
    out, ends = np.empty(int(lengths.sum()), np.uint8), np.zeros(lengths.size + 1, np.int64)
    copy_texts(data, offsets, lengths, 0, out, ends[1:])
    kind = pa.large_string() if types.is_string(column.type) else pa.large_binary()
    return pa.Array.from_buffers(kind, lengths.size, [None, pa.py_buffer(ends), pa.py_buffer(out)])

"""Numbers between numpy and Arrow, by their memory alone.

Arrow's own ways ask whether the values may be pandas', and load it to find out: a fifth of a second for a process that
has no use for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["from_arrow", "longs", "to_arrow", "validity"]


def to_arrow(numbers: npt.NDArray[Any], null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers, or truths, as an Arrow array; null where the mask says so."""
    kind = pa.from_numpy_dtype(numbers.dtype)
    stored = np.packbits(numbers, bitorder="little") if numbers.dtype == np.bool_ else np.ascontiguousarray(numbers)
    nulls = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(kind, numbers.size, [nulls, pa.py_buffer(stored)])


def from_arrow(values: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """The memory of an array of fixed width as numbers; what stands for null may be anything."""
    width = np.dtype(dtype).itemsize
    if not len(values):
        return np.empty(0, dtype)
    return np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * width)


def longs(values: pa.Array | pa.ChunkedArray, null: int = 0) -> npt.NDArray[np.int64]:
    """Numbers that fit in 64 bits, one for each value; a null is given its own."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [np.empty(0, np.int64)]
    for chunk in chunks:
        numbers = from_arrow(chunk.cast(pa.int64()), np.int64)
        parts.append(np.where(validity(chunk), numbers, null) if chunk.null_count else numbers)
    return parts[1] if len(parts) == 2 else np.concatenate(parts)


def validity(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values are not null."""
    if not values.null_count:
        return np.ones(len(values), np.bool_)
    bits = values.is_valid()
    stored = np.frombuffer(bits.buffers()[1], np.uint8)
    return np.unpackbits(stored, count=bits.offset + len(bits), bitorder="little")[bits.offset :].astype(np.bool_)

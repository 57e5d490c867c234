"""Arrow arrays as the numbers and byte strings that statistics compare and hash."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from windrow.kernels.extents import extent_of_texts
from windrow.pruning.types import (
    BINARY,
    DATE,
    FLOAT,
    OPAQUE,
    SIGNED,
    TEXT,
    TIMESTAMPS,
    UNSIGNED,
    ColumnType,
    Family,
    decimal,
)

__all__ = [
    "SHORT_DECIMAL",
    "Extent",
    "column_type_of",
    "decimals_of",
    "extent_of",
    "is_bytes",
    "numbers_of",
    "settled_type",
    "texts_of",
    "used_values",
    "with_words",
    "without_views",
]

Extent = tuple[Any, Any]
"""The least and the greatest value, as `ColumnType` stores them; None for both where there is none."""

Texts = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.int64]]
"""Bytes, the same as words, and where each text begins."""

SHORT_DECIMAL = 18
"""So many digits have room in 64 bits."""
_TEXTS = (types.is_string, types.is_large_string, types.is_string_view)
_BINARIES = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are texts or byte strings."""
    return any(test(kind) for test in _TEXTS + _BINARIES)


def column_type_of(kind: pa.DataType) -> ColumnType:
    """How the values of a type compare with the literals of a predicate."""
    if types.is_dictionary(kind):
        return column_type_of(kind.value_type)
    if any(test(kind) for test in _TEXTS):
        return TEXT
    if types.is_timestamp(kind):
        return TIMESTAMPS[kind.unit]
    if types.is_decimal(kind):
        return decimal(kind.scale, wide=kind.precision > SHORT_DECIMAL)
    return next((column_type for test, column_type in _TYPES if test(kind)), OPAQUE)


_TYPES = (
    (types.is_uint64, UNSIGNED),
    (types.is_integer, SIGNED),
    (types.is_boolean, UNSIGNED),
    (types.is_floating, FLOAT),
    (types.is_date32, DATE),
    (types.is_date64, TIMESTAMPS["ms"]),
    *((test, BINARY) for test in _BINARIES),
)


def settled_type(kind: pa.DataType) -> pa.DataType:
    """The type that statistics have for all layouts in which engines decode a column."""
    if types.is_dictionary(kind):
        return settled_type(kind.value_type)
    if any(test(kind) for test in _TEXTS):
        return pa.string()
    return pa.binary() if is_bytes(kind) and not types.is_fixed_size_binary(kind) else kind


def without_views(values: pa.Array) -> pa.Array:
    """The same values in a layout that Arrow computes with."""
    kind = values.type
    if types.is_dictionary(kind):
        plain = without_views(values.dictionary)
        return values if plain is values.dictionary else pa.DictionaryArray.from_arrays(values.indices, plain)
    if types.is_string_view(kind):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if types.is_binary_view(kind) else values


def used_values(values: pa.Array) -> pa.Array:
    """The values that are not null; of a dictionary each one that is used, once."""
    values = without_views(values)
    if types.is_dictionary(values.type):
        codes = values.indices.drop_null().to_numpy(zero_copy_only=False)
        used = np.zeros(len(values.dictionary), bool)
        used[codes] = True
        entries = values.dictionary
        return (entries if used.all() else entries.filter(pa.array(used))).drop_null()
    return values.drop_null() if values.null_count else values


def numbers_of(values: pa.Array) -> npt.NDArray[Any]:
    """Values of fixed width, without nulls: 64-bit integers in the unit of their type, or doubles."""
    kind = values.type
    dtype: type[Any]
    if types.is_uint64(kind) or types.is_boolean(kind):
        dtype = np.uint64
    elif types.is_floating(kind):
        dtype = np.float64
    else:
        dtype = np.int64
        if not types.is_integer(kind):
            values = values.view(pa.int32() if types.is_date32(kind) or types.is_time32(kind) else pa.int64())
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    return numbers


def texts_of(values: pa.Array) -> Texts:
    """Texts without nulls as their bytes, as many of them as whole words, and where each text begins and the last ends.

    The bytes are of one kind of array, so that one signature of a kernel is compiled.
    """
    kind = values.type
    if types.is_fixed_size_binary(kind):
        bounds = (np.arange(len(values) + 1, dtype=np.int64) + values.offset) * kind.byte_width
        buffer = values.buffers()[1]
    else:
        width = np.int64 if types.is_large_string(kind) or types.is_large_binary(kind) else np.int32
        offsets = np.frombuffer(values.buffers()[1] or bytes(8), width)[values.offset :]
        bounds, buffer = offsets[: len(values) + 1].astype(np.int64), values.buffers()[2]
    return with_words(np.frombuffer(buffer or b"", np.uint8), bounds)


def with_words(data: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]) -> Texts:
    """Bytes and bounds, and between them the bytes as words."""
    data = data.view()
    data.flags.writeable = False
    return data, data[: data.size // 8 * 8].view(np.uint64), bounds


def decimals_of(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Decimals without their point: as 64-bit integers, right where they have room, and all of their bytes."""
    width = values.type.byte_width
    raw = np.frombuffer(values.buffers()[1] or b"", np.uint8)[values.offset * width :][: len(values) * width]
    table = raw.reshape(-1, width)
    if width < 8:
        return raw.view(np.int32).astype(np.int64), table
    return np.ascontiguousarray(raw.view(np.int64)[:: width // 8]), table


def extent_of(values: pa.Array) -> tuple[Extent, bool]:
    """The least and the greatest of some values without nulls, NaN left out, and whether there is a NaN."""
    column_type, has_nan = column_type_of(values.type), False
    if column_type is OPAQUE or not len(values):
        return (None, None), has_nan
    if is_bytes(values.type):
        return _extent_of_bytes(values), has_nan
    if types.is_decimal(values.type):
        return _extent_of_decimals(values, column_type), has_nan
    numbers = numbers_of(values)
    if column_type.family is Family.FLOAT:
        missing = np.isnan(numbers)
        has_nan = bool(missing.any())
        numbers = numbers[~missing] if has_nan else numbers
    return ((numbers.min(), numbers.max()) if numbers.size else (None, None)), has_nan


def _extent_of_bytes(values: pa.Array) -> Extent:
    data, words, bounds = texts_of(values)
    least, greatest = extent_of_texts(data, words, bounds)
    low, high = (data[bounds[place] : bounds[place + 1]].tobytes() for place in (least, greatest))
    return low, high


def _extent_of_decimals(values: pa.Array, column_type: ColumnType) -> Extent:
    if column_type.dtype != "object":
        numbers, _ = decimals_of(values)
        return numbers.min(), numbers.max()
    ends = pc.min_max(values)
    both = pa.array([ends["min"].as_py(), ends["max"].as_py()], values.type)
    low, high = (int.from_bytes(raw.tobytes(), "little", signed=True) for raw in decimals_of(both)[1])
    return low, high

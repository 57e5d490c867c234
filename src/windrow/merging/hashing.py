"""What rows hash to, whatever their order: sums of 128 bits, so that a row that comes twice counts twice.

A null adds nothing, so that a column which is null and one which is missing are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.model.numbers import from_arrow, to_arrow, validity

__all__ = ["column_hashes", "row_hashes", "sum_of_rows", "text_hashes"]

Words = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)
_LANE = np.uint64(0xD6E8FEB86659FD93)
_MASK = (1 << 128) - 1


def sum_of_rows(table: pa.Table, columns: list[str]) -> int:
    """The sum of the hashes of all rows over some columns, modulo 2**128; columns that the table lacks are null."""
    rows = row_hashes(table, columns)
    return ((_exact_sum(_mixed(rows ^ _ODD)) << 64) + _exact_sum(_mixed(rows * _LANE))) & _MASK


def _exact_sum(numbers: Words) -> int:
    """A sum that is not cut off at 64 bits."""
    low, high = numbers & np.uint64(0xFFFFFFFF), numbers >> np.uint64(32)
    return int(low.sum()) + (int(high.sum()) << 32)


def row_hashes(table: pa.Table, columns: list[str]) -> Words:
    """A hash of each row."""
    rows = np.zeros(table.num_rows, np.uint64)
    own = dict(zip(table.column_names, table.columns, strict=True))
    for name in columns:
        if name in own:
            _add_salted(rows, column_hashes(own[name]), name)
    return rows


def column_hashes(values: pa.ChunkedArray) -> tuple[Words, npt.NDArray[np.bool_]]:
    """The hash of each value of a column, and which are not null."""
    parts = [_array(chunk) for chunk in values.chunks] or [(np.zeros(0, np.uint64), np.zeros(0, np.bool_))]
    return np.concatenate([part for part, _ in parts]), np.concatenate([valid for _, valid in parts])


def text_hashes(texts: pa.LargeBinaryArray) -> Words:
    """The hash of each text; there are no nulls."""
    # the hash of the empty text is 0, which would add as much as a null
    return _word_array(_mixed(_texts(texts) + _ODD))


def _add_salted(rows: Words, hashed: tuple[Words, npt.NDArray[np.bool_]], name: str) -> None:
    """Add hashes that tell the same value of different columns apart; a null adds nothing."""
    from windrow.kernels.hashes import add_salted

    salt = np.uint64(int.from_bytes(name.encode(), "little") % (2**64 - 59))
    values, valid = hashed
    add_salted(values, valid, _mixed(np.array([salt]) + _ODD)[0], rows)


def _mixed(numbers: Any) -> Any:
    """Spread every bit over all."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(32))) * _LANE
        numbers = (numbers ^ (numbers >> np.uint64(29))) * _ODD
        return numbers ^ (numbers >> np.uint64(32))


def _array(values: pa.Array) -> tuple[Words, npt.NDArray[np.bool_]]:
    """The hash of each value, and which are not null."""
    valid = validity(values)
    for fits, hashed in _HASHES:
        if fits(values.type):
            return hashed(values), valid
    return _texts(values.cast(pa.binary())), valid


def _numbers(values: pa.Array) -> Words:
    """The bits of numbers, times and truths."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    return _word_array(_mixed(from_arrow(values, f"u{values.type.bit_width // 8}").astype(np.uint64)))


def _word_array(numbers: Any) -> Words:
    return np.asarray(numbers, dtype=np.uint64)


def _texts(values: pa.Array) -> Words:
    from windrow.kernels.texts import hash_texts

    values = pa.concat_arrays([values]) if values.offset == 0 else values.take(to_arrow(np.arange(len(values))))
    if not pa.types.is_large_binary(values.type):
        values = values.cast(pa.large_binary())
    offsets = np.frombuffer(values.buffers()[1], np.int64)[: len(values) + 1]
    if len(values) == 0:
        return np.zeros(0, np.uint64)
    data = values.buffers()[2]
    held = b"" if data is None else memoryview(data)
    words = np.frombuffer(b"".join([held, bytes(-len(held) % 8 + 16)]), np.uint64)
    out = np.empty(len(values), np.uint64)
    hash_texts(words, offsets[:-1].copy(), np.diff(offsets), out)
    return out


def _coded(values: pa.DictionaryArray) -> Words:
    hashed, _ = _array(values.dictionary)
    codes = np.where(validity(values), from_arrow(values.indices.cast(pa.int64()), np.int64), len(hashed))
    return _word_array(np.append(hashed, np.uint64(0))[codes])


def _lists(values: pa.Array) -> Words:
    """Elements count by their place; an empty list is not a null one."""
    if pa.types.is_map(values.type):
        elements: pa.Array = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
    elif pa.types.is_fixed_size_list(values.type):
        values = values.cast(pa.large_list(values.type.value_type))
        elements = values.values
    else:
        elements = values.values
    from windrow.kernels.hashes import sum_elements

    offsets = np.asarray(values.offsets).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    hashed, lists = np.zeros(last - first, np.uint64), np.empty(len(values), np.uint64)
    _add_salted(hashed, _array(elements.slice(first, last - first)), "element")
    sum_elements(hashed, offsets - first, lists)
    return lists


def _structs(values: pa.StructArray) -> Words:
    total = np.zeros(len(values), np.uint64)
    for number, child in enumerate(values.flatten()):
        _add_salted(total, _array(child), values.type.field(number).name)
    return total


def _no_values(values: pa.Array) -> Words:
    return np.zeros(len(values), np.uint64)


_types = pa.types


def _is_word(kind: pa.DataType) -> bool:
    numeric = _types.is_integer(kind) or _types.is_floating(kind) or _types.is_boolean(kind)
    return numeric or (_types.is_temporal(kind) and not _types.is_interval(kind))


_HASHES: list[tuple[Callable[[pa.DataType], bool], Callable[[Any], Words]]] = [
    (_types.is_null, _no_values),
    (_is_word, _numbers),
    (_types.is_dictionary, _coded),
    (_types.is_struct, _structs),
    (lambda kind: _types.is_list(kind) or _types.is_large_list(kind) or _types.is_map(kind), _lists),
    (_types.is_fixed_size_list, _lists),
    (_types.is_fixed_size_binary, lambda values: _texts(values.cast(pa.binary()))),
    (_types.is_decimal, lambda values: _texts(pc.cast(values, pa.string()).cast(pa.binary()))),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda values: _array(values.storage)[0]),
    (lambda _: True, _texts),
]

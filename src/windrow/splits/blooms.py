"""Bloom filters of columns, from what is in memory when chunks are encoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.parquet.bloom import BloomFilter, hash_binary, stored_bloom
from windrow.parquet.page_reader import Coded, Fixed
from windrow.splits.layout import ROW_GROUP_ROWS

__all__ = ["BLOOM_FILTER", "FALSE_POSITIVES", "blooms", "has_filter"]

Hashes = npt.NDArray[np.uint64]

FALSE_POSITIVES = 0.01
BLOOM_FILTER = {"ndv": ROW_GROUP_ROWS, "fpp": FALSE_POSITIVES}
"""How large a filter of a row group may be: for so many distinct values, and so many others that pass by mistake."""
_ZEROS = {4: 1 << 31, 8: 1 << 63}
"""The bits of a negative zero, by the width of a number."""


def has_filter(kind: pa.DataType) -> bool:
    """Say whether values of a type can be looked up in a bloom filter."""
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_timestamp(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def blooms(values: Coded | Fixed, rows: Sequence[int]) -> Iterator[bytes]:
    """The filter of each row group of so many rows, header included."""
    texts = np.zeros(0, np.uint64)
    if isinstance(values, Coded) and len(values.texts):
        bounds = np.frombuffer(values.texts.buffers()[1], np.int64)[values.texts.offset :][: len(values.texts) + 1]
        texts = hash_binary(values.texts.buffers()[2] or b"", bounds)
    for first, last in pairwise(accumulate(rows, initial=0)):
        bloom = BloomFilter.for_distinct(ROW_GROUP_ROWS, false_positives=FALSE_POSITIVES)
        if isinstance(values, Coded):
            bloom.insert(_of_texts(values, texts, first, last))
        else:
            bloom.insert(_of_numbers(values, first, last))
        yield stored_bloom(bloom.folded(false_positives=FALSE_POSITIVES))


def _of_texts(values: Coded, texts: Hashes, first: int, last: int) -> Hashes:
    """The hashes of the texts of some rows, each once."""
    low, high = np.searchsorted(values.ends, first, side="right"), np.searchsorted(values.ends, last)
    used = np.unique(values.codes[low : high + 1])
    return texts[used[used >= 0]]


def _of_numbers(values: Fixed, first: int, last: int) -> Hashes:
    """The hashes of the numbers of some rows as they are stored; who looks for a zero need not know its sign."""
    numbers = values.values[first:last]
    if values.valid is not None:
        numbers = numbers[values.valid[first:last] != 0]
    width = numbers.itemsize
    if (numbers == _ZEROS[width]).any():
        numbers = np.append(numbers, numbers.dtype.type(0))
    return hash_binary(numbers.tobytes(), np.arange(0, numbers.size * width + 1, width))

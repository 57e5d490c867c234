"""The granule index of a row group: pages that are cut at the same rows in every column, and the key each starts with.

With it a scan can take single pages out of a file: it knows where page `g` of every column is and which keys it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InvalidInput
from windrow.sidecar import layout
from windrow.sidecar.content import Buffer
from windrow.sidecar.structure import damaged


class FirstKeys(NamedTuple):
    """The first value of one sort column in every granule: plain Parquet bytes, one after the other."""

    column: int
    ends: NDArray[np.uint32]
    nulls: NDArray[np.bool_]
    data: bytes

    def values(self) -> list[bytes | None]:
        """The value of every granule; `None` for a null."""
        starts = np.concatenate([[0], self.ends[:-1]]) if len(self.ends) else self.ends
        cells = zip(starts.tolist(), self.ends.tolist(), self.nulls.tolist(), strict=True)
        return [None if null else self.data[start:end] for start, end, null in cells]


@dataclass(frozen=True, eq=False)
class GranuleIndex:
    """The granules of one row group."""

    rows: NDArray[np.uint32]
    """Rows of every granule."""
    page_offsets: NDArray[np.uint64]
    """Where the data page is in the Parquet file, by column and granule."""
    page_sizes: NDArray[np.uint32]
    """Bytes of the data page with its header, by column and granule."""
    keys: tuple[FirstKeys, ...] = ()
    """The first value of each sort column, in sort order; may be fewer columns than the file is sorted by."""
    nested_columns: NDArray[np.uint32] | None = None
    """Columns whose pages hold another number of values than rows."""
    nested_values: NDArray[np.uint32] | None = None
    """Values of every page of these columns, by column and granule."""
    derived: dict[object, Any] = field(default_factory=dict, repr=False)
    """What readers worked out from it; entries are never changed."""

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The position of every granule's first row in its row group."""
        return np.cumsum(self.rows, dtype=np.int64) - self.rows


def first_keys(column: int, values: list[bytes | None]) -> FirstKeys:
    """The keys of one sort column from the value that each granule starts with."""
    lengths = [0 if value is None else len(value) for value in values]
    nulls = np.array([value is None for value in values], dtype=bool)
    data = b"".join(value for value in values if value is not None)
    return FirstKeys(column, np.cumsum(lengths, dtype="<u4"), nulls, data)


def encode_granules(index: GranuleIndex) -> bytes:
    """The bytes of a granule index, as they lie out of line in a row group's block."""
    count = len(index.rows)
    nested = np.empty(0, "<u4") if index.nested_columns is None else index.nested_columns
    shape = (len(nested), count)
    values = np.empty(shape, "<u4") if index.nested_values is None else index.nested_values
    if index.page_sizes.shape != index.page_offsets.shape or index.page_sizes.shape[1:] != (count,):
        raise InvalidInput(f"granule index: pages of shape {index.page_offsets.shape} for {count} granules")
    if values.shape != shape or any(len(key.ends) != count for key in index.keys):
        raise InvalidInput(f"granule index: keys and nested values must have one entry for each of {count} granules")
    key_bytes = sum(len(key.data) for key in index.keys)
    parts = [
        np.array([(count, len(index.keys), key_bytes, len(nested))], layout.GRANULES),
        index.page_offsets.astype("<u8"),
        index.page_sizes.astype("<u4"),
        index.rows.astype("<u4"),
        nested.astype("<u4"),
        values.astype("<u4"),
        np.array([key.column for key in index.keys], "<u4"),
        *(np.array([len(key.data)], "<u4") for key in index.keys),
        *(key.ends.astype("<u4") for key in index.keys),
        *(key.nulls.astype("u1") for key in index.keys),
    ]
    return b"".join([part.tobytes() for part in parts] + [key.data for key in index.keys])


class _Cursor:
    """Takes arrays off a buffer, one after the other, never past the limit."""

    def __init__(self, buffer: Buffer, position: int, limit: int, name: str) -> None:
        self.buffer, self.position, self.limit, self.name = buffer, position, limit, name

    def take(self, dtype: str, *shape: int) -> NDArray[Any]:
        count = int(np.prod(shape, dtype=object))
        size = count * np.dtype(dtype).itemsize
        if self.position + size > self.limit:
            problem = f"{size} bytes do not fit before byte {self.limit}"
            raise damaged(self.name, "granule index", self.position, problem)
        taken: NDArray[Any] = np.frombuffer(self.buffer, dtype, count, self.position).reshape(shape)
        self.position += size
        return taken


def decode_granules(buffer: Buffer, offset: int, limit: int, column_count: int, name: str) -> GranuleIndex:
    """The granule index at `offset`, as views of the buffer."""
    cursor = _Cursor(buffer, offset, limit, name)
    count, keys, key_bytes, nested = (int(n) for n in cursor.take("<u4", 4))
    page_offsets = cursor.take("<u8", column_count, count)
    page_sizes = cursor.take("<u4", column_count, count)
    rows = cursor.take("<u4", count)
    nested_columns = cursor.take("<u4", nested)
    nested_values = cursor.take("<u4", nested, count)
    columns, lengths = cursor.take("<u4", keys), cursor.take("<u4", keys)
    ends, nulls = cursor.take("<u4", keys, count), cursor.take("u1", keys, count)
    data = cursor.take("u1", key_bytes).tobytes()
    in_range = max(nested_columns.max(initial=0), columns.max(initial=0)) < max(column_count, 1)
    first = _split_keys(columns, lengths, ends, nulls, data) if keys <= column_count else None
    if first is None or not in_range:
        raise damaged(name, "granule index", offset, "keys or nested columns that contradict each other")
    return GranuleIndex(rows, page_offsets, page_sizes, first, nested_columns, nested_values)


def _split_keys(
    columns: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    ends: NDArray[np.uint32],
    nulls: NDArray[np.uint8],
    data: bytes,
) -> tuple[FirstKeys, ...] | None:
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    ascending = (ends[:, 1:] >= ends[:, :-1]).all()
    if starts[-1] != len(data) or not ascending or (ends.size and (ends[:, -1] != lengths).any()):
        return None
    cells = zip(columns.tolist(), starts[:-1].tolist(), starts[1:].tolist(), ends, nulls, strict=True)
    return tuple(FirstKeys(column, e, n.astype(bool), data[start:end]) for column, start, end, e, n in cells)

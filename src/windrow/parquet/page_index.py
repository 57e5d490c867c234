"""The page index of a chunk as arrays: where its pages are (offset index) and what they hold (column index)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from windrow.errors import Damaged
from windrow.parquet.grammar import (
    Grammar,
    Records,
    Struct,
    Table,
    bytes_,
    integer,
    list_fields,
    rows,
    span_fields,
    truth,
)

__all__ = [
    "ASCENDING",
    "DESCENDING",
    "UNORDERED",
    "ColumnIndex",
    "OffsetIndex",
    "parse_column_index",
    "parse_offset_index",
    "parse_offset_indexes",
]

UNORDERED, ASCENDING, DESCENDING = 0, 1, 2
"""How the bounds of the pages of a column index follow each other."""

_HAS_NULL_COUNTS = 1

_OFFSETS = np.dtype([("flags", "<u8"), *list_fields("pages")])
_LOCATION = np.dtype([("flags", "<u4"), ("compressed_size", "<i4"), ("offset", "<i8"), ("first_row", "<i8")])
_BOUNDS = np.dtype(
    [
        ("flags", "<u4"),
        ("boundary_order", "<i4"),
        *list_fields("null_pages"),
        *list_fields("min_values"),
        *list_fields("max_values"),
        *list_fields("null_counts"),
    ]
)
_TRUTH = np.dtype([("flags", "<u4"), ("value", "<i4")])
_NUMBER = np.dtype([("flags", "<u8"), ("value", "<i8")])
_BYTES = np.dtype([("flags", "<u8"), *span_fields("value")])

_OFFSET_INDEX = Grammar(
    "offset index",
    (
        Struct("OffsetIndex", "index", {1: rows("pages", "PageLocation")}, required=(1,)),
        Struct(
            "PageLocation",
            "pages",
            {1: integer("offset"), 2: integer("compressed_size"), 3: integer("first_row")},
            required=(1, 2, 3),
        ),
    ),
    {"index": Table(_OFFSETS, 1), "pages": Table(_LOCATION, 8)},
)

_COLUMN_INDEX = Grammar(
    "column index",
    (
        Struct(
            "ColumnIndex",
            "index",
            {
                1: rows("null_pages", "null_page"),
                2: rows("min_values", "min_value"),
                3: rows("max_values", "max_value"),
                4: integer("boundary_order"),
                5: rows("null_counts", "null_count", flag=_HAS_NULL_COUNTS),
            },
            required=(1, 2, 3, 4),
        ),
        Struct("null_page", "null_pages", {1: truth("value")}, bare=True),
        Struct("min_value", "min_values", {1: bytes_("value")}, bare=True),
        Struct("max_value", "max_values", {1: bytes_("value")}, bare=True),
        Struct("null_count", "null_counts", {1: integer("value")}, bare=True),
    ),
    {
        "index": Table(_BOUNDS, 1),
        "null_pages": Table(_TRUTH, 8),
        "min_values": Table(_BYTES, 8),
        "max_values": Table(_BYTES, 8),
        "null_counts": Table(_NUMBER, 8),
    },
)


@dataclass(frozen=True, eq=False)
class OffsetIndex:
    """Where the data pages of a chunk are."""

    offsets: npt.NDArray[np.int64]
    """Where each page begins in the file, header included."""
    compressed_sizes: npt.NDArray[np.int64]
    """How many bytes each page has in the file, header included."""
    first_rows: npt.NDArray[np.int64]
    """The first row of each page, counted within the row group."""


@dataclass(frozen=True, eq=False)
class ColumnIndex:
    """What the data pages of a chunk hold."""

    null_pages: npt.NDArray[np.bool_]
    """Whether a page holds nothing but nulls; it then has no bounds."""
    min_values: list[bytes]
    max_values: list[bytes]
    boundary_order: int
    null_counts: npt.NDArray[np.int64] | None


def parse_offset_index(data: bytes | memoryview, *, name: str) -> OffsetIndex:
    """Read an offset index from its thrift bytes; `name` is what an error calls the file."""
    return parse_offset_indexes(bytes(data), [(0, len(data))], name=name)[0]


def parse_offset_indexes(data: bytes, spans: Sequence[tuple[int, int]], *, name: str) -> list[OffsetIndex]:
    """Read several offset indexes, given where each begins and how many bytes it has, by one call."""
    starts, lengths = np.array(spans, np.int64).reshape(-1, 2).T
    if (starts < 0).any() or (lengths < 0).any() or (starts + lengths > len(data)).any():
        raise Damaged(f"{name}: an offset index lies outside of the bytes that were read; write the file again")
    tables, counts = _OFFSET_INDEX.walk_each(data, np.ascontiguousarray(starts), starts + lengths, [name] * len(starts))
    offsets, sizes, first_rows = (
        np.ascontiguousarray(tables["pages"][field], np.int64) for field in ("offset", "compressed_size", "first_row")
    )
    begins = counts["pages"]
    first = np.zeros(first_rows.size, np.bool_)
    first[begins[:-1][begins[:-1] < begins[1:]]] = True
    back = np.diff(first_rows, prepend=0) < 0
    if (back & ~first).any() or (first_rows[first] != 0).any():
        raise Damaged(f"{name}: offset index, the first rows of the pages do not ascend from 0; write the file again")
    if (sizes < 0).any() or (offsets < 0).any():
        raise Damaged(f"{name}: offset index, a page has a negative size or offset; write the file again")
    return [
        OffsetIndex(offsets[low:high], sizes[low:high], first_rows[low:high]) for low, high in pairwise(begins.tolist())
    ]


def parse_column_index(data: bytes | memoryview, *, name: str) -> ColumnIndex:
    """Read a column index from its thrift bytes; `name` is what an error calls the file."""
    source = bytes(data)
    tables = _COLUMN_INDEX.walk(source, name=name).tables
    flags = int(tables["index"][0]["flags"])
    pages = tables["null_pages"].size
    counted = ("min_values", "max_values", "null_counts") if flags & _HAS_NULL_COUNTS else ("min_values", "max_values")
    for table in counted:
        if tables[table].size != pages:
            count = tables[table].size
            raise Damaged(f"{name}: column index has {pages} null_pages but {count} {table}; write the file again")
    return ColumnIndex(
        null_pages=tables["null_pages"]["value"] != 0,
        min_values=_values(source, tables["min_values"]),
        max_values=_values(source, tables["max_values"]),
        boundary_order=int(tables["index"][0]["boundary_order"]),
        null_counts=tables["null_counts"]["value"].copy() if flags & _HAS_NULL_COUNTS else None,
    )


def _values(data: bytes, table: Records) -> list[bytes]:
    return [data[offset : offset + length] for _, offset, length in table.tolist()]

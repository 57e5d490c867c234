"""A sidecar of ours for a partition of QuestDB's: its own `_pm` with the names of the table and a Parquet schema.

`_pm` has no Parquet schema: it knows QuestDB's types instead, and by these the schema is written. Its columns are
matched by field id, so that renamed ones have the table's name, and dropped ones are left out. Bounds and bloom filters
are taken over where the stored values are the values, or where tests of the values can be made tests of what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import Damaged, Incompatible
from windrow.kernels import rules as r
from windrow.parquet import thrift as t
from windrow.questdb.types import ColumnType, type_name
from windrow.sidecar import Sidecar, layout
from windrow.sidecar.blocks import RowGroups
from windrow.sidecar.extensions import schema_section, snapshot_entries
from windrow.sidecar.layout import Order, PageFlag, StatFlag
from windrow.sidecar.plain_schema import column_element, schema_list
from windrow.sidecar.restore import plain_pages
from windrow.sidecar.rewrite import long_bounds
from windrow.sidecar.types import Tag, order_of
from windrow.sidecar.writer import Columns, SnapshotFields, create

__all__ = ["FileColumn", "describe"]

_WRITER = "QuestDB"
_TYPE_DEFINED_ORDER = 1
_BOUNDS = sum(StatFlag) & ~(StatFlag.NULL_COUNT_PRESENT | StatFlag.DISTINCT_COUNT_PRESENT)


class FileColumn(NamedTuple):
    """A column of the table that a partition's file has."""

    name: str
    position: int
    """Its place among the descriptors of `_pm`."""
    type: ColumnType
    """What the file has it as."""
    has_nulls: bool
    """Whether a row group may hold nulls of it."""


def describe(pm: Sidecar, columns: Sequence[FileColumn]) -> bytes:
    """The sidecar of the columns, in their order."""
    for column in columns:
        _check(pm, column)
    places = [column.position for column in columns]
    is_opaque = np.array([not column.type.is_searched for column in columns], bool)
    chunks = pm.chunks[:, places]
    chunks["stat_flags"][:, is_opaque] &= np.uint8(~_BOUNDS & 0xFF)
    descriptors = pm.descriptors[places]
    # Files that QuestDB updates in place keep a first guess at the repetition; levels are always right.
    descriptors["flags"] = descriptors["max_def_level"].astype(np.int32) << layout.REPETITION_SHIFT
    groups = RowGroups(
        rows=pm.row_counts.astype("<u8"),
        chunks=chunks,
        long_bounds=long_bounds(pm, chunks),
        blooms=_blooms(pm, columns),
        pages=_pages(chunks, columns),
    )
    footer = pm.footer
    entries = snapshot_entries(created_by=_WRITER, version=2, key_value={}, etag=None)
    snapshot = SnapshotFields(footer.parquet_footer_offset, footer.parquet_footer_length, 0, None, None, entries)
    return create(_header(pm, columns, descriptors), groups, snapshot)


def _check(pm: Sidecar, column: FileColumn) -> None:
    record = pm.descriptors[column.position]
    where = f"{pm.name}: column {column.name!r}"
    if record["max_rep_level"]:
        raise Incompatible(
            f"{where} holds arrays as nested lists, which are not read; convert the partition to native and back, with "
            "cairo.partition.encoder.parquet.raw.array.encoding.enabled=true in server.conf"
        )
    length = column.type.length
    if record["physical_type"] != column.type.physical or (length and record["fixed_byte_len"] != length):
        raise Incompatible(
            f"{where} of type {type_name(column.type.code)} has the physical type {record['physical_type']} of "
            f"{record['fixed_byte_len']} bytes; a newer QuestDB wrote it, use a newer Windrow"
        )
    if record["max_def_level"] > 1:
        raise Damaged(f"{where} is flat and has definition level {record['max_def_level']}; restore the file")


def _header(pm: Sidecar, columns: Sequence[FileColumn], descriptors: NDArray[np.void]) -> Columns:
    names = [column.name for column in columns]
    orders = [_order(column.type) for column in columns]
    elements = [
        _element(column, optional=bool(record["max_def_level"]))
        for column, record in zip(columns, descriptors, strict=True)
    ]
    by_type = t.struct(t.nested(_TYPE_DEFINED_ORDER, t.struct()))
    column_orders = t.list_of(7, r.RECORD, [by_type] * len(columns)).value
    places = [column.position for column in columns]
    timestamp = pm.designated_timestamp
    designated = places.index(timestamp) if timestamp is not None and timestamp in places else layout.NONE
    return Columns(
        names=names,
        descriptors=descriptors,
        designated_timestamp=designated,
        sorting=[designated] if designated >= 0 and pm.sorting == (timestamp,) else [],
        windrow=schema_section(names, orders, schema_list(b"questdb", elements), column_orders),
    )


def _order(kind: ColumnType) -> Order:
    if not kind.is_searched:
        return Order.UNDEFINED
    order = order_of(kind.code, kind.physical)
    # QuestDB has no unsigned numbers.
    return Order.SIGNED if order is Order.SIGN_UNKNOWN else order


def _element(column: FileColumn, *, optional: bool) -> bytes:
    """A column as engines see it: what they would read in a way of their own is bytes to them."""
    kind = column.type
    code = {pa.binary(16): int(Tag.LONG128), pa.binary(32): int(Tag.LONG256)}.get(kind.stored, kind.code)
    return column_element(column.name, code, kind.length or 0, optional=optional)


def _blooms(pm: Sidecar, columns: Sequence[FileColumn]) -> dict[tuple[int, int], bytes]:
    blooms = {}
    filtered = set(pm.bloom_columns.tolist())
    for place, column in enumerate(columns):
        if column.position in filtered and column.type.is_searched:
            for group in range(pm.row_group_count):
                bits = pm.bloom(group, column.position)
                if bits is not None:
                    blooms[group, place] = bytes(bits)
    return blooms


def _pages(chunks: NDArray[np.void], columns: Sequence[FileColumn]) -> NDArray[np.void]:
    """What readers of a footer want to know; a chunk begins with its dictionary, which readers recognise.

    Bounds of values that are not shown as they are stored are for plans alone.
    """
    pages = plain_pages(chunks)
    is_shown = np.array([column.type.is_shown_as_stored for column in columns], bool)
    pages["flags"] = np.where(is_shown, int(PageFlag.HAS_STATISTICS), 0)
    return pages

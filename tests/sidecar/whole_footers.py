"""Whole footers: what a sidecar says of one, and an update that is made from one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from windrow.parquet.footer import ParquetFooter, SortingColumn
from windrow.sidecar.convert import Source, convert_changes, describe_row_groups
from windrow.sidecar.layout import ColumnFlag, SchemaCode
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.restore import restore_chunks
from windrow.sidecar.writer import Update


def convert_update(sidecar: Sidecar, source: Source, *, unused_bytes: int, seq_txn: int | None = None) -> Update:
    """What is appended to a sidecar when its file has the footer of `source`, by all row groups of that footer.

    A row group is unchanged when its first column starts at the same byte.
    """
    starts = describe_row_groups(source).chunks["byte_range_start"][:, 0]
    before = sidecar.column(0).records["byte_range_start"]
    changed = np.ones(len(starts), bool)
    changed[: len(before)] = before != starts[: len(before)]
    targets = np.flatnonzero(changed).tolist()
    footer, granules = source.footer, source.granules
    part = replace(
        source,
        footer=replace(footer, chunks=footer.chunks[targets], row_group_rows=footer.row_group_rows[targets]),
        granules=None if granules is None else [granules[target] for target in targets],
    )
    length = len(footer.metadata)
    return convert_changes(sidecar, part, targets, footer_length=length, unused_bytes=unused_bytes, seq_txn=seq_txn)


def restore_footer(sidecar: Sidecar) -> ParquetFooter | None:
    """The footer of the Parquet file, as far as readers use it; `None` where the sidecar does not know enough.

    What a sidecar has no place for is gone: the deprecated bounds, bounds beyond 65,535 bytes, index page offsets, and
    whether nulls come first in a sort order.
    """
    schema = sidecar.schema
    if schema is None:
        return None
    rows, chunks = sidecar.row_counts.astype(np.int64), restore_chunks(sidecar)
    entries = sidecar.extensions._schema
    place = entries.get(SchemaCode.SCHEMA)
    if place is not None:
        schema = replace(
            schema,
            metadata=sidecar.buffer,
            element_positions=schema.element_positions + (place[0] - schema.schema_span[0]),
            schema_span=place,
            column_orders_span=entries.get(SchemaCode.COLUMN_ORDERS),
        )
    return replace(
        schema,
        version=sidecar.extensions.version or schema.version,
        num_rows=int(rows.sum()),
        created_by=sidecar.extensions.created_by,
        key_value=sidecar.extensions.key_value or {},
        row_group_rows=rows,
        row_group_bytes=chunks["total_uncompressed_size"].sum(axis=1),
        row_group_sorting=(_sorting(sidecar),) * sidecar.row_group_count,
        chunks=chunks,
        row_group_positions=None,
    )


def _sorting(sidecar: Sidecar) -> tuple[SortingColumn, ...] | None:
    flags = sidecar.descriptors["flags"]
    columns = [(column, bool(flags[column] & ColumnFlag.DESCENDING)) for column in sidecar.sorting]
    return tuple(SortingColumn(column, descending, nulls_first=False) for column, descending in columns) or None

"""What is known of splits passes to the split that they are merged into, and no data is read for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from windrow.errors import WindrowError
from windrow.metastore import Metastore
from windrow.model.split import SplitMetadata
from windrow.statistics.catalog import Columns, TableCatalog
from windrow.statistics.column_summary import ColumnSummary, merged_summary
from windrow.statistics.label_catalog import LabelCatalog
from windrow.statistics.label_summary import merged_labels
from windrow.statistics.layout import FileLayout, split_id_of

__all__ = ["RowGroups", "inherit"]

_log = logging.getLogger(__name__)

RowGroups = Callable[[SplitMetadata], Sequence[int]]
"""The rows of the row groups of a split."""


def inherit(
    metastore: Metastore,
    table_id: str,
    inputs: Sequence[SplitMetadata],
    outputs: Sequence[SplitMetadata],
    row_groups: RowGroups,
) -> None:
    """Store for a merged split what is known of its inputs; of several outputs nobody knows which has which values.

    Where nothing is known, row groups are not looked up. What fails is passed over: it is learnt again.
    """
    if len(outputs) != 1:
        return
    [output] = outputs
    try:
        _inherit_labels(LabelCatalog(metastore, table_id), inputs, output)
        _inherit_columns(TableCatalog(metastore, table_id), inputs, output, row_groups)
    except WindrowError as error:
        _log.debug("statistics of the inputs of %s are not kept: %s", output.split_id, error)


def _inherit_columns(
    catalog: TableCatalog, inputs: Sequence[SplitMetadata], output: SplitMetadata, row_groups: RowGroups
) -> None:
    known = catalog.load([split_id_of(split) for split in inputs], None)
    if known:
        layout = FileLayout(split_id_of(output), tuple(row_groups(output)))
        catalog.store(_merged([known.get(split.split_id, {}) for split in inputs], inputs, layout))


def _inherit_labels(catalog: LabelCatalog, inputs: Sequence[SplitMetadata], output: SplitMetadata) -> None:
    known = catalog.load([split_id_of(split) for split in inputs])
    merged = merged_labels([known.get(each.split_id) for each in inputs], split_id_of(output), output.row_count)
    if merged is not None and merged.known_rows <= merged.rows:
        catalog.store(merged)


def _merged(known: Sequence[Columns], inputs: Sequence[SplitMetadata], layout: FileLayout) -> Columns:
    kinds = {name: summary.type for columns in known for name, summary in columns.items()}
    layouts = [_layout_of(columns, split) for columns, split in zip(known, inputs, strict=True)]
    merged: Columns = {}
    for name, kind in kinds.items():
        parts = [
            columns.get(name) or ColumnSummary.empty(own, kind) for columns, own in zip(known, layouts, strict=True)
        ]
        summary = merged_summary(parts, layout)
        if summary is not None:
            merged[name] = summary
    return merged


def _layout_of(columns: Columns, split: SplitMetadata) -> FileLayout:
    """The layout of an input; of one of which nothing is known, one that stands for its rows."""
    return next((each.layout for each in columns.values()), FileLayout(split_id_of(split), (split.row_count,)))

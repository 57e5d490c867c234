"""Where the labels and series of splits are on record: in the metastore, beside the statistics of their columns."""

from __future__ import annotations

import logging
from collections.abc import Collection

from windrow.errors import Damaged, WindrowError
from windrow.metastore import Metastore, StoredStatistics
from windrow.statistics.label_encoding import decode_labels, encode_labels
from windrow.statistics.label_summary import LabelSummary
from windrow.statistics.layout import FileId

__all__ = ["LABELS", "LabelCatalog"]

LABELS = ""
"""Stands in the place of a column's name; no column has it."""
_log = logging.getLogger(__name__)


class LabelCatalog:
    """What is known of the labels of a table's splits. What cannot be read counts as nothing."""

    def __init__(self, metastore: Metastore, table_id: str) -> None:
        self._metastore = metastore
        self._table_id = table_id

    def load(self, files: Collection[FileId]) -> dict[str, LabelSummary]:
        """What is known of splits, by their ids; those of which nothing is known are missing."""
        by_key = {file.key: file for file in files}
        found = {each.split_id: _decoded(each.data, by_key[each.split_id]) for each in self._stored(list(by_key))}
        return {key: summary for key, summary in found.items() if summary is not None}

    def store(self, summary: LabelSummary) -> None:
        """Put what was learnt of a split in the place of what is on record; who comes second learnt the same."""
        key, data = summary.file.key, encode_labels(summary)
        revision = next((each.revision for each in self._stored([key])), 0)
        self._metastore.store_statistics(self._table_id, [StoredStatistics(key, LABELS, revision, data)])

    def _stored(self, split_ids: Collection[str]) -> list[StoredStatistics]:
        try:
            return self._metastore.statistics(self._table_id, split_ids, [LABELS])
        except WindrowError as error:
            _log.debug("labels of %s are not read: %s", self._table_id, error)
            return []


def _decoded(data: bytes, file: FileId) -> LabelSummary | None:
    try:
        return decode_labels(data, file, name=f"{file.key}, labels")
    except Damaged as error:
        _log.debug("%s", error)
        return None

"""Values of labels, and counts of series, where what is on record of all splits of a version has them in full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.metastore import Metastore
from windrow.model.split import SplitMetadata
from windrow.model.timeseries import TIMESERIES_ID
from windrow.statistics.label_catalog import LabelCatalog
from windrow.statistics.label_summary import LabelSummary
from windrow.statistics.layout import split_id_of

__all__ = ["LabelAnswers"]

_PAGE = 200
_MOST = 1 << 20
"""More values are not put together here."""


@dataclass(frozen=True, slots=True)
class LabelAnswers:
    """Answers about all rows of one version of a table."""

    metastore: Metastore
    table_id: str
    version: int

    def values(self, label: str) -> list[str] | None:
        """All values of a label; None where only rows tell."""
        found: set[str] = set()
        for summary in self._summaries():
            values = None if summary is None else summary.values.get(label)
            if values is None or len(found) > _MOST:
                return None
            found.update(values)
        return sorted(found)

    def distinct(self, column: str) -> int | None:
        """How many values a column has, not counting null; None where only rows tell."""
        if column == TIMESERIES_ID:
            return self.series()
        values = self.values(column)
        return None if values is None else len(values)

    def series(self) -> int | None:
        """How many ids of series there are; None where only rows tell."""
        found: set[int] = set()
        for summary in self._summaries():
            if summary is None or summary.series_ids is None or not summary.has_ids or len(found) > _MOST:
                return None
            found.update(summary.series_ids.tolist())
        return len(found)

    def _summaries(self) -> Iterator[LabelSummary | None]:
        """What is on record of each split; None where that is nothing, or not about all rows.

        Registered files may change without a commit, so that their records are not believed.
        """
        catalog = LabelCatalog(self.metastore, self.table_id)
        for page in self.metastore.splits(self.table_id, self.version, page_size=_PAGE):
            # where nothing is on record, the first split shows it
            for part in (page[:1], page[1:]):
                known = catalog.load([split_id_of(split) for split in part]) if part else {}
                yield from (_whole(split, known.get(split.split_id)) for split in part)


def _whole(split: SplitMetadata, summary: LabelSummary | None) -> LabelSummary | None:
    is_whole = summary is not None and summary.is_complete and split.window is not None
    return summary if is_whole else None

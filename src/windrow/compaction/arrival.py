"""What sorting saves: the same rows in the order of the schema and in that of their arrival, written alike.

Splits are stored sorted, so that the order of arrival is not in the table. Rows as they came can be given; else the
order is reconstructed by time, with points of the same time in the order of their series, as a scrape delivers them.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windrow.errors import InvalidInput
from windrow.model.ordering import is_sorted
from windrow.model.points import tag_columns
from windrow.model.settings import TableSettings
from windrow.model.timeseries import TIMESERIES_ID, timeseries_ids
from windrow.model.window import window_starts
from windrow.splits.sorting import sorted_rows

__all__ = ["WORTH_SORTING", "Sorting", "compare_given", "compare_stored"]

WORTH_SORTING = 0.10
"""Below this saving, ADR-003 calls the case for sorting into question."""


@dataclass(frozen=True, slots=True)
class Sorting:
    """Rows of one window, sorted and as they arrived."""

    rows: int
    arrival: str
    """Where the order of arrival comes from: `as given`, or `by time` where it is reconstructed."""
    sorted_bytes: int
    arrival_bytes: int
    saves: float
    """Share of the bytes; below 0 where sorted rows take more."""
    arrives_sorted: bool
    """Whether rows arrive in the order of the schema already."""

    @property
    def pays(self) -> bool:
        """Whether the saving is worth the work."""
        return self.saves >= WORTH_SORTING

    def verdict(self) -> str:
        """Say whether sorting pays in bytes."""
        if self.arrives_sorted:
            return "rows arrive in the order of the sort schema already: sorting neither costs nor saves bytes"
        if self.pays:
            return f"sorting pays: it saves {self.saves:.1%} of the bytes that rows take in the order of arrival"
        if self.saves >= 0:
            return (
                f"sorting does not pay in bytes: it saves {self.saves:.1%} against the order of arrival, "
                f"less than {WORTH_SORTING:.0%}"
            )
        return f"sorting does not pay in bytes: sorted rows take {-self.saves:.1%} more than in the order of arrival"


def compare_stored(rows: pa.Table, settings: TableSettings) -> Sorting:
    """Compare rows of a window that were read from splits."""
    order = pc.sort_indices(rows, sort_keys=[(settings.timestamp, "ascending")])
    return _compare(rows.take(order), settings, "by time")


def compare_given(arrived: Any, settings: TableSettings, most_rows: int) -> Sorting:
    """Compare the rows of the fullest window of what a caller received, in the order in which it came."""
    rows = pa.table(arrived)
    if settings.timestamp not in rows.column_names:
        raise InvalidInput(
            f"arrived: the rows have no column {settings.timestamp!r}; give rows as they are ingested, in their order"
        )
    starts, without = window_starts(rows[settings.timestamp], settings.window, unit=settings.timestamp_unit)
    windows, counts = np.unique(starts[~without], return_counts=True)
    if not windows.size:
        raise InvalidInput("arrived: no row has a timestamp; give rows as they are ingested, in their order")
    fullest = (starts == windows[counts.argmax()]) & ~without
    return _compare(_with_series(rows.filter(pa.array(fullest)).slice(0, most_rows), settings), settings, "as given")


def _compare(arrived: pa.Table, settings: TableSettings, arrival: str) -> Sorting:
    before = _written(arrived)
    in_order = is_sorted(arrived, settings.sort)
    after = before if in_order else _written(sorted_rows(arrived, settings.sort))
    return Sorting(arrived.num_rows, arrival, after, before, round(1 - after / max(before, 1), 4), in_order)


def _with_series(rows: pa.Table, settings: TableSettings) -> pa.Table:
    """The rows with the ids of their series, where rows are sorted by these."""
    if TIMESERIES_ID not in settings.sort.column_names or TIMESERIES_ID in rows.column_names:
        return rows
    tags = tag_columns(rows.schema, declared=settings.tags, timestamp=settings.timestamp, signal=settings.signal)
    return rows.append_column(TIMESERIES_ID, timeseries_ids(rows, tags=tags))


def _written(rows: pa.Table) -> int:
    """Bytes of rows in a file; ids of series are left out, since what arrives has none."""
    if TIMESERIES_ID in rows.column_names:
        rows = rows.drop_columns([TIMESERIES_ID])
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd", compression_level=3, row_group_size=128 * 1024)
    return sink.getbuffer().nbytes

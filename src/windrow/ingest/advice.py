"""What a person should hear of rows that are taken, though nothing is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches

import numpy as np
import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.ingest.sources import ArrowSource, FilesSource, Source
from windrow.ingest.steps import SAVED_FILES, grouped
from windrow.model.settings import TableSettings
from windrow.model.sparse import LONGEST, Spread
from windrow.model.timeseries import TIMESERIES_ID, partition_ids
from windrow.model.window import Window, window_starts

__all__ = ["predicted_spread", "unsorted_warnings"]

Places = frozenset[tuple[int, int]]


def unsorted_warnings(settings: TableSettings, columns: Collection[str]) -> Iterator[str]:
    """Yield a warning for each sort column that is in no row of the table, with the name that may be meant."""
    for name in settings.sort.column_names:
        if name not in columns and name != TIMESERIES_ID:
            lower = {column.lower(): column for column in columns if column not in settings.sort.column_names}
            near = get_close_matches(name.lower(), lower, n=1)
            meant = f"; is it {lower[near[0]]!r}? Then change the sort schema (table.change)" if near else ""
            yield f"sort column {name!r} is in no row, so that nothing is sorted by it{meant}"


def predicted_spread(source: Source, settings: TableSettings, closed_before: int) -> Spread | None:
    """Return about how many files rows would be spread over, by a sample of them; None where nothing can be sampled.

    `closed_before` is the second before which rows of several windows go to cold ones.
    """
    if source.on_spark or not isinstance(source, ArrowSource | FilesSource):
        return None
    samples = source.sample([settings.timestamp, *settings.partition_by])
    if not samples:
        return None
    tasks = [[_columns(batch, settings) for batch in batches] for batches in samples]
    share = source.tasks / len(tasks)
    files = [_files(batches, settings, closed_before) for batches in tasks]
    longest = [_places(batches, settings, LONGEST) for batches in tasks]
    rows = sum(batch.num_rows for batches in tasks for batch in batches)
    gathered = min(round(len(frozenset().union(*longest)) * share), sum(map(len, files)) * max(round(share), 1))
    return Spread(round(rows * share), round(sum(map(len, files)) * share), gathered)


def _columns(batch: pa.RecordBatch, settings: TableSettings) -> pa.Table:
    return pa.Table.from_batches([batch]).select([settings.timestamp, *settings.partition_by])


def _files(batches: Sequence[pa.Table], settings: TableSettings, closed_before: int) -> frozenset[tuple[int, Window]]:
    """Return the tenants and windows that rows of one task are written to; rows that are no points have none."""
    groups: set[tuple[int, Window]] = set()
    for batch in batches:
        with suppress(InvalidInput):
            groups.update((tenant, window) for tenant, window, _ in grouped(batch, settings))
    cold = [(group, settings.cold_window_of(group[1], closed_before)) for group in groups]
    shared = Counter((tenant, place) for (tenant, _), place in cold if place is not None)
    if sum(shared.values()) - len(shared) < SAVED_FILES:
        return frozenset(groups)
    return frozenset(
        (group[0], place) if place is not None and shared[group[0], place] > 1 else group for group, place in cold
    )


def _places(batches: Sequence[pa.Table], settings: TableSettings, window: int) -> Places:
    """Return the tenants and windows of rows; rows that are no points have none."""
    pairs: set[tuple[int, int]] = set()
    for batch in batches:
        try:
            starts, is_null = window_starts(batch[settings.timestamp], window, unit=settings.timestamp_unit)
        except InvalidInput:
            continue
        # No window starts at an odd second: that is the place of rows without a time.
        places = np.where(is_null, 1, starts)
        tenants = partition_ids(batch, settings.partition_by)
        pairs.update(map(tuple, np.unique(np.stack([tenants, places]), axis=1).T.tolist()))
    return frozenset(pairs)

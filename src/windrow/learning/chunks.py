"""Chunks of a column are learnt, each in the way that costs least."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.errors import WindrowError
from windrow.learning.decoding import decoded_values
from windrow.learning.pages import Rows, open_pages, samples_of, values_of
from windrow.learning.tasks import Rank, Task
from windrow.statistics.collector import RowGroupValues

__all__ = ["learn_chunks"]

_log = logging.getLogger(__name__)


def learn_chunks(task: Task) -> list[int]:
    """Learn what a task is about; returns the row groups that were left, since they cost more than was expected."""
    scanned, column = task.scanned, task.column
    if task.rank is Rank.SAMPLE:
        _complete_samples(task)
        return []
    # What fails once is not tried again.
    scanned.failed.update((column.name, row_group) for row_group in task.row_groups)
    open_groups, postponed = list(task.row_groups), list[int]()
    entries = list[RowGroupValues]()
    for values in _fast(task, postponed):
        if isinstance(values, RowGroupValues):
            entries.append(values)
        else:
            scanned.collector.add(values.row_group, 0, {column.name: values.rows})
        open_groups.remove(values.row_group)
    scanned.collector.add_row_groups(column.name, entries)
    scanned.failed.difference_update((column.name, row_group) for row_group in task.row_groups)
    for row_group in [each for each in open_groups if each not in postponed]:
        try:
            scanned.collector.add(row_group, 0, {column.name: decoded_values(scanned, column, row_group)})
        except (WindrowError, pa.ArrowException, OSError) as error:
            _log.debug("statistics are not collected: %s, column %s: %s", scanned.file.uri, column.name, error)
            scanned.failed.add((column.name, row_group))
    return postponed


def _complete_samples(task: Task) -> None:
    """Learn the rows of the sample in chunks whose other rows are known."""
    scanned, column = task.scanned, task.column
    keys = {(column.name, row_group) for row_group in task.row_groups}
    scanned.failed |= keys
    pages = open_pages(scanned, column, task.row_groups)
    places = np.flatnonzero(pages.readable & pages.in_dictionary).tolist()
    if places:
        scanned.collector.add_samples(column.name, dict(samples_of(pages, places)))
    scanned.failed -= keys


def _fast(task: Task, postponed: list[int]) -> Iterator[Rows | RowGroupValues]:
    """Yield what our own kernels read; trouble is left to pyarrow, which says what it is."""
    try:
        pages = open_pages(task.scanned, task.column, task.row_groups)
        places = [place for place in range(len(task.row_groups)) if pages.readable[place]]
        if task.rank is Rank.DICTIONARY:
            others = np.flatnonzero(~pages.in_dictionary).tolist()
            postponed += [pages.row_groups[place] for place in others]
            places = [place for place in places if pages.in_dictionary[place]]
        yield from values_of(pages, places)
    except (WindrowError, pa.ArrowException, OSError) as error:
        _log.debug("%s", error)

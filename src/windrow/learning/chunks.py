"""One column of one row group is learnt, in the way that costs least."""

from __future__ import annotations

from windrow.learning.decoding import decoded_values
from windrow.learning.tasks import Task

__all__ = ["learn_chunk"]


def learn_chunk(task: Task) -> None:
    """Learn what a task is about."""
    scanned, column, row_group = task.scanned, task.column, task.row_group
    scanned.collector.add(row_group, 0, {column.name: decoded_values(scanned, column, row_group)})

"""Bounded memory for a task: rows beyond its budget go to local scratch as sorted runs, which are merged at the end.

A run is an ordinary split, in a folder that lasts as long as the task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self

import pyarrow as pa

from windrow.merging.merge import MergeOptions
from windrow.merging.output import Layout
from windrow.merging.splits import merge_splits
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.splits.layout import GRANULE_ROWS, ROW_GROUP_ROWS
from windrow.splits.writer import SplitName
from windrow.storage import Store, open_store

__all__ = ["MEMORY_BUDGET", "Group", "Spill", "in_budget"]

MEMORY_BUDGET = 256 * 2**20
"""Bytes of rows that a task holds at once unless it is told otherwise; at its peak it takes a few times as much."""

Group = tuple[int, Window]
"""A tenant's id and a window: what rows of one split share."""


def in_budget(batches: Iterable[pa.RecordBatch], budget: int) -> Iterator[tuple[list[pa.RecordBatch], bool]]:
    """Yield batches together that fit the budget, at least one, and whether they are the last; empty ones are left out.

    Nothing is yielded when there are no rows.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if held and batch.num_rows and size + batch.nbytes > budget:
            yield held, False
            held, size = [], 0
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
    if held:
        yield held, True


class Spill:
    """The runs of a task, by group; nothing touches the disk before the first is added."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._store: Store | None = None
        self._runs: dict[Group, list[SplitMetadata]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def __contains__(self, group: Group) -> bool:
        return group in self._runs

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have runs, in the order in which they came."""
        return tuple(self._runs)

    def add(self, group: Group, write: Callable[[Store, str], SplitMetadata]) -> None:
        """Let a run be written to the scratch store, under a name of its own."""
        if self._store is None:
            self._folder = tempfile.TemporaryDirectory(prefix="windrow-")
            self._store = open_store(self._folder.name)
        number = sum(map(len, self._runs.values()))
        self._runs.setdefault(group, []).append(write(self._store, f"run-{number}"))

    def merge(
        self,
        group: Group,
        store: Store,
        settings: TableSettings,
        name: SplitName,
        field_ids: Mapping[str, int],
        budget: int = MEMORY_BUDGET,
    ) -> SplitMetadata:
        """Merge the runs of a group into one split of a store."""
        options = MergeOptions(memory_budget=budget, layout=Layout(ROW_GROUP_ROWS, GRANULE_ROWS))
        runs = self._runs[group]
        scratch = store if self._store is None else self._store
        (split,) = merge_splits(scratch, runs, settings, lambda _: name, options, field_ids=field_ids, into=store)
        return split

"""Bounded memory for a task: rows beyond its budget go to local scratch as sorted runs, which are merged at the end.

A run is an ordinary split, in a folder that lasts as long as the task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import NamedTuple, Self

import pyarrow as pa

from windrow.ingest.share_rows import Progress
from windrow.merging.merge import MergeOptions
from windrow.merging.output import Layout
from windrow.merging.splits import merge_splits
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.splits.layout import GRANULE_ROWS, ROW_GROUP_ROWS
from windrow.splits.writer import SplitName
from windrow.storage import Store, open_store

__all__ = [
    "HELD_ROWS",
    "MEMORY_OF_A_TASK",
    "RUN_GROUP_ROWS",
    "Group",
    "Held",
    "Spill",
    "cut_down",
    "held_rows",
    "in_budget",
]

HELD_ROWS = 256 * 2**20
"""Bytes of rows that a task holds at once, unless its memory is bounded."""
_COPIES = 4
"""Rows are in memory about so many times while they are coded, ordered and moved."""
_KEY = 32
"""What the key and the place of a row take while rows are ordered, as if they were more of its bytes."""
_WORK = 24 * 2**20
"""What a task takes besides: pages that are being written, and what libraries hold."""
_LEAST_HELD = 8 * 2**20
MEMORY_OF_A_TASK = _COPIES * HELD_ROWS + _WORK

RUN_GROUP_ROWS = 16 * 1024
"""Rows of a row group of a run: one of every run is in memory when runs are merged."""
_FAN_IN = 32
"""More runs than these are merged in several passes."""

Group = tuple[int, Window]
"""A tenant's id and a window: what rows of one split share."""


class Held(NamedTuple):
    """Batches that a task holds together."""

    batches: list[pa.RecordBatch]
    is_last: bool
    progress: Progress
    """How far the task has come with them."""


def in_budget(
    batches: Iterable[pa.RecordBatch],
    budget: int,
    progress: Callable[[], Progress] = Progress,
    window: int | None = None,
) -> Iterator[Held]:
    """Yield batches together that fit the budget, at least one; empty ones are left out.

    They end between two windows, of so many seconds, where the progress after a batch tells that they can. Nothing is
    yielded when there are no rows.
    """
    held: list[pa.RecordBatch] = []
    size, reached = 0, Progress()
    for batch in batches:
        taken = batch.nbytes + _KEY * batch.num_rows
        if held and batch.num_rows and size + taken > budget:
            yield Held(held, is_last=False, progress=reached)
            held, size = [], 0
        reached = progress()
        if batch.num_rows:
            held.append(batch)
            size += taken
        if window is not None and size >= _LEAST_HELD and reached.is_between(window):
            yield Held(held, is_last=False, progress=reached)
            held, size = [], 0
    if held:
        yield Held(held, is_last=True, progress=reached)


def held_rows(memory: int) -> int:
    """Return the bytes of rows that a task may hold at once when it may take so much memory."""
    return max((memory - _WORK) // _COPIES, _LEAST_HELD)


def cut_down(batches: Iterable[pa.RecordBatch], budget: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches that fit the budget by themselves."""
    for batch in batches:
        rows = max(batch.num_rows * budget // max(batch.nbytes, 1), 1)
        yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


class Spill:
    """The runs of a task, by group; nothing touches the disk before the first is added."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._store: Store | None = None
        self._runs: dict[Group, list[SplitMetadata]] = {}
        self._numbers = count()

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
        self._runs.setdefault(group, []).append(write(self._store, f"run-{next(self._numbers)}"))

    def merge(
        self,
        group: Group,
        store: Store,
        settings: TableSettings,
        name: SplitName,
        field_ids: Mapping[str, int],
        held: int = HELD_ROWS,
    ) -> SplitMetadata:
        """Merge the runs of a group into one split of a store, by a task that held so many bytes of rows."""
        options = MergeOptions(memory_budget=_COPIES * held, layout=Layout(ROW_GROUP_ROWS, GRANULE_ROWS))
        runs, scratch = self._runs.pop(group), store if self._store is None else self._store
        few = replace(options, layout=Layout(RUN_GROUP_ROWS, GRANULE_ROWS))

        def joined(some: Sequence[SplitMetadata]) -> SplitMetadata:
            """Merge runs that follow each other into a longer one."""
            own = replace(name, split_id=f"{name.split_id}-run-{next(self._numbers)}")
            (run,) = merge_splits(scratch, some, settings, lambda _: own, few, field_ids=field_ids, into=scratch)
            self._drop(scratch, some)
            return run

        while len(runs) > _FAN_IN:
            runs = [joined(runs[at : at + _FAN_IN]) for at in range(0, len(runs), _FAN_IN)]
        (split,) = merge_splits(scratch, runs, settings, lambda _: name, options, field_ids=field_ids, into=store)
        self._drop(scratch, runs)
        return split

    @staticmethod
    def _drop(scratch: Store, runs: Sequence[SplitMetadata]) -> None:
        """Delete runs that were merged: scratch space is bounded too."""
        for run in runs:
            scratch.delete(run.key)

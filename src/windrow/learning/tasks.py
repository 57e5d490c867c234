"""Which chunks are open in what a query read, what each will cost, and which comes first."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from windrow.learning.scanned_files import FlatColumn, ScannedFile
from windrow.parquet import chunk as c
from windrow.parquet.schema import PhysicalType

__all__ = ["Rank", "Task", "Tasks", "cost_of", "tasks_of"]

_MOST_TASKS = 50_000
_WIDTHS = {
    PhysicalType.BOOLEAN: 0.125,
    PhysicalType.INT32: 4.0,
    PhysicalType.INT64: 8.0,
    PhysicalType.INT96: 12.0,
    PhysicalType.FLOAT: 4.0,
    PhysicalType.DOUBLE: 8.0,
}
_SHORTER = 0.75
"""Where values take less than this share of their width, a dictionary stands for them."""
_FEW = 32
"""A dictionary of fewer entries than rows by this factor is small,"""
_SMALL_BYTES = 4096
"""and one of no more bytes is anyway."""
_TEXT_BYTES = 8
"""A text in a dictionary takes fewer bytes, on the average."""


class Rank(IntEnum):
    """What is learnt first."""

    DICTIONARY = 0
    """All values are in a small dictionary."""
    CONDITION = 1
    """The query has a condition on the column."""
    SAMPLE = 2
    """What a dictionary told is known, and rows of the sample are not."""
    OTHER = 3
    LONG = 4
    """Texts that hardly repeat."""


_NANOSECONDS = {Rank.DICTIONARY: 3.0, Rank.CONDITION: 20.0, Rank.SAMPLE: 4.0, Rank.OTHER: 20.0, Rank.LONG: 100.0}
"""What a value costs, before any was learnt."""
_BATCH = 0.01
"""Row groups are learnt together up to about so many seconds."""
_MOST_TOGETHER = 64
_FIXED = 0.001
"""What a chunk costs besides, in seconds."""


@dataclass(order=True, slots=True)
class Task:
    """A column that is to be learnt in some row groups."""

    rank: Rank
    cost: float
    """Seconds of CPU, by what others of the rank took."""
    scanned: ScannedFile = field(compare=False)
    column: FlatColumn = field(compare=False)
    row_groups: tuple[int, ...] = field(compare=False)

    @property
    def keys(self) -> set[tuple[object, ...]]:
        """What tells its parts from others."""
        return {(self.scanned.layout.file, self.column.name, row_group) for row_group in self.row_groups}


class Tasks:
    """Tasks in the order in which they are worth doing; each chunk is there once."""

    def __init__(self) -> None:
        self._heap: list[Task] = []
        self._keys: set[tuple[object, ...]] = set()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, task: Task) -> bool:
        """Add a task whose chunks are not there; whether there was room for it."""
        if len(self._heap) >= _MOST_TASKS:
            return False
        self._keys |= task.keys
        heapq.heappush(self._heap, task)
        return True

    def has(self, scanned: ScannedFile, column: FlatColumn, row_group: int) -> bool:
        """Whether a chunk is there."""
        return (scanned.layout.file, column.name, row_group) in self._keys

    @property
    def first(self) -> Task:
        """The one that is worth most."""
        return self._heap[0]

    def pop(self) -> Task:
        """Take that one out."""
        task = heapq.heappop(self._heap)
        self._keys -= task.keys
        return task

    def keep(self, files: Collection[ScannedFile]) -> None:
        """Let go of the tasks of other files."""
        self._heap = [task for task in self._heap if task.scanned in files]
        heapq.heapify(self._heap)
        self._keys = {key for task in self._heap for key in task.keys}

    def files(self) -> set[ScannedFile]:
        """The files that there are tasks of."""
        return {task.scanned for task in self._heap}


def tasks_of(
    scanned: ScannedFile,
    chunks: Iterable[tuple[FlatColumn, int]],
    conditions: frozenset[str],
    least: Rank = Rank.DICTIONARY,
    only: Rank | None = None,
) -> Iterator[Task]:
    """Yield tasks for some chunks of a file, those that are alike together; none comes before a rank.

    With `only` all are of that rank.
    """
    records: dict[str, npt.NDArray[np.void]] = {}
    batches: dict[tuple[str, Rank], _Batch] = {}
    for column, row_group in chunks:
        if column.name not in records:
            records[column.name] = scanned.chunks(column)
        chunk = records[column.name][row_group]
        rank = only if only is not None else max(_rank(column, chunk, has_condition=column.name in conditions), least)
        batch = batches.setdefault((column.name, rank), _Batch(column))
        batch.row_groups.append(row_group)
        batch.values += int(chunk["num_values"])
        if cost_of(rank, batch.values) > _BATCH or len(batch.row_groups) >= _MOST_TOGETHER:
            yield batches.pop((column.name, rank)).task(rank, scanned)
    for (_, rank), batch in batches.items():
        yield batch.task(rank, scanned)


@dataclass(slots=True)
class _Batch:
    """Row groups of a column that are learnt together."""

    column: FlatColumn
    row_groups: list[int] = field(default_factory=list)
    values: int = 0

    def task(self, rank: Rank, scanned: ScannedFile) -> Task:
        return Task(rank, cost_of(rank, self.values), scanned, self.column, tuple(self.row_groups))


def cost_of(rank: Rank, values: int) -> float:
    """What so many values may cost, in seconds of CPU."""
    return _FIXED + values * _NANOSECONDS[rank] * 1e-9


def _rank(column: FlatColumn, chunk: np.void, *, has_condition: bool) -> Rank:
    is_short = _is_short(column, chunk)
    if is_short and _has_small_dictionary(column, chunk):
        return Rank.DICTIONARY
    if not is_short and column.leaf.element.physical_type is PhysicalType.BYTE_ARRAY:
        return Rank.LONG
    return Rank.CONDITION if has_condition else Rank.OTHER


def _has_small_dictionary(column: FlatColumn, chunk: np.void) -> bool:
    """Whether a dictionary has few entries for so many rows; to hash one of many costs as much as other values do."""
    size = int(chunk["data_page_offset"] - chunk["dictionary_page_offset"])
    width = _WIDTHS.get(_physical(column), _TEXT_BYTES)
    few = max(int(chunk["num_values"]) * width / _FEW, _SMALL_BYTES)
    return bool(chunk["flags"] & c.HAS_DICTIONARY_OFFSET) and 0 < size <= few


def _is_short(column: FlatColumn, chunk: np.void) -> bool:
    """Whether values take so few bytes that a dictionary must stand for them."""
    element = column.leaf.element
    width = float(element.type_length or 0) if element.type_length else _WIDTHS.get(_physical(column), 0.0)
    limit = _TEXT_BYTES if element.physical_type is PhysicalType.BYTE_ARRAY else _SHORTER * width
    return bool(chunk["total_uncompressed_size"] < limit * chunk["num_values"])


def _physical(column: FlatColumn) -> PhysicalType:
    kind = column.leaf.element.physical_type
    assert kind is not None  # noqa: S101 (a leaf has values)
    return kind

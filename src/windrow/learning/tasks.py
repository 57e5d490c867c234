"""Which chunks are open in what a query read, what each will cost, and which comes first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

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
_TEXT_BYTES = 8
"""A text in a dictionary takes fewer bytes, on the average."""


class Rank(IntEnum):
    """What is learnt first."""

    DICTIONARY = 0
    """All values are in a dictionary."""
    CONDITION = 1
    """The query has a condition on the column, or joins by it."""
    OTHER = 2
    LONG = 3
    """Texts that hardly repeat."""


_NANOSECONDS = {Rank.DICTIONARY: 8.0, Rank.CONDITION: 25.0, Rank.OTHER: 25.0, Rank.LONG: 120.0}
"""What a value costs, before any was learnt."""
_FIXED = 0.0005
"""What a chunk costs besides, in seconds."""


@dataclass(order=True, slots=True)
class Task:
    """One column in one row group that is to be learnt."""

    rank: Rank
    cost: float
    """Seconds of CPU, by what others of the rank took."""
    scanned: ScannedFile = field(compare=False)
    column: FlatColumn = field(compare=False)
    row_group: int = field(compare=False)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from others."""
        return self.scanned.layout.file, self.column.name, self.row_group


class Tasks:
    """Tasks in the order in which they are worth doing; each is there once."""

    def __init__(self) -> None:
        self._heap: list[Task] = []
        self._keys: set[tuple[object, ...]] = set()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, task: Task) -> bool:
        """Add a task; whether there was room for it."""
        if task.key in self._keys:
            return True
        if len(self._heap) >= _MOST_TASKS:
            return False
        self._keys.add(task.key)
        heapq.heappush(self._heap, task)
        return True

    @property
    def first(self) -> Task:
        """The one that is worth most."""
        return self._heap[0]

    def pop(self) -> Task:
        """Take that one out."""
        task = heapq.heappop(self._heap)
        self._keys.discard(task.key)
        return task

    def files(self) -> set[ScannedFile]:
        """The files that there are tasks of."""
        return {task.scanned for task in self._heap}


def tasks_of(
    scanned: ScannedFile,
    row_groups: list[int],
    columns: frozenset[str],
    conditions: frozenset[str],
    *,
    only_dictionaries: bool,
) -> Iterator[Task]:
    """Yield what is open of some columns in some row groups."""
    chunks: dict[str, np.ndarray[tuple[int], np.dtype[np.void]]] = {}
    for column, row_group in scanned.open_chunks(columns, row_groups):
        if column.name not in chunks:
            chunks[column.name] = scanned.chunks(column)
        chunk = chunks[column.name][row_group]
        rank = _rank(column, chunk, column.name in conditions)
        if rank is Rank.DICTIONARY or not only_dictionaries:
            yield Task(rank, cost_of(rank, int(chunk["num_values"])), scanned, column, row_group)


def cost_of(rank: Rank, values: int) -> float:
    """What so many values may cost, in seconds of CPU."""
    return _FIXED + values * _NANOSECONDS[rank] * 1e-9


def _rank(column: FlatColumn, chunk: np.void, has_condition: bool) -> Rank:  # noqa: FBT001
    is_short = _is_short(column, chunk)
    if chunk["flags"] & c.HAS_DICTIONARY_OFFSET and is_short:
        return Rank.DICTIONARY
    if not is_short and column.leaf.element.physical_type is PhysicalType.BYTE_ARRAY:
        return Rank.LONG
    return Rank.CONDITION if has_condition else Rank.OTHER


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

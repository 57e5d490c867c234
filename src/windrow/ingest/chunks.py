"""A stream of Arrow data in chunks for tasks: none of it is read before the task that has it takes it.

The rows of a chunk follow each other, so one task reads at a time; the next one reads while it sorts and writes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import pyarrow as pa

__all__ = ["Chunk", "chunks_of"]


@dataclass(eq=False)
class _Shared:
    """The stream, and whose turn it is to read of it."""

    batches: Iterator[pa.RecordBatch]
    turn: int = 0
    ended: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)


@dataclass(eq=False)
class Chunk:
    """Rows of a stream, about so many bytes of them; it is left when it was read, or its task failed."""

    stream: _Shared
    number: int
    size: int

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with self.stream.changed:
            self.stream.changed.wait_for(lambda: self.stream.ended or self.stream.turn >= self.number)
        left = self.size
        while left > 0 and not self.stream.ended and self.stream.turn == self.number:
            batch = next(self.stream.batches, None)
            if batch is None:
                self._end()
                return
            left -= batch.nbytes
            yield batch
        self._pass_on()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the next chunk be read; after a failure, nothing is."""
        if kind is not None:
            self._end()

    def _pass_on(self) -> None:
        with self.stream.changed:
            self.stream.turn = max(self.stream.turn, self.number + 1)
            self.stream.changed.notify_all()

    def _end(self) -> None:
        with self.stream.changed:
            self.stream.ended = True
            self.stream.changed.notify_all()


def chunks_of(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[Chunk]:
    """Yield chunks of about so many bytes until one of them has met the end; the last ones may be empty."""
    stream, number = _Shared(iter(batches)), 0
    while not stream.ended:
        yield Chunk(stream, number, size)
        number += 1

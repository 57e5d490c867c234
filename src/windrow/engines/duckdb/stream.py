"""The answer to a query in batches, which are worked out while they are read.

with lake.stream("select * from metrics") as batches:
    for batch in batches:
        ...

A stream has a session of its own, and nothing of the lake is locked while its block lasts. When the block ends, so does
the query, whether all batches were read or not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Protocol

import duckdb
import pyarrow as pa

from windrow import forking, immortal
from windrow.engines.duckdb.execution import Execution
from windrow.engines.duckdb.interrupting import heeding_ctrl_c
from windrow.engines.duckdb.sinks import Batches
from windrow.errors import Closed, InvalidInput, WindrowError

__all__ = ["OpenStream", "Stream", "TableSource"]


_PATIENCE = 0.05
"""Seconds between two interrupts."""


class Source(Protocol):
    """Where a stream has its batches from."""

    schema: pa.Schema
    failure: Exception | None
    """Why there are no more batches, though there should be."""

    def next(self) -> pa.RecordBatch | None:
        """The next batch; None at the end."""

    def close(self) -> None:
        """Let go of everything; `next` raises `Closed` from now on."""


class Stream:
    """Batches for a `with` block, in which they are a `pyarrow.RecordBatchReader`."""

    def __init__(self, start: Callable[[], Source]) -> None:
        self._start: Callable[[], Source] | None = start
        self._source: Source | None = None

    def __enter__(self) -> pa.RecordBatchReader:
        start, self._start = self._start, None
        if start is None:
            raise InvalidInput("a stream is opened once; call lake.stream again for another one")
        source = self._source = start()
        return pa.RecordBatchReader.from_batches(source.schema, _batches(source))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        source, self._source = self._source, None
        if source is None:
            return
        source.close()
        # Other libraries read by Arrow's C interface, through which an error keeps nothing but its text.
        is_foreign = isinstance(error, OSError | pa.ArrowException | duckdb.Error)
        if source.failure is not None and is_foreign and not _comes_of(error, source.failure):
            raise source.failure from error


def _batches(source: Source) -> Iterator[pa.RecordBatch]:
    while (batch := source.next()) is not None:
        yield batch


def _comes_of(error: BaseException | None, cause: BaseException) -> bool:
    while error is not None and error is not cause:
        error = error.__cause__ or error.__context__
    return error is cause


def _ended() -> Closed:
    return Closed("the block of this stream has ended, and its query with it; read batches inside of the block")


class TableSource:
    """Rows that are there already."""

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self.failure: Exception | None = None
        self._batches = iter(table.to_batches())
        self._is_closed = False

    def next(self) -> pa.RecordBatch | None:
        """The next batch; None at the end."""
        if self._is_closed:
            raise _ended()
        return next(self._batches, None)

    def close(self) -> None:
        """Nothing is left to read."""
        self._is_closed = True


class OpenStream:
    """Rows of a query that is running."""

    def __init__(self, execution: Execution, batches: Batches, stack: ExitStack) -> None:
        self.schema = batches.schema
        self.failure: Exception | None = None
        self._execution = execution
        self._batches = batches
        self._stack = stack
        self._is_closed = self._is_forked = False
        forking.register(self)

    def after_fork(self) -> None:
        """Leave the query to the parent, in a forked child."""
        self._is_forked = True
        immortal.abandon(self._stack.pop_all(), self._execution, self._batches)

    def next(self) -> pa.RecordBatch | None:
        """The next batch; None at the end, once it is certain that what was read is what was planned with."""
        if self._is_forked:
            raise Closed("this stream was begun by the process that forked this one; ask again")
        execution = self._execution
        with heeding_ctrl_c(), forking.working(), execution.session.lock:
            if self._is_closed:
                raise _ended()
            execution.session.owner = threading.get_ident()
            try:
                batch = self._batches.next()
                if batch is None:
                    execution.finish()
                return batch
            except (WindrowError, duckdb.Error, pa.ArrowException) as error:
                self.failure = execution.cause(error)
                if self.failure is error:
                    raise
                raise self.failure from error

    def close(self) -> None:
        """End the query, and let go of files and of versions; doing it twice is fine."""
        if self._is_closed or self._is_forked:
            return
        self._is_closed = True
        session = self._execution.session
        with forking.working():
            while not session.lock.acquire(timeout=_PATIENCE):
                # Another thread reads a batch, which nobody waits for any more.
                session.interrupt()
            try:
                self._stack.close()
            finally:
                session.lock.release()

    def __del__(self) -> None:
        # A stream whose block was never left; the database may be gone with the process.
        with suppress(Exception):
            self.close()

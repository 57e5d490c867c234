"""Work of DuckDB that Ctrl-C can end.

While DuckDB works, the thread that called it hears no signal. So the work is done by another thread, and the main
thread waits for it: that is where Python delivers Ctrl-C, and it can tell DuckDB to stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import TypeVar

import duckdb

__all__ = ["Worker"]

T = TypeVar("T")

_PATIENCE = 0.05
"""Seconds; work that had not begun when it was told to stop is told again."""


class Worker:
    """A thread that is started when it is first needed."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None

    def run(self, cursor: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
        """Do some work of a cursor. When Ctrl-C comes meanwhile, it is stopped, and KeyboardInterrupt is raised."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="windrow-duckdb")
        future = self._pool.submit(work)
        try:
            # Where a library such as Polars has taken over the handling of Ctrl-C, it ends no wait by itself.
            while not future.done():
                wait_for([future], _PATIENCE)
            return future.result()
        except KeyboardInterrupt:
            _stop(cursor, future)
            raise

    def close(self) -> None:
        """Let the thread go."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def _stop(cursor: duckdb.DuckDBPyConnection, future: Future[T]) -> None:
    while not future.done():
        cursor.interrupt()
        wait_for([future], _PATIENCE)

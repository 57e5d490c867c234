"""Work of DuckDB that Ctrl-C can end.

While DuckDB works, the thread that called it hears no signal. So the work is done by another thread, and the main
thread waits for it: that is where Python delivers Ctrl-C, and it can tell DuckDB to stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

import duckdb

__all__ = ["Worker"]

T = TypeVar("T")

_INTERRUPTED = "Query interrupted"
"""What DuckDB says when it finds that Ctrl-C came."""
_PATIENCE = 0.05
"""Seconds; work that had not begun when it was told to stop is told again."""


class _Job:
    """Some work, and what became of it."""

    __slots__ = ("_done", "error", "is_done", "result", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        # A lock costs a fraction of what a future does.
        self._done = threading.Lock()
        self._done.acquire()

    def do(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._done.release()

    def wait(self) -> None:
        """Wait until it is done, or for a moment."""
        if not self.is_done:
            self._done.acquire(timeout=_PATIENCE)


class Worker:
    """A thread that is started when it is first needed."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] | None = None
        self._thread: threading.Thread | None = None

    def run(self, cursor: duckdb.DuckDBPyConnection, work: Callable[[], T], *, is_short: bool = False) -> T:
        """Do some work of a cursor. When Ctrl-C comes meanwhile, it is stopped, and KeyboardInterrupt is raised.

        Work that is too short for DuckDB to stop it is done at once, which saves a change of threads.
        """
        if threading.current_thread() is not threading.main_thread():
            return work()
        if is_short:
            return _done_here(work)
        job = _Job(work)
        try:
            self._started().put(job)
            # Where a library such as Polars has taken over the handling of Ctrl-C, it ends no wait by itself.
            while not job.is_done:
                job.wait()
        except KeyboardInterrupt:
            while not job.is_done:
                cursor.interrupt()
                job.wait()
            raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def _started(self) -> SimpleQueue[_Job | None]:
        if self._jobs is None:
            self._jobs = SimpleQueue()
            self._thread = threading.Thread(target=_work, args=(self._jobs,), name="windrow-duckdb", daemon=True)
            self._thread.start()
        return self._jobs

    def close(self) -> None:
        """Let the thread go."""
        if self._jobs is not None and self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
        self._jobs = self._thread = None


def _done_here(work: Callable[[], T]) -> T:
    try:
        return work()
    except RuntimeError as error:
        if str(error) != _INTERRUPTED:
            raise
        raise KeyboardInterrupt from error


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job.do()
        # What it holds goes with whoever waited for it.
        del job

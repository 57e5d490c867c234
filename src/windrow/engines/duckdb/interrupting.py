"""Work of DuckDB that Ctrl-C can end.

While DuckDB works, the thread that called it hears no signal. So the work is done by another thread, and the main
thread waits for it: that is where Python delivers Ctrl-C, and it can tell DuckDB to stop.
"""

from __future__ import annotations

import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

import duckdb

from windrow import forking

__all__ = ["Worker", "heeding_ctrl_c"]

T = TypeVar("T")

_INTERRUPTED = "Query interrupted"
"""What DuckDB says when it finds that Ctrl-C came."""
_PATIENCE = 0.05
"""Seconds; work that had not begun when it was told to stop is told again."""


class _Job:
    """Some work, and what became of it."""

    __slots__ = ("_done", "_taken", "error", "is_done", "result", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_done = False
        # A lock costs a fraction of what a future does.
        self._done = threading.Lock()
        self._done.acquire()
        self._taken = threading.Lock()

    def do(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            self.result = self.work()
        except BaseException as error:
            self.error = error
        self.is_done = True
        self._done.release()

    def cancel(self) -> bool:
        """Whether nobody has begun it; nobody will then."""
        return self._taken.acquire(blocking=False)

    def wait(self) -> None:
        """Wait until it is done, or for a moment."""
        if not self.is_done:
            self._done.acquire(timeout=_PATIENCE)


class Worker:
    """A thread that is started when it is first needed, and ends with whoever has it."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] | None = None
        self._thread: threading.Thread | None = None
        forking.register(self)

    def after_fork(self) -> None:
        """Start a thread of its own, in a forked child."""
        self._jobs = self._thread = None

    def run(self, cursor: duckdb.DuckDBPyConnection, work: Callable[[], T], *, is_short: bool = False) -> T:
        """Do some work of a cursor. When Ctrl-C comes meanwhile, it is stopped, and KeyboardInterrupt is raised.

        Work that is too short for DuckDB to stop it is done at once, which saves a change of threads.
        """
        if threading.current_thread() is not threading.main_thread():
            return work()
        if is_short:
            return _done_here(work)
        job, jobs = _Job(work), self._started()
        try:
            jobs.put(job)
            # Where a library such as Polars has taken over the handling of Ctrl-C, it ends no wait by itself.
            while not job.is_done:
                job.wait()
        except KeyboardInterrupt:
            if not job.cancel():
                _stop(cursor, job)
            raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def _started(self) -> SimpleQueue[_Job | None]:
        if self._jobs is None:
            jobs: SimpleQueue[_Job | None] = SimpleQueue()
            self._thread = threading.Thread(target=_work, args=(jobs,), name="windrow-duckdb", daemon=True)
            self._thread.start()
            weakref.finalize(self, jobs.put, None).atexit = False
            self._jobs = jobs
        return self._jobs

    def close(self) -> None:
        """Let the thread go."""
        if self._jobs is not None and self._thread is not None:
            self._jobs.put(None)
            if self._thread is not threading.current_thread():
                self._thread.join()
        self._jobs = self._thread = None


class _Heed:
    """Handles Ctrl-C as the handler before it does, and counts how often that was an interrupt.

    A session of Spark installs a handler of its own.
    """

    def __init__(self, handler: Callable[[int, FrameType | None], object]) -> None:
        self.handler = handler
        self.count = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        try:
            self.handler(number, frame)
        except KeyboardInterrupt:
            self.count += 1
            raise


@contextmanager
def heeding_ctrl_c() -> Iterator[None]:
    """For a block that calls DuckDB: where Ctrl-C came meanwhile, no other error than KeyboardInterrupt comes out.

    Code of ours that DuckDB calls may be where Python delivers Ctrl-C, and DuckDB makes an error of its own of it. A
    block that ends well is ended by it too.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    heed = handler if isinstance(handler, _Heed) else _Heed(handler)
    before = heed.count
    try:
        if heed is not handler:
            signal.signal(signal.SIGINT, heed)
        yield
    except Exception as error:
        if heed.count > before:
            raise KeyboardInterrupt from error
        raise
    finally:
        if heed is not handler:
            signal.signal(signal.SIGINT, handler)
    if heed.count > before:
        raise KeyboardInterrupt


def _stop(cursor: duckdb.DuckDBPyConnection, job: _Job) -> None:
    """End work that has begun, however often Ctrl-C comes: nobody else may use the cursor before."""
    while not job.is_done:
        try:
            cursor.interrupt()
            job.wait()
        except KeyboardInterrupt:
            continue


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

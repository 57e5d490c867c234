"""A store that does not take a slow or failed read for an answer: it asks again, and does not wait for the slowest.

Of many requests to an object store a few take a hundred times as long as the rest. A read without an answer after a
while is sent a second time beside the first, and whichever comes first counts. Only reads: they can be repeated.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from windrow import forking
from windrow.errors import InvalidInput, Replaced, StorageError
from windrow.storage.protocol import ObjectInfo, Store
from windrow.storage.wrapping import Call, StoreWrapper

__all__ = ["PatientStore", "patient_if_remote"]

Result = TypeVar("Result")

_READS = frozenset({"get", "get_ranges", "get_suffix", "head", "open", "read_at", "read_each"})
_HEDGES = 64
"""Reads that can be under way at once, second ones included."""


class PatientStore(StoreWrapper):
    """Reads of `store` that are tried up to `attempts` times, and doubled when they take `hedge_after` seconds.

    Between attempts it waits `pause` seconds, twice as long each time, less a random part, so that many readers do not
    come back at once. `hedge_after` None never doubles a read. Programs that read by a plain path need no patience.
    """

    def __init__(
        self,
        store: Store,
        *,
        attempts: int = 3,
        pause: float = 0.1,
        hedge_after: float | None = 2.0,
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(store, paths=True)
        if attempts < 1 or pause < 0 or (hedge_after is not None and hedge_after <= 0):
            raise InvalidInput(
                f"{store.url}: {attempts} attempts, {pause} s pause, hedge after {hedge_after} s; give at least 1 "
                "attempt, no negative pause, and a positive time or None"
            )
        self.hedged = 0
        """Reads that were sent a second time."""
        self._attempts = attempts
        self._pause = pause
        self._hedge_after = hedge_after
        self._sleep = sleep
        self._draw = draw
        self._pool: ThreadPoolExecutor | None = None
        forking.register(self)

    def after_fork(self) -> None:
        """Start threads of its own, in a forked child."""
        self._pool = None

    def around(self, call: Call, run: Callable[[], Result]) -> Result:
        """Make a call; a read as often as is needed."""
        if call.verb not in _READS:
            return run()
        for attempt in range(1, self._attempts):
            try:
                return self._once(run)
            except Replaced:
                raise
            except StorageError as error:
                if not error.retryable:
                    raise
            self._sleep(self._pause * 2 ** (attempt - 1) * (1 - self._draw() / 2))
        return self._once(run)

    def around_list(self, call: Call, listing: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:  # noqa: ARG002
        """Hand a listing on as it is."""
        return listing

    def _once(self, run: Callable[[], Result]) -> Result:
        if self._hedge_after is None:
            return run()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_HEDGES, thread_name_prefix="windrow-read")
        reads: set[Future[Result]] = {self._pool.submit(run)}
        done, _ = wait(reads, self._hedge_after)
        if not done:
            self.hedged += 1
            reads.add(self._pool.submit(run))
        return _first_success(reads)


def patient_if_remote(store: Store) -> Store:
    """A store whose reads are tried again where they are requests; files on this machine are read once."""
    return PatientStore(store) if store.is_remote else store


def _first_success(reads: set[Future[Result]]) -> Result:
    """The result of the read that succeeds first; the error of the last if none does."""
    while True:
        done, pending = wait(reads, return_when=FIRST_COMPLETED)
        for read in done:
            if read.exception() is None or not pending:
                for other in pending:
                    other.cancel()
                return read.result()
        reads = pending

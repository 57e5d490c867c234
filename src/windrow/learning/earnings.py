"""What statistics may cost: a share of the CPU that queries used, and no more than that."""

from __future__ import annotations

import time
from collections.abc import Callable

from windrow.learning.log import QueryCpu

__all__ = ["Earnings"]


class Earnings:
    """The account of one thread, which opens it: it earns by the queries of others, and pays for all that it does."""

    def __init__(
        self,
        share: float,
        *,
        spent: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._share = share
        self._spent = spent
        self._clock = clock
        self._opened = spent()
        self._earned = 0.0
        self._counted = 0.0
        """Up to where the CPU of the process was counted: of queries that run at once none counts twice."""
        self._worked = 0.0, 0.0
        """The CPU of the process when this thread last ended a piece of work, and what the piece took."""

    @property
    def balance(self) -> float:
        """Seconds of CPU that may be spent."""
        return self._earned - (self._spent() - self._opened)

    def earn(self, query: QueryCpu) -> None:
        """Count the CPU of a query, but for what this thread used meanwhile."""
        used = min(query.used, query.ended - max(query.began, self._counted))
        ended, own = self._worked
        if query.began < ended:
            used -= own
        self._counted = max(self._counted, query.ended)
        self._earned += self._share * max(used, 0.0)

    def work(self, piece: Callable[..., object], *given: object) -> float:
        """Do a piece of work; returns what it took."""
        began = self._spent()
        try:
            piece(*given)
        finally:
            took = self._spent() - began
            self._worked = self._clock(), took
        return took

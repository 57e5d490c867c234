"""How fast files are deleted: a store that also serves readers is not to be flooded."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Pace"]


@dataclass
class Pace:
    """Lets so many things happen per second; None does not hold anything back."""

    per_second: float | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _next: float = field(default=0.0, init=False)

    def wait(self, count: int = 1) -> None:
        """Wait until `count` more things may happen."""
        if self.per_second is None:
            return
        now = self.clock()
        if self._next > now:
            self.sleep(self._next - now)
        self._next = max(now, self._next) + count / self.per_second

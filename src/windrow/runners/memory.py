"""How the memory of a run is shared: fewer tasks at once rather than more memory than was granted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from windrow.errors import InvalidInput

__all__ = ["Shares", "check_threads", "default_budget", "shares"]

LEAST_SHARE = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Shares:
    """How many tasks run at once, and the bytes that each may take."""

    tasks: int
    size: int


def shares(budget: int, threads: int | None = None, least: int = LEAST_SHARE) -> Shares:
    """Share a budget among as many tasks as there are threads, or among fewer so that each gets the least it needs.

    >>> shares(256 * 2**20, threads=64)
    Shares(tasks=4, size=67108864)
    """
    tasks = max(1, min(threads or os.cpu_count() or 1, budget // least))
    return Shares(tasks, budget // tasks)


def check_threads(threads: Any) -> int | None:
    """Return a number of threads that can be used; None is one for each core."""
    if threads is None or (isinstance(threads, int) and not isinstance(threads, bool) and threads > 0):
        return threads
    raise InvalidInput(f"threads: {threads!r} is not a number of threads; give 1 or more, or leave it out")


def default_budget(a_thread: int, threads: int | None = None) -> int:
    """Return so many bytes for each thread, but at most half of what the machine has."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(a_thread * (threads or os.cpu_count() or 1), installed // 2)

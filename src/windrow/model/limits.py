"""What a lake may use of its machine: threads, and memory."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any

from windrow.errors import ConfigError

__all__ = ["NO_LIMITS", "READ_OVER", "Limits"]

READ_OVER = 128 * 2**10
"""So much between two ranges of bytes is read with them: a further read would cost as much."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(%|bytes?|([kmgt])?(i)?b)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass(frozen=True, slots=True)
class Limits:
    """Parts that are None bound nothing."""

    threads: int | None = None
    memory: int | None = None
    """Bytes."""
    workers: int = field(init=False, repr=False, compare=False)
    """How many threads there are for a piece of work: one for each core by default."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", self.threads or os.cpu_count() or 1)

    @classmethod
    def of(cls, threads: Any, memory: Any) -> Limits:
        """Return limits as a user writes them, memory as DuckDB takes it, such as "4GB", "512MiB" or "50%"."""
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ConfigError(f"threads: {threads!r} is not a number of threads; give 1 or more, or leave it out")
        return cls(threads, None if memory is None else _bytes(memory))

    @property
    def memory_text(self) -> str | None:
        """The memory as DuckDB takes it."""
        return None if self.memory is None else f"{self.memory} bytes"

    def within(self, budget: int) -> int:
        """Return a default budget, or what the limit leaves of it."""
        return budget if self.memory is None else min(budget, self.memory)


NO_LIMITS = Limits()


def _bytes(memory: Any) -> int:
    match = _SIZE.fullmatch(memory.strip()) if isinstance(memory, str) else None
    if match is None or not float(match[1]):
        raise ConfigError(f"memory_limit: {memory!r} is not a size; write it as 4GB, 512MiB or 50%")
    if match[2] == "%":
        return int(float(match[1]) / 100 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return int(float(match[1]) * (1024 if match[4] else 1000) ** _POWERS[(match[3] or "").lower()])

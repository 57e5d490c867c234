"""Deletes files of a lake, some at a time, and remembers which would not go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from windrow.errors import StorageError
from windrow.storage import Store
from windrow.upkeep.pace import Pace

__all__ = ["Deleting", "OnDelete"]

OnDelete = Callable[[int], None]
"""Called with the bytes of everything that was deleted."""


def _nobody(_: int) -> None:
    """Nobody listens."""


@dataclass
class Deleting:
    """Deletes files by threads, no faster than a pace."""

    store: Store
    threads: int = 8
    pace: Pace = field(default_factory=Pace)
    on_delete: OnDelete = _nobody
    problems: list[str] = field(default_factory=list)
    failed: int = 0

    def files(self, keys: Sequence[str]) -> set[str]:
        """Delete files and return the keys that are gone."""
        with ThreadPoolExecutor(self.threads, "windrow gc") as pool:
            answers = list(pool.map(self._delete, keys))
        problems = [answer for answer in answers if answer is not None]
        self.failed += len(problems)
        self.problems += problems
        return {key for key, answer in zip(keys, answers, strict=True) if answer is None}

    def report(self, size: int) -> int:
        """Report some bytes that are gone."""
        self.on_delete(size)
        return size

    def _delete(self, key: str) -> str | None:
        """Delete a file, or return why it is still there."""
        self.pace.wait()
        try:
            self.store.delete(key)
        except StorageError as error:
            return str(error)
        return None

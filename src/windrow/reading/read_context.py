"""What an application gives to reads of data files: a store, and a cache if it wants one.

read = ReadContextBuilder("./lake").with_cache(cache).build()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from windrow.cache import Cache
from windrow.errors import InvalidInput
from windrow.model.limits import NO_LIMITS, Limits
from windrow.planning.scan_context import ContextBuilder
from windrow.reading.cells import Cells
from windrow.reading.forcing import Forcing
from windrow.storage import Store, open_store

__all__ = ["ReadContext", "ReadContextBuilder"]

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class ReadContext:
    """What reading bytes of data files needs."""

    path: str
    store: Store
    cache: Cache[bytes] | None = None
    """For footers, and for ranges of remote files."""
    decoded: Cells | None = None
    """For what is decoded of small plans; None leaves all decoding to engines."""
    parallel: int = 8
    """How many requests run at once."""
    in_flight: int = _GIB
    """How many bytes may have been fetched and not yet read."""
    limits: Limits = NO_LIMITS
    """Threads and memory of engines."""
    forcing: Forcing | None = None
    """The source that reads are made to take, in tests."""

    def __post_init__(self) -> None:
        if self.parallel < 1 or self.in_flight < 1:
            raise InvalidInput(
                f"read of {self.path}: {self.parallel} requests at once, {self.in_flight} bytes in flight; "
                "give at least 1 of each"
            )


class ReadContextBuilder(ContextBuilder):
    """Puts a `ReadContext` together."""

    def with_limits(self, *, parallel: int, in_flight: int) -> Self:
        """Bound the requests that run at once and the bytes that were fetched and not yet read."""
        self._given.update(parallel=parallel, in_flight=in_flight)
        return self

    def build(self) -> ReadContext:
        """The context."""
        return ReadContext(self._path, self._store or open_store(self._path), **self._given)

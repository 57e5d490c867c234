"""What an application gives to a scan and to the reads that follow it: a store, and a cache if it wants one.

    scan = ScanContextBuilder("./lake").with_cache(cache).build()
    read = ReadContextBuilder("./lake").with_cache(cache).build()

Without a cache nothing is cached; a builder that is given None is as one that was given nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from windrow.cache import Cache, MemoryCache
from windrow.errors import InvalidInput
from windrow.model.epochs import OldColumns
from windrow.model.limits import NO_LIMITS, Limits
from windrow.scan.cells import Cells
from windrow.storage import Store, open_store

__all__ = ["ReadContext", "ReadContextBuilder", "ScanContext", "ScanContextBuilder"]

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What planning a scan needs."""

    path: str
    """The lake, the table or the folder."""
    store: Store
    cache: Cache[bytes] | None = None
    """For footers, page indexes and sidecars as bytes."""
    parsed: MemoryCache[Any] | None = None
    """For what was parsed from them."""
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For the stores of files that are registered in a table and not in the lake."""
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    """How many threads the reader has: plans give each of them something to do."""
    prune: bool = True
    """Whether plans leave out what cannot match; off, they read every row, which proves that nothing was lost."""
    old: OldColumns = field(default_factory=dict)
    """By schema epoch of a table: the columns that had another type then, of which only rows can tell."""


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
    plain: bool | None = None
    """Whether engines read local files themselves, not parts of them as a virtual file; None is where that is faster.

    Where the files alone would mislead an engine, they are read as a virtual file in any case.
    """

    def __post_init__(self) -> None:
        if self.parallel < 1 or self.in_flight < 1:
            raise InvalidInput(
                f"read of {self.path}: {self.parallel} requests at once, {self.in_flight} bytes in flight; "
                "give at least 1 of each"
            )


class _Builder:
    """What both contexts are given."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._store: Store | None = None
        self._given: dict[str, Any] = {}

    def with_store(self, store: Store) -> Self:
        """Read through this store instead of the one that the path names."""
        self._store = store
        return self

    def with_cache(self, cache: Cache[bytes] | None) -> Self:
        """Use this cache for bytes; None leaves caching off."""
        self._given["cache"] = cache
        return self


class ScanContextBuilder(_Builder):
    """Puts a `ScanContext` together."""

    def with_parsed(self, parsed: MemoryCache[Any] | None) -> Self:
        """Use this cache for parsed sidecars and footers; None leaves it off."""
        self._given["parsed"] = parsed
        return self

    def build(self) -> ScanContext:
        """The context."""
        return ScanContext(self._path, self._store or open_store(self._path), **self._given)


class ReadContextBuilder(_Builder):
    """Puts a `ReadContext` together."""

    def with_limits(self, *, parallel: int, in_flight: int) -> Self:
        """Bound the requests that run at once and the bytes that were fetched and not yet read."""
        self._given.update(parallel=parallel, in_flight=in_flight)
        return self

    def build(self) -> ReadContext:
        """The context."""
        return ReadContext(self._path, self._store or open_store(self._path), **self._given)

"""What an application gives to a scan: a store, and a cache if it wants one.

    scan = ScanContextBuilder("./lake").with_cache(cache).build()

Without a cache nothing is cached; a builder that is given None is as one that was given nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from windrow.cache import Cache, MemoryCache
from windrow.model.epochs import OldColumns
from windrow.storage import Store, open_store

if TYPE_CHECKING:
    from windrow.statistics.cached_catalog import CachedCatalog

__all__ = ["ContextBuilder", "ScanContext", "ScanContextBuilder"]


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
    statistics: CachedCatalog | None = field(default=None, repr=False)
    """What queries learnt of the files; None where nothing is stored."""
    old: OldColumns = field(default_factory=dict)
    """By schema epoch of a table: the columns that had another type then, of which only rows can tell."""


class ContextBuilder:
    """What contexts of scans and of reads are given."""

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


class ScanContextBuilder(ContextBuilder):
    """Puts a `ScanContext` together."""

    def build(self) -> ScanContext:
        """The context."""
        return ScanContext(self._path, self._store or open_store(self._path), **self._given)

"""What caches did, counted by kind, and what they hold."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from windrow import forking
from windrow.cache.protocol import CacheKind

__all__ = ["COUNTERS", "GAUGES", "CacheCounts", "CacheMetrics", "CacheRow", "KindRow", "summed"]


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """What happened to the values of one kind."""

    hits: int = 0
    """Values that were there."""
    misses: int = 0
    """Values that were loaded."""
    coalesced: int = 0
    """Callers that waited for the load of another one."""
    bypasses: int = 0
    """Values that were read past the cache: it is off, or nothing identifies them."""
    evictions: int = 0
    """Values that made room for others."""
    failures: int = 0
    """Values that were damaged, or could not be read or written where they are stored."""
    hit_bytes: int = 0
    """Bytes of hits, as they weigh."""
    loaded_bytes: int = 0
    """Bytes of misses, as they weigh."""


COUNTERS = tuple(each.name for each in fields(CacheCounts))
GAUGES = ("values", "bytes")


@dataclass(frozen=True, slots=True)
class KindRow:
    """What is cached of one kind."""

    kind: str
    values: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CacheRow:
    """What one cache did with values of one kind, and what it holds of them now."""

    cache: str
    kind: str
    hits: int = 0
    misses: int = 0
    coalesced: int = 0
    bypasses: int = 0
    evictions: int = 0
    failures: int = 0
    hit_bytes: int = 0
    loaded_bytes: int = 0
    values: int = 0
    bytes: int = 0

    def plus(self, other: CacheRow) -> CacheRow:
        """Both together."""
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in (*COUNTERS, *GAUGES)})

    def since(self, earlier: CacheRow | None) -> CacheRow:
        """What was counted since an earlier row, without what is held."""
        before = earlier or CacheRow(self.cache, self.kind)
        counted = {name: getattr(self, name) - getattr(before, name) for name in COUNTERS}
        return CacheRow(self.cache, self.kind, **counted)

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened, and nothing is there."""
        return not any(getattr(self, name) for name in (*COUNTERS, *GAUGES))


def summed(rows: Iterable[CacheRow]) -> list[CacheRow]:
    """One row for each cache and kind, in the order in which they first come."""
    sums: dict[tuple[str, str], CacheRow] = {}
    for row in rows:
        key = row.cache, row.kind
        sums[key] = sums[key].plus(row) if key in sums else row
    return list(sums.values())


class CacheMetrics:
    """Counters of one cache, by kind."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._counters: dict[CacheKind, Counter[str]] = {kind: Counter() for kind in CacheKind}
        forking.register(self)

    def after_fork(self) -> None:
        """Go on counting, in a forked child."""
        self._lock = threading.Lock()

    def add(self, kind: CacheKind, what: str, size: int | None = None) -> None:
        """Count one event; of hits and misses the bytes too."""
        with self._lock:
            counter = self._counters[kind]
            counter[what] += 1
            if size is not None:
                counter["hit_bytes" if what == "hits" else "loaded_bytes"] += size

    def counts(self, kind: CacheKind) -> CacheCounts:
        """What was counted of one kind up to now."""
        with self._lock:
            return CacheCounts(**self._counters[kind])

    def total(self) -> CacheCounts:
        """What was counted of all kinds up to now."""
        with self._lock:
            return CacheCounts(**sum(self._counters.values(), Counter()))

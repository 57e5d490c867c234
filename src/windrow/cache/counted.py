"""Counters for a cache that has none: an application's own class is measured from outside."""

from __future__ import annotations

from windrow.cache.metrics import CacheMetrics, KindRow
from windrow.cache.off import NoCache
from windrow.cache.protocol import Cache, CacheKey, CacheKind, Supplier
from windrow.cache.stats import is_metered, metered_caches, parts_of
from windrow.model.rows import Rows

__all__ = ["CountedCache", "count_bypass", "counted"]


class CountedCache:
    """Counts the requests to another cache: a value that was not loaded is a hit."""

    def __init__(self, inner: Cache[bytes], name: str = "application") -> None:
        self.inner = inner
        self.metrics = CacheMetrics(name)

    @property
    def parts(self) -> tuple[object, ...]:
        """The cache behind this one."""
        return (self.inner,)

    def get(self, key: CacheKey, supplier: Supplier[bytes]) -> bytes:
        """The value of a key."""
        loaded = []

        def load(wanted: CacheKey) -> bytes:
            value = supplier(wanted)
            loaded.append(value)
            return value

        value = self.inner.get(key, load)
        self.metrics.add(key.kind, "misses" if loaded else "hits", len(value))
        return value

    def put(self, key: CacheKey, value: bytes) -> None:
        """Keep a value, if there is room for it."""
        self.inner.put(key, value)

    def invalidate(self, key: CacheKey) -> None:
        """Forget one key."""
        self.inner.invalidate(key)

    def invalidate_all(self) -> None:
        """Forget everything."""
        self.inner.invalidate_all()

    def size(self) -> int:
        """How many values are cached."""
        return self.inner.size()

    def contents(self) -> Rows[KindRow]:
        """Nothing: the cache behind reports its own."""
        return Rows(KindRow, ())


def counted(cache: Cache[bytes] | None) -> Cache[bytes]:
    """A cache whose every request is counted: the same, if its parts count for themselves."""
    if cache is None:
        return NoCache()
    return cache if all(map(is_metered, parts_of(cache))) else CountedCache(cache)


def count_bypass(cache: Cache[bytes] | None, kind: CacheKind, values: int = 1) -> None:
    """Count values that are read without the cache that is there."""
    caches = [] if cache is None else metered_caches([cache])
    for _ in range(values if caches else 0):
        caches[0].metrics.add(kind, "bypasses")

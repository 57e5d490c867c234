"""Caches by kind, behind one: an application gives each kind of value a cache of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from windrow.cache.protocol import Cache, CacheKey, CacheKind, Supplier, Value

__all__ = ["RoutingCache"]


class RoutingCache(Generic[Value]):
    """Hands each call to the cache of the key's kind, or to the default one."""

    def __init__(self, default: Cache[Value], by_kind: Mapping[CacheKind, Cache[Value]]) -> None:
        self._default = default
        self._by_kind = dict(by_kind)

    @property
    def parts(self) -> tuple[Cache[Value], ...]:
        """Every cache once: several kinds may share one."""
        return tuple({id(cache): cache for cache in (self._default, *self._by_kind.values())}.values())

    def get(self, key: CacheKey, supplier: Supplier[Value]) -> Value:
        """The value of a key from the cache of its kind."""
        return self._of(key).get(key, supplier)

    def put(self, key: CacheKey, value: Value) -> None:
        """Keep a value in the cache of its kind."""
        self._of(key).put(key, value)

    def invalidate(self, key: CacheKey) -> None:
        """Forget one key."""
        self._of(key).invalidate(key)

    def invalidate_all(self) -> None:
        """Forget everything in all caches."""
        for cache in self.parts:
            cache.invalidate_all()

    def size(self) -> int:
        """How many values all caches keep."""
        return sum(cache.size() for cache in self.parts)

    def _of(self, key: CacheKey) -> Cache[Value]:
        return self._by_kind.get(key.kind, self._default)

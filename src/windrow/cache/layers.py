"""Two caches, one in front of the other: what the near one lacks comes from the far one, else it is loaded."""

from __future__ import annotations

from typing import Generic

from windrow.cache.protocol import Cache, CacheKey, Supplier, Value

__all__ = ["LayeredCache"]


class LayeredCache(Generic[Value]):
    """A small fast cache in front of a large slow one; each value that is loaded goes to both."""

    def __init__(self, near: Cache[Value], far: Cache[Value]) -> None:
        self._near = near
        self._far = far

    @property
    def parts(self) -> tuple[Cache[Value], ...]:
        """Both."""
        return self._near, self._far

    def get(self, key: CacheKey, supplier: Supplier[Value]) -> Value:
        """The value of a key from the near cache, else from the far one, else from the supplier."""
        return self._near.get(key, lambda missed: self._far.get(missed, supplier))

    def put(self, key: CacheKey, value: Value) -> None:
        """Store a value in both."""
        self._far.put(key, value)
        self._near.put(key, value)

    def invalidate(self, key: CacheKey) -> None:
        """Forget one key in both; the far one first, so that no load under way brings it back from there."""
        self._far.invalidate(key)
        self._near.invalidate(key)

    def invalidate_all(self) -> None:
        """Forget everything in both."""
        self._far.invalidate_all()
        self._near.invalidate_all()

    def size(self) -> int:
        """How many values the far cache holds, which are most of the near one's too."""
        return max(self._near.size(), self._far.size())

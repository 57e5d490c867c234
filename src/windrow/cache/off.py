"""A cache that is off: it caches nothing, and counts what was read without one."""

from __future__ import annotations

from windrow.cache.metrics import CacheMetrics, KindRow
from windrow.cache.protocol import CacheKey, Supplier
from windrow.model.rows import Rows

__all__ = ["NoCache"]


class NoCache:
    """Loads every value each time; each is a bypass."""

    def __init__(self, name: str = "off") -> None:
        self.metrics = CacheMetrics(name)

    def get(self, key: CacheKey, supplier: Supplier[bytes]) -> bytes:
        """What the supplier gives."""
        self.metrics.add(key.kind, "bypasses")
        return supplier(key)

    def put(self, key: CacheKey, value: bytes) -> None:
        """Drop the value."""

    def invalidate(self, key: CacheKey) -> None:
        """There is nothing to forget."""

    def invalidate_all(self) -> None:
        """There is nothing to forget."""

    def size(self) -> int:
        """None."""
        return 0

    def contents(self) -> Rows[KindRow]:
        """Nothing."""
        return Rows(KindRow, ())

"""What caches did, for people and for Prometheus."""

from __future__ import annotations

from windrow.cache import CacheKind, MemoryCache
from windrow.cache.metrics import CacheCounts


def test_events_are_counted_by_kind_with_their_bytes(key):
    cache = MemoryCache(1_000, name="footers")
    for _ in range(3):
        cache.get(key(kind=CacheKind.DATA_FILE_FOOTER), lambda asked: bytes(100))
    cache.get(key(), lambda asked: bytes(5000))
    cache.metrics.add(CacheKind.DATA_FILE_FOOTER, "bypasses")
    counts = cache.metrics.counts(CacheKind.DATA_FILE_FOOTER)
    assert counts == CacheCounts(hits=2, misses=1, bypasses=1, hit_bytes=2 * 400, loaded_bytes=400)
    assert cache.metrics.total().misses == 2
    for number in range(1, 4):
        cache.get(key(number, CacheKind.DATA_FILE_FOOTER), lambda asked: bytes(100))
    assert cache.metrics.counts(CacheKind.DATA_FILE_FOOTER).evictions == 2, "two of four fit"


def test_what_is_held_is_counted_by_kind_as_it_weighs(key):
    cache = MemoryCache(10_000)
    for number in range(3):
        cache.put(key(number, CacheKind.SIDECAR), bytes(100))
    cache.put(key(), bytes(50))
    assert cache.contents().to_dict() == [
        {"kind": "default", "values": 1, "bytes": 350},
        {"kind": "sidecar", "values": 3, "bytes": 1200},
    ]
    assert sum(row.bytes for row in cache.contents()) == cache.weight

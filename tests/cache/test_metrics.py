"""What caches did, for people and for Prometheus."""

from __future__ import annotations

from windrow.cache import CacheKind, MemoryCache, prometheus_text
from windrow.cache.metrics import Counts


def test_events_are_counted_by_kind_with_their_bytes(key):
    cache = MemoryCache(1_000, name="footers")
    for _ in range(3):
        cache.get(key(kind=CacheKind.DATA_FILE_FOOTER), lambda asked: bytes(100))
    cache.get(key(), lambda asked: bytes(5000))
    cache.metrics.add(CacheKind.DATA_FILE_FOOTER, "bypasses")
    counts = cache.metrics.counts(CacheKind.DATA_FILE_FOOTER)
    assert counts == Counts(hits=2, misses=1, bypasses=1, hit_bytes=2 * 400, loaded_bytes=400)
    assert cache.metrics.total().misses == 2


def test_the_text_is_what_prometheus_reads(key):
    cache = MemoryCache(1_000, name="footers")
    cache.get(key(kind=CacheKind.SIDECAR), lambda asked: b"x")
    text = prometheus_text([cache.metrics])
    assert "# TYPE windrow_cache_misses_total counter\n" in text
    assert 'windrow_cache_misses_total{cache="footers",kind="sidecar"} 1\n' in text
    assert 'windrow_cache_hits_total{cache="footers",kind="sidecar"} 0\n' in text
    assert text.count("# TYPE") == len({line.split()[2] for line in text.splitlines() if line.startswith("#")})

"""Caches that count nothing, and no cache at all, are counted from outside."""

from __future__ import annotations

import pytest

from windrow.cache import CacheKind, CountedCache, MemoryCache, NoCache, RoutingCache, count_bypass, counted
from windrow.cache.metrics import CacheCounts

FOOTER = CacheKind.DATA_FILE_FOOTER


class Own:
    """An application's own cache."""

    def __init__(self):
        self.values = {}

    def get(self, key, supplier):
        if key not in self.values:
            self.values[key] = supplier(key)
        return self.values[key]

    def put(self, key, value):
        self.values[key] = value

    def invalidate(self, key):
        self.values.pop(key, None)

    def invalidate_all(self):
        self.values.clear()

    def size(self):
        return len(self.values)


def test_a_cache_that_counts_for_itself_is_left_alone():
    for cache in (MemoryCache(100), RoutingCache(MemoryCache(100), {FOOTER: MemoryCache(100)})):
        assert counted(cache) is cache


@pytest.mark.parametrize("wrap", [lambda own: own, lambda own: RoutingCache(MemoryCache(100), {FOOTER: own})])
def test_requests_to_an_own_cache_are_counted(key, wrap):
    own = Own()
    cache = counted(wrap(own))
    for _ in range(3):
        assert cache.get(key(kind=FOOTER), lambda _: b"abc") == b"abc"
    assert isinstance(cache, CountedCache)
    assert cache.metrics.counts(FOOTER) == CacheCounts(hits=2, misses=1, hit_bytes=6, loaded_bytes=3)
    cache.put(key(1, FOOTER), b"x")
    assert (own.size(), cache.size()) == (2, 2)
    cache.invalidate(key(1, FOOTER))
    assert own.size() == 1
    cache.invalidate_all()
    assert own.size() == 0


def test_an_error_of_a_supplier_is_no_request(key):
    cache = counted(Own())
    with pytest.raises(OSError, match="gone"):
        cache.get(key(), lambda _: (_ for _ in ()).throw(OSError("gone")))
    assert cache.metrics.total() == CacheCounts()


def test_without_a_cache_every_value_is_a_bypass(key):
    cache = counted(None)
    assert isinstance(cache, NoCache)
    cache.put(key(kind=FOOTER), b"old")
    for value in (b"1", b"2"):
        assert cache.get(key(kind=FOOTER), lambda _, value=value: value) == value
    assert (cache.size(), cache.metrics.counts(FOOTER)) == (0, CacheCounts(bypasses=2))


def test_a_bypass_is_counted_wherever_counters_are(key):
    for cache in (MemoryCache(100), RoutingCache(MemoryCache(100), {}), counted(Own()), counted(None)):
        count_bypass(cache, FOOTER, 2)
        metrics = cache.metrics if hasattr(cache, "metrics") else cache.parts[0].metrics
        assert metrics.counts(FOOTER).bypasses == 2
    count_bypass(None, FOOTER)

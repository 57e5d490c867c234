"""Caches behind caches: by kind, near and far, and one that an application wrote itself."""

from __future__ import annotations

from windrow.cache import CacheKind, CacheSettings, DiskCache, LayeredCache, MemoryCache, RoutingCache, default_cache
from windrow.cache.default import cache_folder


def test_each_kind_goes_to_its_own_cache(key):
    footers, others = MemoryCache(10_000), MemoryCache(10_000)
    cache = RoutingCache(others, {CacheKind.DATA_FILE_FOOTER: footers})
    cache.get(key(kind=CacheKind.DATA_FILE_FOOTER), lambda asked: b"footer")
    cache.put(key(), b"other")
    assert (footers.size(), others.size(), cache.size()) == (1, 1, 2)
    cache.invalidate(key(kind=CacheKind.DATA_FILE_FOOTER))
    assert (footers.size(), others.size()) == (0, 1)
    cache.invalidate_all()
    assert cache.size() == 0


def test_a_cache_that_serves_two_kinds_counts_once(key):
    shared = MemoryCache(10_000)
    cache = RoutingCache(shared, {CacheKind.SIDECAR: shared})
    cache.put(key(kind=CacheKind.SIDECAR), b"sidecar")
    assert cache.size() == 1


def test_the_far_cache_is_asked_before_anything_is_loaded(tmp_path, key):
    near, far, loads = MemoryCache(10_000), DiskCache(tmp_path, 10_000), []
    cache = LayeredCache(near, far)

    def load(asked):
        loads.append(asked)
        return b"value"

    assert cache.get(key(), load) == b"value"
    near.invalidate_all()
    assert cache.get(key(), load) == b"value"
    assert len(loads) == 1
    cache.invalidate(key())
    assert cache.get(key(), load) == b"value"
    assert len(loads) == 2
    cache.put(key(1), b"one")
    assert (near.size(), far.size(), cache.size()) == (2, 2, 2)
    cache.invalidate_all()
    assert cache.size() == 0


def test_the_default_cache_keeps_remote_ranges_on_disk_and_other_bytes_in_memory(tmp_path, key):
    cache = default_cache(CacheSettings(folder=tmp_path))
    cache.put(key(kind=CacheKind.DATA_RANGE), b"range")
    cache.put(key(), b"other")
    assert cache.memory.size() == 2
    assert cache.disk.size() == 1
    again = default_cache(CacheSettings(folder=tmp_path))
    assert again.get(key(kind=CacheKind.DATA_RANGE), None) == b"range"


def test_the_default_cache_can_do_without_a_disk(key):
    cache = default_cache(CacheSettings(disk_bytes=0))
    cache.put(key(kind=CacheKind.DATA_RANGE), b"range")
    assert cache.disk is None
    assert cache.size() == 1


def test_the_folder_is_where_caches_belong():
    assert str(cache_folder({"XDG_CACHE_HOME": "/var/c"})) == "/var/c/windrow"
    assert str(cache_folder({"HOME": "/home/me"})) == "/home/me/.cache/windrow"

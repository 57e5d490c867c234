"""What caches did and hold, as rows and as Prometheus text."""

from __future__ import annotations

from windrow.bounded import BoundedCache
from windrow.cache import CacheKind, CacheRow, LayeredCache, MemoryCache, RoutingCache, prometheus_text
from windrow.cache.caches import Caches
from windrow.cache.stats import cache_rows, metered_caches


def test_every_part_of_a_cache_has_rows_once(key):
    near, far, footers = MemoryCache(1_000, name="near"), MemoryCache(1_000, name="far"), MemoryCache(900, name="feet")
    layers = LayeredCache(near, far)
    cache = RoutingCache(layers, {CacheKind.DATA_FILE_FOOTER: footers, CacheKind.SIDECAR: layers})
    for _ in range(2):
        cache.get(key(kind=CacheKind.SIDECAR), lambda _: b"x")
        cache.get(key(kind=CacheKind.DATA_FILE_FOOTER), lambda _: b"xy")
    rows = {(row.cache, row.kind): row for row in cache_rows(metered_caches([cache]))}
    assert len(rows) == 3 * len(CacheKind)
    assert (rows["near", "sidecar"].hits, rows["near", "sidecar"].misses, rows["far", "sidecar"].misses) == (1, 1, 1)
    footer = rows["feet", "data_file_footer"]
    assert (footer.hits, footer.misses, footer.values, footer.bytes) == (1, 1, 1, 302)
    assert rows["feet", "sidecar"].is_empty


def test_caches_of_one_name_are_one_row(key):
    first, second = MemoryCache(1_000), MemoryCache(1_000)
    for cache in (first, second):
        cache.get(key(), lambda _: b"x")
    [row] = [row for row in cache_rows([first, second]) if not row.is_empty]
    assert (row.cache, row.misses, row.values) == ("memory", 2, 2)


def test_the_text_is_what_prometheus_reads(key):
    cache = MemoryCache(1_000, name='a "large" one')
    cache.get(key(kind=CacheKind.SIDECAR), lambda _: b"x")
    text = prometheus_text(cache_rows([cache]))
    labels = 'cache="a \\"large\\" one",kind="sidecar"'
    assert "# TYPE windrow_cache_misses_total counter\n" in text
    assert f"windrow_cache_misses_total{{{labels}}} 1\n" in text
    assert f"windrow_cache_hits_total{{{labels}}} 0\n" in text
    assert "# TYPE windrow_cache_bytes gauge\n" in text
    assert f"windrow_cache_bytes{{{labels}}} 301\n" in text
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert text.count("# TYPE") == len({line.split()[2] for line in text.splitlines() if line.startswith("#")})


def test_rows_tell_what_was_counted_since():
    earlier, now = CacheRow("memory", "sidecar", hits=2, bytes=9), CacheRow("memory", "sidecar", hits=5, bytes=7)
    assert now.since(earlier) == CacheRow("memory", "sidecar", hits=3)
    assert now.since(None) == CacheRow("memory", "sidecar", hits=5)


def test_caches_that_count_entries_are_shown_too():
    cache = BoundedCache("entries of a test", 1)
    for key in ("a", "a", "b"):
        cache.get_or_make(key, lambda: 1)
    [row] = [row for row in Caches([]).stats() if row.cache == "entries of a test"]
    assert (row.kind, row.hits, row.misses, row.evictions, row.values) == ("entries", 1, 2, 1, 1)
    assert 'windrow_cache_hits_total{cache="entries of a test",kind="entries"} 1' in Caches([]).prometheus()

"""Bytes and what was parsed from them, cached: the cache protocol, its tiers, routing and metrics.

An application can inject a cache of its own through the builders of `windrow.planning.scan_context`; it
only has to follow the `Cache` protocol. Without one nothing is cached; `windrow.connect` installs `default_cache`.
"""

from windrow.cache.caches import Caches
from windrow.cache.counted import CountedCache, count_bypass, counted
from windrow.cache.default import CacheSettings, cache_folder, default_cache
from windrow.cache.disk import DiskCache
from windrow.cache.layers import LayeredCache
from windrow.cache.memory import MemoryCache
from windrow.cache.metrics import CacheMetrics, CacheRow
from windrow.cache.off import NoCache
from windrow.cache.protocol import Cache, CacheKey, CacheKind, Supplier
from windrow.cache.routing import RoutingCache
from windrow.cache.stats import prometheus_text

__all__ = [
    "Cache",
    "CacheKey",
    "CacheKind",
    "CacheMetrics",
    "CacheRow",
    "CacheSettings",
    "Caches",
    "CountedCache",
    "DiskCache",
    "LayeredCache",
    "MemoryCache",
    "NoCache",
    "RoutingCache",
    "Supplier",
    "cache_folder",
    "count_bypass",
    "counted",
    "default_cache",
    "prometheus_text",
]

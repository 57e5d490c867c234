"""Opens the parts of a lake with its caches; what that takes is loaded when it happens, not before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windrow.model.cache_settings import CacheSettings
from windrow.model.learning_settings import LearningSettings

if TYPE_CHECKING:
    from windrow.cache import Cache
    from windrow.context import Context

__all__ = ["DEFAULT_CACHE", "context_of", "settings_of"]

DEFAULT_CACHE = CacheSettings()


def settings_of(cache: Cache[bytes] | CacheSettings | None) -> CacheSettings | None:
    """The settings of what is cached; those by default beside a cache of the caller's own."""
    return cache if cache is None or isinstance(cache, CacheSettings) else DEFAULT_CACHE


def context_of(
    url: str,
    metastore: str | None,
    store_options: Mapping[str, str] | None,
    cache: Cache[bytes] | CacheSettings | None,
    *,
    prune: bool,
    statistics: LearningSettings,
    **parts: Any,
) -> Context:
    """Open the parts of a lake, with caches as they are wanted."""
    import os

    from windrow.cache import MemoryCache, cache_folder, counted, default_cache
    from windrow.context import Context
    from windrow.planning.data_files import weight_of
    from windrow.reading.cells import Cells
    from windrow.statistics.cached_catalog import CachedCatalog
    from windrow.statistics.catalog import FolderCatalog

    settings = settings_of(cache) or DEFAULT_CACHE
    caches: dict[str, Any] = {
        "cache": counted(default_cache(cache) if isinstance(cache, CacheSettings) else cache),
        "parsed": None if cache is None else MemoryCache(settings.parsed_bytes, weigh=weight_of, name="parsed"),
    }
    if cache is not None and settings.decoded_bytes and prune:
        # Without pruning, every row goes through the engine.
        caches["decoded"] = Cells(settings.decoded_bytes)
    if isinstance(cache, CacheSettings) and cache.disk_bytes:
        folder = (cache.folder or cache_folder(os.environ)) / "statistics"
        caches["learnt"] = CachedCatalog(FolderCatalog(folder))
    parts |= {name: part for name, part in caches.items() if part is not None}
    return Context.open(url, metastore, store_options, prune=prune, statistics=statistics, **parts)

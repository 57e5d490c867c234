"""The cache that `windrow.connect` installs: bytes and parsed values in memory, remote ranges on the local disk too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from windrow.cache.disk import DiskCache
from windrow.cache.layers import LayeredCache
from windrow.cache.memory import MemoryCache
from windrow.cache.protocol import Cache, CacheKey, CacheKind
from windrow.cache.routing import RoutingCache
from windrow.model.cache_settings import CacheSettings

__all__ = ["CacheSettings", "DefaultCache", "cache_folder", "default_cache"]


def cache_folder(environ: Mapping[str, str]) -> Path:
    """The folder for what may be lost, as XDG says."""
    base = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
    return Path(base) / "windrow"


class DefaultCache(RoutingCache[bytes]):
    """Ranges of remote files and sidecars of foreign ones are cached in memory and on disk, all else in memory."""

    def __init__(self, memory: MemoryCache[bytes], disk: DiskCache | None) -> None:
        self.memory = memory
        self.disk = disk
        far: Cache[bytes] = memory if disk is None else LayeredCache(memory, disk)
        super().__init__(memory, {CacheKind.DATA_RANGE: far, CacheKind.SIDECAR: far, CacheKind.DATA_FILE_FOOTER: far})

    def _of(self, key: CacheKey) -> Cache[bytes]:
        # The footer of a local file is on this disk already.
        is_local = key.kind is CacheKind.DATA_FILE_FOOTER and key.uri.startswith("file:")
        return self.memory if is_local else super()._of(key)


def default_cache(settings: CacheSettings | None = None) -> DefaultCache:
    """Make the cache for bytes that a lake uses unless it is given another one."""
    settings = settings or CacheSettings()
    disk = None
    if settings.disk_bytes:
        disk = DiskCache(settings.folder or cache_folder(os.environ), settings.disk_bytes)
    return DefaultCache(MemoryCache(settings.memory_bytes), disk)

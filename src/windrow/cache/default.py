"""The cache that `windrow.connect` installs: bytes and parsed values in memory, remote ranges on the local disk too."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from windrow.cache.disk import DiskCache
from windrow.cache.layers import LayeredCache
from windrow.cache.memory import MemoryCache
from windrow.cache.protocol import Cache, CacheKey, CacheKind
from windrow.cache.routing import RoutingCache

__all__ = ["CacheSettings", "DefaultCache", "cache_folder", "default_cache"]

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How much may be cached where."""

    memory_bytes: int = 256 * _MIB
    """For bytes, in memory."""
    parsed_bytes: int = 256 * _MIB
    """For what was parsed from them, in memory, by its real footprint."""
    decoded_bytes: int = 128 * _MIB
    """For columns of local files that queries read again and again, decoded, in memory; 0 caches none."""
    disk_bytes: int = 10 * 1024 * _MIB
    """For bytes of remote files, on the disk; 0 keeps none."""
    folder: Path | None = None
    """Where on the disk; None is `windrow` in the user's cache folder."""


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

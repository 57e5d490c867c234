"""Bytes of data files that a scan has fetched: read where they are now, and never requested of a store.

Those of files on this machine are read from them: the system has them in memory. Those of remote files are in the cache
of the reader, by the units in which it fetched them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from windrow.cache import Cache, CacheKey, CacheKind
from windrow.errors import NotFound
from windrow.planning.data_files import DataFile
from windrow.storage import OpenFile

__all__ = ["FetchedBytes"]


class FetchedBytes:
    """Bytes of one file; `units` are the offsets and lengths that were fetched of a remote one."""

    def __init__(self, file: DataFile, cache: Cache[bytes] | None, units: Sequence[tuple[int, int]] = ()) -> None:
        self._file = file
        self._cache = cache
        self._units = sorted(units)
        self._opened: OpenFile | None = None

    def add(self, units: Sequence[tuple[int, int]]) -> None:
        """Take units of one more scan."""
        if not set(units) <= set(self._units):
            self._units = sorted({*self._units, *units})

    def read(self, offset: int, length: int) -> bytes:
        """Exactly so many bytes; `NotFound` where they are not here, `Replaced` where the file is another one."""
        if not length:
            return b""
        if self._file.store.local is not None:
            if self._opened is None:
                self._opened = self._file.store.local.open(self._file.key, expect=self._file.identity)
            return self._opened.read_at(offset, length)
        return self._cached(offset, length)

    def close(self) -> None:
        """Let go of the file, and make sure that it is still the one that was planned with."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.check()

    def _cached(self, offset: int, length: int) -> bytes:
        out, at, end = bytearray(length), offset, offset + length
        for start, size in self._units[max(bisect_right(self._units, (offset, 2**63)) - 1, 0) :]:
            if start > at or at >= end:
                break
            if start + size <= at:
                continue
            last = min(start + size, end)
            data = self._unit(start, size)
            out[at - offset : last - offset] = memoryview(data)[at - start : last - start]
            at = last
        if at < end:
            raise self._missing(at)
        return bytes(out)

    def _unit(self, start: int, size: int) -> bytes:
        def refuse(key: CacheKey) -> bytes:
            raise self._missing(key.position)

        file = self._file
        if self._cache is None:
            raise self._missing(start)
        return self._cache.get(CacheKey(file.uri, start, size, CacheKind.DATA_RANGE, file.cache_identity), refuse)

    def _missing(self, offset: int) -> NotFound:
        return NotFound(f"{self._file.uri}: the bytes from {offset} on are in no cache; a later query fetches them")

"""The caches of a lake, as its users look at them."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.cache.disk import DiskCache
from windrow.cache.ledger import Ledger
from windrow.cache.metrics import CacheRow
from windrow.cache.stats import cache_rows, entry_rows, metered_caches, prometheus_text
from windrow.model.rows import Rows

__all__ = ["Caches"]


class Caches:
    """What the caches of a lake did since it was opened."""

    def __init__(self, caches: Sequence[object]) -> None:
        self._caches = metered_caches(caches)
        self._recorded: dict[tuple[str, str], CacheRow] = {}

    def stats(self) -> Rows[CacheRow]:
        """Hits, misses, bypasses, evictions and bytes of each cache, by kind; kinds that it never met are left out.

        Rows of the kind `entries` are of caches that count values instead of bytes, of the whole process.
        """
        return Rows(CacheRow, tuple(row for row in self._rows() if not row.is_empty))

    def prometheus(self) -> str:
        """The same as text that Prometheus reads, zeros included."""
        return prometheus_text(self._rows())

    def _rows(self) -> list[CacheRow]:
        return [*cache_rows(self._caches), *entry_rows()]

    def record(self) -> None:
        """Add what was counted since the last time to the counters in the cache folder, if there is one."""
        folders = {each.folder for each in self._caches if isinstance(each, DiskCache)}
        if not folders:
            return
        rows = {(row.cache, row.kind): row for row in cache_rows(self._caches)}
        counted = [row.since(self._recorded.get(key)) for key, row in rows.items()]
        self._recorded = rows
        for folder in folders:
            Ledger(folder).add(counted)

    def __repr__(self) -> str:
        return str(self.stats())

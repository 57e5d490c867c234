"""What caches did, counted by kind, as numbers and as Prometheus text."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields

from windrow import forking
from windrow.cache.protocol import CacheKind

__all__ = ["CacheMetrics", "Counts", "prometheus_text"]


@dataclass(frozen=True, slots=True)
class Counts:
    """What happened to the values of one kind."""

    hits: int = 0
    """Values that were there."""
    misses: int = 0
    """Values that were loaded."""
    coalesced: int = 0
    """Callers that waited for the load of another one."""
    bypasses: int = 0
    """Values that were read without asking the cache: it is off, or nothing identifies them."""
    evictions: int = 0
    """Values that made room for others."""
    failures: int = 0
    """Values that were damaged, or could not be read or written where they are kept."""
    hit_bytes: int = 0
    """Bytes of hits, as they weigh."""
    loaded_bytes: int = 0
    """Bytes of misses, as they weigh."""


_NAMES = tuple(each.name for each in fields(Counts))


class CacheMetrics:
    """Counters of one cache, by kind."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._counters: dict[CacheKind, Counter[str]] = {kind: Counter() for kind in CacheKind}
        forking.register(self)

    def after_fork(self) -> None:
        """Go on counting, in a forked child."""
        self._lock = threading.Lock()

    def add(self, kind: CacheKind, what: str, size: int | None = None) -> None:
        """Count one event; of hits and misses the bytes too."""
        with self._lock:
            counter = self._counters[kind]
            counter[what] += 1
            if size is not None:
                counter["hit_bytes" if what == "hits" else "loaded_bytes"] += size

    def counts(self, kind: CacheKind) -> Counts:
        """What was counted of one kind up to now."""
        with self._lock:
            return Counts(**self._counters[kind])

    def total(self) -> Counts:
        """What was counted of all kinds up to now."""
        with self._lock:
            return Counts(**sum(self._counters.values(), Counter()))


def prometheus_text(metrics: Iterable[CacheMetrics]) -> str:
    """The counters of caches in the text format that Prometheus reads."""
    caches = list(metrics)
    lines = []
    for name in _NAMES:
        metric = f"windrow_cache_{name}_total"
        lines.append(f"# TYPE {metric} counter")
        for cache in caches:
            for kind in CacheKind:
                value = getattr(cache.counts(kind), name)
                lines.append(f'{metric}{{cache="{cache.name}",kind="{kind}"}} {value}')
    return "\n".join(lines) + "\n"

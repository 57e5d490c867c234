"""What caches did and what they hold, by kind: as rows, and as the text that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Protocol, TypeGuard, runtime_checkable

from windrow.bounded import entry_counts
from windrow.cache.metrics import COUNTERS, GAUGES, CacheMetrics, CacheRow, KindRow, summed
from windrow.cache.protocol import CacheKind
from windrow.model.rows import Rows

__all__ = [
    "ENTRIES",
    "Metered",
    "cache_rows",
    "entry_rows",
    "is_metered",
    "metered_caches",
    "parts_of",
    "prometheus_text",
]

ENTRIES = "entries"


@runtime_checkable
class Metered(Protocol):
    """A cache that counts for itself."""

    metrics: CacheMetrics

    def contents(self) -> Rows[KindRow]:
        """What is cached, by kind."""


def parts_of(cache: object) -> list[object]:
    """The caches that a cache hands requests to, each once; itself, if it has no parts."""
    parts = getattr(cache, "parts", None)
    leaves = [cache] if parts is None else [leaf for part in parts for leaf in parts_of(part)]
    return _once(leaves)


def metered_caches(caches: Iterable[object]) -> list[Metered]:
    """The caches that count for themselves, and such parts of others."""
    parts = _once([part for cache in caches for part in (cache, *parts_of(cache))])
    return [each for each in parts if is_metered(each)]


def is_metered(cache: object) -> TypeGuard[Metered]:
    """Whether a cache counts for itself; a class of an application may have other things under these names."""
    return isinstance(cache, Metered) and isinstance(cache.metrics, CacheMetrics)


def cache_rows(caches: Iterable[Metered]) -> list[CacheRow]:
    """A row for each cache and kind; caches of one name are one."""
    metered = [(cache.metrics, cache.contents()) for cache in caches]
    return summed(_row(metrics, kind, contents) for metrics, contents in metered for kind in CacheKind)


def entry_rows() -> list[CacheRow]:
    """A row for each kind of cache of this process that counts values instead of bytes."""
    return [
        CacheRow(each.name, ENTRIES, hits=each.hits, misses=each.misses, evictions=each.evictions, values=each.values)
        for each in entry_counts()
    ]


def _row(metrics: CacheMetrics, kind: CacheKind, contents: Rows[KindRow]) -> CacheRow:
    held = next((row for row in contents if row.kind == kind), KindRow(str(kind), 0, 0))
    return CacheRow(metrics.name, str(kind), **asdict(metrics.counts(kind)), values=held.values, bytes=held.bytes)


def prometheus_text(rows: Iterable[CacheRow]) -> str:
    """Rows in the text format that Prometheus reads."""
    shown = list(rows)
    names = [(name, f"windrow_cache_{name}_total", "counter") for name in COUNTERS]
    names += [(name, f"windrow_cache_{name}", "gauge") for name in GAUGES]
    lines = []
    for name, metric, kind in names:
        lines.append(f"# TYPE {metric} {kind}")
        lines += [f'{metric}{{cache="{_label(row.cache)}",kind="{row.kind}"}} {getattr(row, name)}' for row in shown]
    return "\n".join(lines) + "\n"


def _once(caches: Iterable[object]) -> list[object]:
    return list({id(each): each for each in caches}.values())


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

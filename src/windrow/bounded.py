"""Caches that count entries: what was worked out lately, of one kind each, with a name, a bound and counters.

Bytes of files, and what was parsed from them, are in `windrow.cache`, under budgets of bytes. Here is what is small or
has no size of its own: parsed queries, compiled expressions, lists that plans are made from. The newest entries stay.

A key is a value that is compared, or a thing that is equal to itself alone. The `id()` of a thing is no key, since
another thing may get it.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, ParamSpec, TypeVar

from windrow import forking

__all__ = ["BoundedCache", "EntryCounts", "entry_counts", "memo"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
P = ParamSpec("P")

_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """What the caches of one name did in this process, and what they hold."""

    name: str
    hits: int
    misses: int
    evictions: int
    values: int

    def plus(self, other: EntryCounts) -> EntryCounts:
        """Both together."""
        return EntryCounts(
            self.name,
            self.hits + other.hits,
            self.misses + other.misses,
            self.evictions + other.evictions,
            self.values + other.values,
        )


class BoundedCache(Generic[K, V]):
    """At most so many values under keys; the one that was used longest ago makes room. Threads may share it.

    With a `budget`, values are put with what they weigh; all together weigh no more, but `least` values always stay.
    """

    def __init__(self, name: str, most: int | None = None, *, budget: float = float("inf"), least: int = 0) -> None:
        self.name = name
        self.most = most
        self._budget = budget
        self._least = least
        self._lock = threading.RLock()  # a destructor may come back while a value makes room
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weights: dict[K, int] = {}
        self._hits = self._misses = self._evictions = self._weight = 0
        forking.register(self)
        with _caches_lock:
            _caches.add(self)

    def after_fork(self) -> None:
        """Keep what is here, in a forked child, unless it was being changed."""
        is_whole, self._lock = forking.was_free(self._lock), threading.RLock()
        if not is_whole:
            self._empty()

    def get(self, key: K, default: V | None = None) -> V | None:
        """The value of a key, or the default."""
        with self._lock:
            value: V = self._values.get(key, _MISSING)
            if value is _MISSING:
                self._misses += 1
                return default
            self._hits += 1
            self._values.move_to_end(key)
            return value

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """The value of a key, made where it is missing; threads that miss it together make it each for itself."""
        value: V | None = self.get(key, _MISSING)
        if value is _MISSING:
            value = make()
            self.put(key, value)
        return value  # type: ignore[return-value]

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Add a value, or replace it, or state that it has gained weight."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            self._weight += weight - self._weights.get(key, 0)
            self._weights[key] = weight
            while self._is_full():
                self._forget(next(iter(self._values)))
                self._evictions += 1

    def drop(self, key: K) -> None:
        """Let a value go, if it is there."""
        with self._lock:
            if key in self._values:
                self._forget(key)

    def clear(self) -> None:
        """Let everything go."""
        with self._lock:
            self._empty()

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def counts(self) -> EntryCounts:
        """What happened here up to now."""
        with self._lock:
            return EntryCounts(self.name, self._hits, self._misses, self._evictions, len(self._values))

    def _forget(self, key: K) -> None:
        self._weight -= self._weights.pop(key)
        del self._values[key]

    def _empty(self) -> None:
        self._values, self._weights, self._weight = OrderedDict(), {}, 0

    def _is_full(self) -> bool:
        if self.most is not None and len(self._values) > self.most:
            return True
        return self._weight > self._budget and len(self._values) > self._least


_caches: weakref.WeakSet[BoundedCache[Any, Any]] = weakref.WeakSet()
_caches_lock = threading.Lock()


def _after_fork() -> None:
    global _caches_lock  # noqa: PLW0603 (another thread may have held that of the parent)
    _caches_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)

_memos: list[tuple[str, Any]] = []


def memo(name: str, most: int) -> Callable[[Callable[P, V]], Callable[P, V]]:
    """Make a function of values remember the results of its last calls: a cache of this kind around a pure function."""

    def wrapped(function: Callable[P, V]) -> Callable[P, V]:
        remembering: Any = lru_cache(maxsize=most)(function)
        _memos.append((name, remembering))
        typed: Callable[P, V] = remembering
        return typed

    return wrapped


def entry_counts() -> list[EntryCounts]:
    """What all caches of this process did and hold, by name; those that are gone are not counted."""
    sums: dict[str, EntryCounts] = {}
    for each in _all_counts():
        sums[each.name] = sums[each.name].plus(each) if each.name in sums else each
    return [sums[name] for name in sorted(sums)]


def _all_counts() -> Iterator[EntryCounts]:
    with _caches_lock:
        caches = list(_caches)
    for cache in caches:
        yield cache.counts()
    for name, function in _memos:
        info = function.cache_info()
        yield EntryCounts(name, info.hits, info.misses, info.misses - info.currsize, info.currsize)

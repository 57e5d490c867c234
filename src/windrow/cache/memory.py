"""A cache in memory, bounded by weight, that a scan over much more than fits does not sweep empty.

Values come into a small queue first and reach the large one only when they are asked for again, or come back soon after
they were dropped (S3-FIFO). A hit therefore only raises a number and moves nothing. Of several callers that miss the
same key at once one loads it and the others wait for it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic

from windrow.cache.metrics import CacheMetrics
from windrow.cache.protocol import CacheKey, Supplier, Value
from windrow.errors import InvalidInput

__all__ = ["MemoryCache"]

_SMALL_SHARE = 10
"""The small queue may hold one part in so many of the budget before the large one has to give room."""
_MOST_TOUCHES = 3
_ENTRY_BYTES = 300
"""What an entry takes besides its value: its key, and its places in a dictionary and a queue."""
_MOST_FAILURES = 2
"""A caller that waited for so many loads in vain gets the error of the last."""


def _length(value: Any) -> int:
    return len(value)


class _Entry(Generic[Value]):
    """A value that is kept."""

    __slots__ = ("is_small", "touches", "value", "weight")

    def __init__(self, value: Value, weight: int) -> None:
        self.value = value
        self.weight = weight
        self.touches = 0
        self.is_small = True


class _Flight(Generic[Value]):
    """A load that is under way."""

    __slots__ = ("done", "error", "owner", "values")

    def __init__(self) -> None:
        self.owner = threading.get_ident()
        self.done = threading.Event()
        self.values: tuple[Value, ...] = ()
        self.error: BaseException | None = None


class MemoryCache(Generic[Value]):
    """Values that together weigh no more than a budget; `weigh` gives the bytes of memory that one takes."""

    def __init__(self, budget: int, *, weigh: Callable[[Value], int] = _length, name: str = "memory") -> None:
        if budget < 0:
            raise InvalidInput(f"cache {name!r}: a budget of {budget} bytes; give 0 or more")
        self.budget = budget
        self.metrics = CacheMetrics(name)
        self._weigh = weigh
        self._lock = threading.Lock()
        self._entries: dict[CacheKey, _Entry[Value]] = {}
        self._flights: dict[CacheKey, _Flight[Value]] = {}
        self._small: OrderedDict[CacheKey, None] = OrderedDict()
        self._large: OrderedDict[CacheKey, None] = OrderedDict()
        # Keys that were dropped lately, with what their values weighed: who comes back goes to the large queue.
        self._ghosts: OrderedDict[CacheKey, int] = OrderedDict()
        self._weight = self._small_weight = self._ghost_weight = 0

    @property
    def weight(self) -> int:
        """What all values weigh together, their entries included."""
        return self._weight

    def get(self, key: CacheKey, supplier: Supplier[Value]) -> Value:
        """The value of a key, loaded by one of the callers that ask for it at once."""
        failures = 0
        while True:
            with self._lock:
                entry = self._entries.get(key)
                flight = self._flights.get(key) if entry is None else None
                leads = entry is None and flight is None
                if leads:
                    flight = self._flights[key] = _Flight()
            if entry is not None:
                entry.touches = min(entry.touches + 1, _MOST_TOUCHES)
                self.metrics.add(key.kind, "hits", entry.weight)
                return entry.value
            assert flight is not None  # noqa: S101 (there is an entry or a flight)
            if leads:
                return self._lead(key, flight, supplier)
            if flight.owner == threading.get_ident():
                return supplier(key)  # the supplier asks for what it supplies; waiting for itself would never end
            flight.done.wait()
            if flight.values:
                self.metrics.add(key.kind, "coalesced")
                return flight.values[0]
            # A caller that was interrupted says nothing of the value; one that failed may have had bad luck.
            failures += isinstance(flight.error, Exception)
            if flight.error is not None and failures >= _MOST_FAILURES:
                raise flight.error

    def put(self, key: CacheKey, value: Value) -> None:
        """Keep a value, if there is room for it."""
        with self._lock:
            self._drop(key)
            self._insert(key, value, self._weigh(value) + _ENTRY_BYTES)

    def invalidate(self, key: CacheKey) -> None:
        """Forget one key."""
        with self._lock:
            self._flights.pop(key, None)
            self._drop(key)

    def invalidate_all(self) -> None:
        """Forget everything."""
        with self._lock:
            for held in (self._flights, self._entries, self._small, self._large, self._ghosts):
                held.clear()
            self._weight = self._small_weight = self._ghost_weight = 0

    def size(self) -> int:
        """How many values are kept."""
        return len(self._entries)

    def _lead(self, key: CacheKey, flight: _Flight[Value], supplier: Supplier[Value]) -> Value:
        try:
            value = supplier(key)
            weight = self._weigh(value) + _ENTRY_BYTES
            self.metrics.add(key.kind, "misses", weight)
            with self._lock:
                # Where the flight is gone, the key was invalidated while it was loaded.
                if self._flights.get(key) is flight:
                    self._insert(key, value, weight)
            flight.values = (value,)
        except BaseException as error:
            flight.error = error
            raise
        finally:
            with self._lock:
                if self._flights.get(key) is flight:
                    del self._flights[key]
            flight.done.set()
        return value

    def _insert(self, key: CacheKey, value: Value, weight: int) -> None:
        if weight > self.budget or key in self._entries:
            return
        entry = self._entries[key] = _Entry(value, weight)
        self._weight += weight
        if key in self._ghosts:
            self._ghost_weight -= self._ghosts.pop(key)
            entry.is_small = False
            self._large[key] = None
        else:
            self._small_weight += weight
            self._small[key] = None
        while self._weight > self.budget:
            self._make_room()

    def _make_room(self) -> None:
        """Drop one value, or give it another chance."""
        if self._small and (self._small_weight * _SMALL_SHARE > self.budget or not self._large):
            key, _ = self._small.popitem(last=False)
            entry = self._entries[key]
            self._small_weight -= entry.weight
            entry.is_small = False
            if entry.touches:
                entry.touches = 0
                self._large[key] = None
                return
            self._remember(key, entry.weight)
        else:
            key, _ = self._large.popitem(last=False)
            entry = self._entries[key]
            if entry.touches:
                entry.touches -= 1
                self._large[key] = None
                return
        del self._entries[key]
        self._weight -= entry.weight
        self.metrics.add(key.kind, "evictions")

    def _remember(self, key: CacheKey, weight: int) -> None:
        self._ghosts[key] = weight
        self._ghost_weight += weight
        while self._ghost_weight > self.budget:
            self._ghost_weight -= self._ghosts.popitem(last=False)[1]

    def _drop(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry.weight
            if entry.is_small:
                self._small_weight -= entry.weight
            (self._small if entry.is_small else self._large).pop(key, None)

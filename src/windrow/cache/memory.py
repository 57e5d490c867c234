"""A cache in memory, bounded by weight, that a scan over much more than fits does not sweep empty.

Values come into a small queue first. Where the budget is used up, the oldest of them must have been requested more
often than an old one of the large queue to take its place; what is dropped is remembered for a while with that number
(the queues of S3-FIFO, the admission of TinyLFU). A hit only raises a number and moves nothing. Of several callers that
miss the same key at once one loads it and the others wait for it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic

from windrow import forking
from windrow.cache.metrics import CacheMetrics, KindRow
from windrow.cache.protocol import CacheKey, Supplier, Value
from windrow.errors import InvalidInput
from windrow.model.rows import Rows

__all__ = ["MemoryCache"]

_SMALL_SHARE = 10
"""The small queue may hold one part in so many of the budget before the large one has to give room."""
_MOST_TOUCHES = 15
_GHOSTS = 3
"""For each cached value, so many that were dropped are remembered."""
_AGES = 10
"""Numbers of touches are halved after so many loads for each cached value."""
_FEW = 100
_ENTRY_BYTES = 300
"""What an entry takes besides its value: its key, and its places in a dictionary and a queue."""
_MOST_FAILURES = 2
"""A caller that waited for so many loads in vain gets the error of the last."""


def _length(value: Any) -> int:
    return len(value)


class _Entry(Generic[Value]):
    """A cached value."""

    __slots__ = ("is_small", "touches", "value", "weight")

    def __init__(self, value: Value, weight: int, touches: int) -> None:
        self.value = value
        self.weight = weight
        self.touches = touches
        self.is_small = True


class _Flight(Generic[Value]):
    """A load that is under way."""

    __slots__ = ("done", "error", "owner", "values")

    def __init__(self) -> None:
        self.owner = threading.get_ident()
        # Most loads have nobody who waits for them.
        self.done: threading.Event | None = None
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
        # Hashes of keys that were dropped lately, with how often they were requested; two keys may share one.
        self._ghosts: OrderedDict[int, int] = OrderedDict()
        self._weight = self._small_weight = self._since_aged = 0
        forking.register(self)

    def after_fork(self) -> None:
        """Keep what is here, in a forked child, unless it was being changed; nobody there loads anything yet."""
        is_whole, self._lock = forking.was_free(self._lock), threading.Lock()
        self._flights = {}
        if not is_whole:
            self.invalidate_all()

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
                elif flight is not None and flight.done is None:
                    flight.done = threading.Event()
            if entry is not None:
                entry.touches = min(entry.touches + 1, _MOST_TOUCHES)
                self.metrics.add(key.kind, "hits", entry.weight)
                return entry.value
            assert flight is not None  # noqa: S101 (there is an entry or a flight)
            if leads:
                return self._lead(key, flight, supplier)
            if flight.owner == threading.get_ident():
                return supplier(key)  # the supplier asks for what it supplies; waiting for itself would never end
            assert flight.done is not None  # noqa: S101 (made above, by the first who waits)
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
            self._weight = self._small_weight = 0

    def size(self) -> int:
        """How many values are cached."""
        return len(self._entries)

    def contents(self) -> Rows[KindRow]:
        """What is cached, by kind."""
        sizes_of: dict[str, list[int]] = {}
        with self._lock:
            for key, entry in self._entries.items():
                sizes_of.setdefault(str(key.kind), []).append(entry.weight)
        return Rows(KindRow, tuple(KindRow(kind, len(sizes), sum(sizes)) for kind, sizes in sorted(sizes_of.items())))

    def _lead(self, key: CacheKey, flight: _Flight[Value], supplier: Supplier[Value]) -> Value:
        weight = 0
        try:
            value = supplier(key)
            weight = self._weigh(value) + _ENTRY_BYTES
            flight.values = (value,)
        except BaseException as error:
            flight.error = error
            raise
        finally:
            with self._lock:
                # Where the flight is gone, the key was invalidated while it was loaded.
                if self._flights.get(key) is flight:
                    del self._flights[key]
                    if flight.values:
                        self._insert(key, flight.values[0], weight)
                waiting = flight.done
            if waiting is not None:
                waiting.set()
        self.metrics.add(key.kind, "misses", weight)
        return value

    def _insert(self, key: CacheKey, value: Value, weight: int) -> None:
        if weight > self.budget or key in self._entries:
            return
        self._entries[key] = _Entry(value, weight, self._ghosts.pop(hash(key), 0) + 1)
        self._weight += weight
        self._small_weight += weight
        self._small[key] = None
        while self._weight > self.budget:
            self._make_room()
        self._age()

    def _make_room(self) -> None:
        """Drop one value, or move one from the small queue, which has more than its share, to the large one."""
        share = self.budget // _SMALL_SHARE
        rival = next(iter(self._large), None)
        if self._small_weight <= share and rival is not None:
            self._evict(rival)
            return
        key = next(iter(self._small))
        entry = self._entries[key]
        if self._weight - self._small_weight + entry.weight <= self.budget - share:
            self._promote(key, entry)
        elif rival is not None and entry.touches > self._entries[rival].touches:
            self._evict(rival)
        else:
            self._evict(key)
            if rival is not None:
                self._large.move_to_end(rival)  # the next one has another rival

    def _promote(self, key: CacheKey, entry: _Entry[Value]) -> None:
        del self._small[key]
        self._small_weight -= entry.weight
        entry.is_small = False
        self._large[key] = None

    def _evict(self, key: CacheKey) -> None:
        self._ghosts[hash(key)] = self._entries[key].touches
        self._drop(key)
        self.metrics.add(key.kind, "evictions")

    def _age(self) -> None:
        """Forget the oldest of what was dropped, and now and then half of how often anything was requested."""
        count = len(self._entries) + _FEW
        while len(self._ghosts) > _GHOSTS * count:
            self._ghosts.popitem(last=False)
        self._since_aged += 1
        if self._since_aged > _AGES * count:
            self._since_aged = 0
            for entry in self._entries.values():
                entry.touches //= 2
            for ghost in self._ghosts:
                self._ghosts[ghost] //= 2

    def _drop(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= entry.weight
            if entry.is_small:
                self._small_weight -= entry.weight
            (self._small if entry.is_small else self._large).pop(key, None)

"""A store that counts what it costs: requests by verb, bytes read and written."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from windrow import forking
from windrow.storage.protocol import LIST_PAGE, ObjectInfo, Store
from windrow.storage.ranges import coalesce
from windrow.storage.wrapping import Call, StoreWrapper, received

__all__ = ["CountingStore", "Counts"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Counts:
    """What a store has done up to one moment; two of them can be subtracted."""

    requests: Mapping[str, int]
    bytes_read: int
    bytes_written: int

    @property
    def total(self) -> int:
        """The requests of all verbs."""
        return sum(self.requests.values())

    def __sub__(self, earlier: Counts) -> Counts:
        requests = Counter(self.requests)
        requests.subtract(earlier.requests)
        return Counts(
            MappingProxyType({verb: count for verb, count in requests.items() if count}),
            self.bytes_read - earlier.bytes_read,
            self.bytes_written - earlier.bytes_written,
        )


class CountingStore(StoreWrapper):
    """Counts each call to `store`, whether it succeeds or not, as the requests that it takes.

    `get_ranges` takes one for each coalesced fetch and reads the gaps that are bridged too; a listing takes one for
    each page. Calls for local files are counted by their own verbs. What a store does within a call (retries, the parts
    of a large upload) is not seen here, nor what is read by plain paths, where these are allowed.
    """

    def __init__(self, store: Store, *, paths: bool = False) -> None:
        super().__init__(store, paths=paths)
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._bytes_read = 0
        self._bytes_written = 0
        forking.register(self)

    def after_fork(self) -> None:
        """Go on counting, in a forked child."""
        self._lock = threading.Lock()

    @property
    def counts(self) -> Counts:
        """What was counted up to now."""
        with self._lock:
            return Counts(MappingProxyType(dict(self._requests)), self._bytes_read, self._bytes_written)

    def around(self, call: Call, run: Callable[[], Result]) -> Result:
        """Count a call and its bytes."""
        fetches = coalesce(call.ranges, self.gap) if call.verb == "get_ranges" else []
        self._count(call, requests=len(fetches) if call.verb == "get_ranges" else 1)
        result = run()
        self._count(
            call,
            read=sum(fetch.length for fetch in fetches) or received(result),
            written=memoryview(call.data).nbytes,
        )
        return result

    def around_list(self, call: Call, listing: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        """Count the pages of a listing."""
        self._count(call, requests=1)
        for number, info in enumerate(listing):
            if number and number % LIST_PAGE == 0:
                self._count(call, requests=1)
            yield info

    def _count(self, call: Call, *, requests: int = 0, read: int = 0, written: int = 0) -> None:
        with self._lock:
            if requests:
                self._requests[call.verb] += requests
            self._bytes_read += read
            self._bytes_written += written

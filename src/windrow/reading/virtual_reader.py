"""Reading a virtual file: from addresses to the bytes of files, in as few requests as pay.

Files on this machine are read where they are. Of remote ones only what a plan needs is ever fetched: the chunks and
runs of pages of its columns, put together where they lie close, several at once, ahead of the reader, and no more bytes
in flight than allowed. Addresses that nobody needs are zeros.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from windrow.cache import Cache, CacheKey, CacheKind, LayeredCache, MemoryCache
from windrow.closing import Closing
from windrow.errors import Closed, Damaged, WindrowError
from windrow.planning.data_files import DataFile
from windrow.planning.footers import FIRST_CONTACT
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.local_files import NearFile, OpenFiles, announce
from windrow.reading.needed_ranges import needed_bytes, stretches
from windrow.reading.read_context import ReadContext
from windrow.reading.verifying import Runs
from windrow.storage import ByteRange, coalesce
from windrow.storage.ranges import check_identity

__all__ = ["ReadCounts", "VirtualReader", "fetched_units"]

_LARGEST_REQUEST = 16 * 2**20
"""Larger requests gain nothing, and a smaller one is soon repeated when it fails."""
_LEAST_REQUEST = 2**20
_REQUESTS_IN_FLIGHT = 16
"""Where little may be in flight, requests are so small that about so many are."""
_READ_AT_ONCE = 4 * 2**20
"""No more than this is read of files on this machine before anybody asks."""


class _Source(Protocol):
    """Bytes of one file, or of none."""

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly so many bytes."""

    def finish(self) -> None:
        """Refuse a file that is no longer the one that was planned with."""


class ReadCounts(NamedTuple):
    """What was read of a virtual file."""

    reads: int
    bytes: int
    requests: int
    """Files that were opened, and requests to stores."""
    cache_hits: int


class VirtualReader(Closing):
    """A virtual file that can be read from any thread; use it in a `with` block.

    What an engine makes of an error that it meets while reading is its own affair: `failure` has the error itself.
    """

    def __init__(self, virtual: VirtualFile, context: ReadContext) -> None:
        self.size = virtual.size
        self._failure: WindrowError | None = None
        remote, pool = _Remote(virtual, context), OpenFiles()
        used = {segment.file: virtual.files[segment.file] for segment in virtual.segments}
        sources: dict[int, _Source] = {
            number: NearFile(file, local, pool) if (local := file.store.local) is not None else remote.source(number)
            for number, file in used.items()
        }
        spans = _spans(virtual, sources)
        if not spans:
            announce(virtual, {number: each for number, each in sources.items() if isinstance(each, NearFile)})
        placed = [
            (each.address, each.length, spans.get(number) or sources[each.file], each.offset)
            for number, each in enumerate(virtual.segments)
        ]
        placed += [(address, len(data), _Held(data), 0) for address, data in virtual.memory if data]
        placed.sort(key=lambda item: item[0])
        self._starts = [address for address, _, _, _ in placed]
        self._placed = placed
        self._is_closed = False
        self._sources = list(sources.values())
        self._remote = remote
        self._pool = pool
        self._spans = len(spans)
        self._lengths: list[int] = []

    @property
    def counts(self) -> ReadCounts:
        """What was read so far."""
        hits = len(self._remote.used) - len(self._remote.fetched)
        requests = self._spans + self._pool.count + len(self._remote.fetched)
        return ReadCounts(len(self._lengths), sum(self._lengths), requests, max(hits, 0))

    @property
    def failure(self) -> WindrowError | None:
        """Why an engine failed that read this file: a read failed, or a file changed and its bytes make no sense."""
        if self._failure is not None or self._is_closed:
            return self._failure
        try:
            self.finish()
        except WindrowError as error:
            return error
        return None

    def read_at(self, address: int, length: int) -> bytes:
        """Bytes at an address; zeros where nothing is. A reader that is closed raises `Closed`."""
        self._check_open()
        # An append is one step, whichever threads read at once.
        self._lengths.append(length)
        try:
            return self._read(address, length)
        except WindrowError as error:
            self._failure = self._failure or error
            raise

    def finish(self) -> None:
        """Make sure that what was read is what was planned with: `Replaced` if a file changed in the meantime."""
        self._check_open()
        for source in self._sources:
            source.finish()

    def close(self) -> None:
        """Let go of files and of requests that were not needed; reads that have begun still get their bytes."""
        self._is_closed = True
        self._remote.close()
        self._pool.close()
        # New lists: a read that has begun goes on with the old ones.
        self._sources, self._placed, self._starts = [], [], []

    def _check_open(self) -> None:
        if self._is_closed:
            raise Closed("this virtual file is closed: the scan that it belongs to has ended; scan again")

    def _read(self, address: int, length: int) -> bytes:
        starts, segments = self._starts, self._placed
        # A reader that was closed in between shows here: afterwards nothing is missing.
        self._check_open()
        place = max(bisect_right(starts, address) - 1, 0)
        start, size, source, offset = segments[place]
        if start <= address and address + length <= start + size:
            return source.read_at(offset + address - start, length)
        parts, at, end = list[bytes](), address, address + length
        for start, size, source, offset in segments[place:]:
            if start >= end:
                break
            first, last = max(start, at), min(start + size, end)
            if first < last:
                parts += [bytes(first - at), source.read_at(offset + first - start, last - first)]
                at = last
        return b"".join([*parts, bytes(end - at)])


class _Held:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]

    def finish(self) -> None:
        pass


class _Span:
    """Bytes of a file that are in memory, from an offset on."""

    def __init__(self, start: int, data: bytes, rest: _Source) -> None:
        self._start = start
        self._data = data
        self._rest = rest

    def read_at(self, offset: int, length: int) -> bytes:
        first = offset - self._start
        if first < 0 or first + length > len(self._data):
            return self._rest.read_at(offset, length)
        return self._data[first : first + length]

    def finish(self) -> None:
        pass


def _is_near(file: DataFile) -> bool:
    return not file.store.is_remote


def _spans(virtual: VirtualFile, sources: Mapping[int, _Source]) -> dict[int, _Source]:
    """What little a plan needs of files on this machine, read at once, by the number of its segment.

    An engine asks for it in many small reads; each of these costs more than all that there is to read in a file.
    """
    files, segments = virtual.files, virtual.segments
    if not len(virtual.chunks) or not virtual.is_steady:
        return {}
    begins, lengths = virtual.chunks.T
    needed = stretches(segments, begins, begins + lengths)
    first = np.full(len(segments), np.iinfo(np.int64).max)
    last = np.zeros(len(segments), np.int64)
    np.minimum.at(first, needed.segment, needed.first)
    np.maximum.at(last, needed.segment, needed.last)
    used = np.flatnonzero(last)
    if int((last - first)[used].sum()) > _READ_AT_ONCE:
        return {}
    offsets = first + np.array([segment.offset - segment.address for segment in segments], np.int64)
    places = [(number, int(offsets[number]), int(last[number] - first[number])) for number in used.tolist()]
    found: dict[int, _Source] = {}
    for store, some in groupby(places, key=lambda place: files[segments[place[0]].file].store):
        asked = list(some)
        wanted = [
            (files[segments[number].file].key, files[segments[number].file].identity.size, ByteRange(start, length))
            for number, start, length in asked
        ]
        read = store.local.read_each(wanted) if store.local is not None else []
        for (number, start, _), data in zip(asked, read, strict=True):
            if data is not None:
                found[number] = _Span(start, data, sources[segments[number].file])
    return found


class _Unit(NamedTuple):
    """Bytes of a remote file that are fetched together."""

    file: int
    start: int
    length: int


class _Remote:
    """What a plan needs of remote files, and the bytes of it that are here."""

    def __init__(self, virtual: VirtualFile, context: ReadContext) -> None:
        self._files = virtual.files
        remote = frozenset(each.file for each in virtual.segments if not _is_near(virtual.files[each.file]))
        needed = needed_bytes(virtual) if remote else np.empty((0, 3), np.int64)
        self._units = _units(virtual, needed, remote, _largest_request(context))
        # other writers' checksums are not ours to judge: their files stay readable whatever they state
        self._runs = Runs(needed, frozenset(number for number in remote if not virtual.files[number].is_mutable))
        self.seen: set[int] = set()
        """Files that a request has shown to be the ones that are meant."""
        self.fetched: list[int] = []
        self.used: list[int] = []
        """Units that were asked for, and those of them, and others ahead, that had to be fetched."""
        near: MemoryCache[bytes] = MemoryCache(context.in_flight, name="in flight")
        self._cache: Cache[bytes] = near if context.cache is None else LayeredCache(near, context.cache)
        self._ahead = _Ahead(self._units, self.load, context)

    def source(self, number: int) -> _RemoteFile:
        """One file."""
        units = sorted((unit, place) for place, unit in enumerate(self._units) if unit.file == number)
        return _RemoteFile(self, number, self._files[number], units)

    def load(self, unit: _Unit) -> bytes:
        """The bytes of a unit."""
        file = self._files[unit.file]
        key = CacheKey(file.uri, unit.start, unit.length, CacheKind.DATA_RANGE, file.cache_identity)

        def fetch(_: CacheKey) -> bytes:
            # what changed on its way comes right at the second time
            data = self._sound_bytes(unit, file) or self._sound_bytes(unit, file)
            if data is None:
                raise Damaged(
                    f"{file.uri}: a page is not what was written, its checksum differs; "
                    "restore the file or take it out of the table"
                )
            return data

        return self._cache.get(key, fetch)

    def _sound_bytes(self, unit: _Unit, file: DataFile) -> bytes | None:
        """The bytes of a unit, from its store; None when a page in them is not what was written."""
        data = file.read(unit.start, unit.length)
        self.seen.add(unit.file)
        self.fetched.append(unit.length)
        return data if self._runs.are_sound(unit.file, unit.start, data) else None

    def use(self, place: int) -> bytes:
        """The bytes of a unit, for a reader; what is to come next is fetched meanwhile."""
        self.used.append(place)
        fetched = self._ahead.used(place)
        return self.load(self._units[place]) if fetched is None else fetched

    def close(self) -> None:
        """Give up what is still being fetched."""
        self._ahead.close()


class _RemoteFile:
    """A remote file."""

    def __init__(self, remote: _Remote, number: int, file: DataFile, units: list[tuple[_Unit, int]]) -> None:
        self._remote = remote
        self._number = number
        self._file = file
        self._units = units
        self._starts = [unit.start for unit, _ in units]

    def read_at(self, offset: int, length: int) -> bytes:
        place = max(bisect_right(self._starts, offset) - 1, 0)
        end = offset + length
        out = bytearray(length)
        for unit, number in self._units[place:]:
            if unit.start >= end:
                break
            first, last = max(unit.start, offset), min(unit.start + unit.length, end)
            if first < last:
                data = self._remote.use(number)
                if last - first == length == unit.length:
                    return data
                out[first - offset : last - offset] = memoryview(data)[first - unit.start : last - unit.start]
        return bytes(out)

    def finish(self) -> None:
        # A file of which nothing was read has no part in the answer; one that was, came from a cache if unseen.
        if self._file.is_mutable and self._units and self._number not in self._remote.seen:
            check_identity(self._file.uri, self._file.identity, self._file.store.head(self._file.key))


class _Ahead:
    """Fetches units in the order in which they lie in the virtual file, some bytes ahead of whoever reads them."""

    def __init__(self, units: Sequence[_Unit], load: Callable[[_Unit], bytes], context: ReadContext) -> None:
        self._units = units
        self._load = load
        self._budget = context.in_flight // 2
        self._parallel = context.parallel
        self._lock = threading.Lock()
        self._next = 0
        self._ahead = 0
        self._used: set[int] = set()
        # What is here and was not asked for yet: no cache could be told to keep just that.
        self._fetched: dict[int, Future[bytes | None]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def used(self, place: int) -> bytes | None:
        """A reader is at a unit: fetch on; gives what was fetched of it already."""
        with self._lock:
            if len(self._units) < 2:
                return None
            fetched = self._fetched.pop(place, None)
            if fetched is not None:
                self._ahead -= self._units[place].length
            self._used.add(place)
            self._fetch_on()
        if fetched is None:
            return None
        try:
            return fetched.result()
        except CancelledError:
            # The reader was closed; who has begun to read fetches alone.
            return None

    def _fetch_on(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._parallel, thread_name_prefix="windrow-ahead")
        while self._next < len(self._units):
            unit = self._units[self._next]
            if self._next not in self._used:
                if self._ahead and self._ahead + unit.length > self._budget:
                    break
                self._ahead += unit.length
                self._fetched[self._next] = self._pool.submit(self._fetch, unit)
            self._next += 1

    def close(self) -> None:
        """Fetch no more."""
        with self._lock:
            self._next = len(self._units)
            pool = self._pool
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, unit: _Unit) -> bytes | None:
        # Whoever needs the unit tries again, and meets the error if it lasts.
        with suppress(WindrowError):
            return self._load(unit)
        return None


def fetched_units(virtual: VirtualFile, context: ReadContext) -> dict[int, list[tuple[int, int]]]:
    """By the number of each remote file, the offset and length of what readers of a virtual file fetch of it."""
    remote = frozenset(each.file for each in virtual.segments if not _is_near(virtual.files[each.file]))
    found: dict[int, list[tuple[int, int]]] = {}
    if remote:
        for unit in _units(virtual, needed_bytes(virtual), remote, _largest_request(context)):
            found.setdefault(unit.file, []).append((unit.start, unit.length))
    return found


def _largest_request(context: ReadContext) -> int:
    return min(_LARGEST_REQUEST, max(_LEAST_REQUEST, context.in_flight // _REQUESTS_IN_FLIGHT))


def _units(virtual: VirtualFile, needed: NDArray[np.int64], remote: Collection[int], largest: int) -> list[_Unit]:
    """What is fetched of remote files, in the order of addresses."""
    ranges: dict[int, list[ByteRange]] = {}
    for file, offset, length in needed.tolist():
        if file in remote:
            ranges.setdefault(file, []).append(ByteRange(offset, length))
    first: dict[_Unit, int] = {}
    for file, wanted in ranges.items():
        # A small file is fetched whole: it costs no more, and serves the next question too.
        size = virtual.files[file].identity.size
        needed_of = [ByteRange(0, size)] if size <= FIRST_CONTACT else wanted
        for fetch in coalesce(needed_of, virtual.files[file].store.gap):
            order = min(place for place, _ in fetch.wanted)
            for start in range(fetch.start, fetch.start + fetch.length, largest):
                length = min(largest, fetch.start + fetch.length - start)
                first.setdefault(_Unit(file, start, length), order)
    return sorted(first, key=lambda unit: (unit.file, first[unit], unit.start))

"""Stores that are dated by a clock that is passed in: a dictionary, for proofs by the thousand, and a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from windrow.storage.failures import missing, taken
from windrow.storage.keys import check_key, check_prefix
from windrow.storage.local import LocalStore
from windrow.storage.protocol import ByteRange, BytesLike, Identity, ObjectInfo, Pieces
from windrow.storage.ranges import Fetch, check_identity, check_suffix, read_ranges, too_short

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PlainStore:
    """Objects in a dictionary; `clock` gives microseconds since the epoch."""

    is_remote = True

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._objects: dict[str, tuple[bytes, ObjectInfo]] = {}
        self._lock = threading.Lock()
        self._writes = 0

    def copy(self, clock: Callable[[], int]) -> PlainStore:
        """Return a store with the same objects, which goes its own way from here."""
        other = PlainStore(clock)
        with self._lock:
            other._objects, other._writes = dict(self._objects), self._writes
        return other

    @property
    def url(self) -> str:
        """A name for messages."""
        return "plain://"

    @property
    def gap(self) -> int:
        """Nothing is cheaper to read than to leave out."""
        return 0

    @property
    def root(self) -> None:
        """No folder."""

    @property
    def local(self) -> None:
        """No files."""

    def get(self, key: str) -> bytes:
        """All bytes of an object."""
        return self._found(key)[0]

    def get_ranges(self, key: str, ranges: Sequence[ByteRange], *, expect: Identity | None = None) -> Pieces:
        """The bytes of several ranges of an object."""
        check_key(key)

        def read(fetches: Sequence[Fetch]) -> Iterator[bytes]:
            data, info = self._found(key)
            check_identity(key, expect, info)
            for fetch in fetches:
                if fetch.start + fetch.length > len(data):
                    raise too_short(key, fetch, max(0, len(data) - fetch.start))
                yield data[fetch.start : fetch.start + fetch.length]

        return read_ranges(key, ranges, self.gap, read)

    def get_suffix(self, key: str, length: int) -> tuple[bytes, ObjectInfo]:
        """The last bytes of an object."""
        check_suffix(length)
        data, info = self._found(key)
        return data[-length:], info

    def head(self, key: str) -> ObjectInfo:
        """What is known of an object."""
        return self._found(key)[1]

    def put(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object."""
        with self._lock:
            return self._write(check_key(key), data)

    def put_if_absent(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object unless the key is taken."""
        with self._lock:
            if check_key(key) in self._objects:
                raise taken(key)
            return self._write(key, data)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectInfo]:
        """Every object in a folder and below it, as it is when the listing begins."""
        folder = check_prefix(prefix)
        start = "" if after is None else check_key(after)
        return self._listed(f"{folder}/" if folder else "", start)

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._lock:
            self._objects.pop(check_key(key), None)

    def _listed(self, folder: str, after: str) -> Iterator[ObjectInfo]:
        with self._lock:
            found = sorted(key for key in self._objects if key.startswith(folder) and key > after)
            infos = [self._objects[key][1] for key in found]
        yield from infos

    def _write(self, key: str, data: BytesLike) -> ObjectInfo:
        self._writes += 1
        content = bytes(data)
        info = ObjectInfo(key, len(content), str(self._writes), _EPOCH + timedelta(microseconds=self._clock()))
        self._objects[key] = (content, info)
        return info

    def _found(self, key: str) -> tuple[bytes, ObjectInfo]:
        with self._lock:
            found = self._objects.get(check_key(key))
        if found is None:
            raise missing(key)
        return found


class DatedFolder(LocalStore):
    """A folder whose files are dated by `clock`, which gives microseconds since the epoch."""

    def __init__(self, root: str | Path, clock: Callable[[], int]) -> None:
        super().__init__(root)
        self._clock = clock
        self._versions = count()

    def put(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write a file."""
        return self._dated(super().put(key, data))

    def put_if_absent(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write a file unless its name is taken."""
        return self._dated(super().put_if_absent(key, data))

    def _dated(self, info: ObjectInfo) -> ObjectInfo:
        now = self._clock() * 1000
        # The part of a microsecond tells versions apart: a folder gives the number of a deleted file to a new one.
        os.utime(self.path(info.key), ns=(now, now + next(self._versions) % 1000))
        return self.head(info.key)

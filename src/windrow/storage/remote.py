"""Stores that obstore speaks to: S3, Google Cloud Storage, Azure, HTTP, and memory for tests.

This is the only module that imports obstore at its top: that takes a while, and local stores do without.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import obstore
from obstore.exceptions import BaseError, NotSupportedError
from obstore.store import ObjectStoreMethods

from windrow.errors import ConfigError, InvalidInput, StorageError, WindrowError
from windrow.storage.failures import remote_failure
from windrow.storage.keys import check_key, check_prefix
from windrow.storage.kinds import MEMORY, Kind
from windrow.storage.protocol import LIST_PAGE, ByteRange, BytesLike, Identity, ObjectInfo, Pieces
from windrow.storage.ranges import Fetch, check_identity, check_suffix, read_ranges, too_short

__all__ = ["ObstoreStore"]


_process: int | None = None
"""The process in which obstore has started its threads, or where they would be."""
_AT_ONCE = 10
"""So many requests for one object run at once, which is obstore's own number."""


def _now() -> datetime:
    return datetime.now(UTC)


class ObstoreStore:
    """Any store of obstore behind Windrow's verbs; `clock` dates what is put, since no store answers a put with it."""

    is_remote = True

    def __init__(self, inner: ObjectStoreMethods, url: str, kind: Kind, clock: Callable[[], datetime] = _now) -> None:
        # obstore's functions want its union of store classes, which cannot be imported.
        self._inner: Any = inner
        self._url = url
        self._kind = kind
        self._clock = clock

    def __repr__(self) -> str:
        return f"ObstoreStore({self._url!r})"

    @property
    def url(self) -> str:
        """The root of the store, as it was opened."""
        return self._url

    @property
    def gap(self) -> int:
        """What a connection carries in the time of a request."""
        return self._kind.gap

    @property
    def root(self) -> None:
        """No folder on this machine."""

    @property
    def local(self) -> None:
        """No files on this machine: each read is a request."""

    def _check_process(self) -> None:
        """Refuse to wait for ever: threads of obstore that a parent started are not in its forked children."""
        global _process  # noqa: PLW0603 (obstore has one set of threads for a process)
        if _process is None:
            _process = os.getpid()
        elif _process != os.getpid() and self._kind is not MEMORY:
            raise ConfigError(
                f"{self._url}: this process was forked from one that had used a remote store, and cannot reach any; "
                'start processes by multiprocessing.get_context("spawn") or "forkserver"'
            )

    def get(self, key: str) -> bytes:
        """All bytes of an object."""
        with self._failing(check_key(key)):
            return obstore.get(self._inner, key).bytes().to_bytes()

    def get_ranges(self, key: str, ranges: Sequence[ByteRange], *, expect: Identity | None = None) -> Pieces:
        """The bytes of several ranges of an object; up to ten requests run at once."""

        def read(fetches: Sequence[Fetch]) -> Sequence[Any]:
            try:
                return self._fetch_all(key, fetches, expect)
            except NotSupportedError:
                # Some web servers know no ranges; then the whole object is read, which is slow but right.
                return self._cut_from_whole(key, fetches, expect)

        with self._failing(check_key(key)):
            return read_ranges(self._name(key), ranges, self.gap, read)

    def get_suffix(self, key: str, length: int) -> tuple[bytes, ObjectInfo]:
        """The last bytes of an object, by one request wherever the store can."""
        check_key(key)
        check_suffix(length)
        if not self._kind.answers_suffixes:
            return self._suffix_by_head(key, length)
        try:
            with self._failing(key):
                try:
                    result = obstore.get(self._inner, key, options={"range": {"suffix": length}})
                except NotSupportedError:
                    whole = obstore.get(self._inner, key)
                    return whole.bytes().to_bytes()[-length:], _info(key, whole.meta)
                return self._checked_suffix(_info(key, result.meta), length, result.bytes().to_bytes())
        except StorageError as error:
            # No range of an empty object can be satisfied, and stores say so in many ways.
            if error.retryable or (info := self.head(key)).size:
                raise
            return b"", info

    def head(self, key: str) -> ObjectInfo:
        """What the store tells of an object."""
        with self._failing(check_key(key)):
            return _info(key, obstore.head(self._inner, key))

    def put(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object, in parallel parts if it is large."""
        return self._put(key, data, "overwrite")

    def put_if_absent(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object by one conditional request."""
        return self._put(key, data, "create")

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectInfo]:
        """Every object in a folder and below it, ordered by key, page by page where the store lists in order."""
        self._refuse_read_only("listed")
        folder = check_prefix(prefix)
        listing = self._listing(folder, None if after is None else check_key(after))
        return listing if self._kind.lists_in_order else _sorted(listing)

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._refuse_read_only("deleted from")
        try:
            with self._failing(check_key(key)):
                obstore.delete(self._inner, key)
        except LookupError:
            return

    def _name(self, key: str) -> str:
        return f"{self._url.rstrip('/')}/{key}"

    def _refuse_read_only(self, verb: str) -> None:
        if self._kind.read_only:
            raise InvalidInput(
                f"{self._url}: {self._kind.name} stores can be read by key and not {verb}; copy the data"
            )

    @contextmanager
    def _failing(self, key: str) -> Iterator[None]:
        self._check_process()
        try:
            yield
        except WindrowError:
            raise
        except (BaseError, OSError, ValueError) as error:
            raise remote_failure(error, self._name(key)) from error

    def _put(self, key: str, data: BytesLike, mode: Literal["overwrite", "create"]) -> ObjectInfo:
        self._refuse_read_only("written to")
        view = memoryview(data).cast("B")
        with self._failing(check_key(key)):
            result = obstore.put(self._inner, key, view, mode=mode)
        return ObjectInfo(key, view.nbytes, result["e_tag"], self._clock())

    def _fetch_all(self, key: str, fetches: Sequence[Fetch], expect: Identity | None) -> Sequence[Any]:
        if expect is None:
            starts, lengths = [fetch.start for fetch in fetches], [fetch.length for fetch in fetches]
            return obstore.get_ranges(self._inner, key, starts=starts, lengths=lengths, coalesce=0)
        if len(fetches) == 1:
            return [self._fetch(key, fetches[0], expect)]
        with ThreadPoolExecutor(min(len(fetches), _AT_ONCE)) as pool:
            return list(pool.map(lambda fetch: self._fetch(key, fetch, expect), fetches))

    def _fetch(self, key: str, fetch: Fetch, expect: Identity) -> Any:
        """One range, by a request whose answer tells what the object is."""
        result = obstore.get(self._inner, key, options={"range": (fetch.start, fetch.start + fetch.length)})
        check_identity(self._name(key), expect, _info(key, result.meta))
        return result.bytes()

    def _cut_from_whole(self, key: str, fetches: Sequence[Fetch], expect: Identity | None) -> Sequence[Any]:
        result = obstore.get(self._inner, key)
        check_identity(self._name(key), expect, _info(key, result.meta))
        whole = memoryview(result.bytes())
        return [whole[fetch.start : fetch.start + fetch.length] for fetch in fetches]

    def _suffix_by_head(self, key: str, length: int) -> tuple[bytes, ObjectInfo]:
        info = self.head(key)
        start = max(0, info.size - length)
        [data] = self.get_ranges(key, [ByteRange(start, info.size - start)])
        return data, info

    def _checked_suffix(self, info: ObjectInfo, length: int, data: bytes) -> tuple[bytes, ObjectInfo]:
        whole = ByteRange(max(0, info.size - length), min(info.size, length))
        if len(data) != whole.length:
            raise too_short(self._name(info.key), whole, len(data))
        return data, info

    def _listing(self, folder: str, after: str | None) -> Iterator[ObjectInfo]:
        with self._failing(folder):
            for page in obstore.list(self._inner, folder or None, offset=after, chunk_size=LIST_PAGE):
                yield from (_info(meta["path"], meta) for meta in page)


def _info(key: str, meta: Any) -> ObjectInfo:
    return ObjectInfo(key, meta["size"], meta["e_tag"], meta["last_modified"])


def _sorted(listing: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
    yield from sorted(listing, key=lambda info: info.key)

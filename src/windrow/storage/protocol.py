"""What a store is: objects of bytes under string keys, a few verbs, and the values these verbs speak in.

Everything that reads or writes bytes of a lake goes through this seam, so that a local folder, a bucket, a recording
and a fault-injecting store are exchangeable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias, get_args

from windrow.errors import InvalidInput

__all__ = ["LIST_PAGE", "VERBS", "ByteRange", "BytesLike", "Identity", "ObjectInfo", "Pieces", "Store", "Verb"]

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""What can be put."""

# Inside a class with a verb `list`, type checkers take `list[bytes]` for that verb.
Pieces: TypeAlias = list[bytes]
"""The bytes of several ranges, in the order in which they were asked for."""

Verb: TypeAlias = Literal["get", "get_ranges", "get_suffix", "head", "put", "put_if_absent", "list", "delete"]
"""The name of a verb of a store."""

VERBS: tuple[Verb, ...] = get_args(Verb)
"""Every verb of a store."""

LIST_PAGE = 1000
"""How many keys a store lists in one request."""

_LARGEST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`length` bytes from offset `start` on."""

    start: int
    length: int

    def __post_init__(self) -> None:
        if self.start < 0 or self.length < 0 or self.end > _LARGEST_OFFSET:
            raise InvalidInput(
                f"byte range: start {self.start} with length {self.length} is no part of any object; "
                "give two numbers from 0 on"
            )

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells contents apart that were under one key at different times; what is None is not known."""

    size: int
    etag: str | None = None
    modified: datetime | None = None

    def fits(self, info: ObjectInfo) -> bool:
        """Whether an object can be the one that is meant: by size, and by etag or else by time where both know it."""
        if self.size != info.size:
            return False
        if self.etag is not None and info.etag is not None:
            return self.etag == info.etag
        return self.modified is None or self.modified == info.modified

    def __str__(self) -> str:
        return f"{self.size} bytes, {self.etag or self.modified}"


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a store tells of an object without its bytes.

    `etag` is opaque: another etag under the same key means other bytes. `modified` is in UTC and by the store's clock;
    only what `put` and `put_if_absent` give back from a remote store carries the time of the writer's clock, since the
    answer to a put names none.
    """

    key: str
    size: int
    etag: str | None
    modified: datetime

    @property
    def identity(self) -> Identity:
        """What tells this content from others under the same key."""
        return Identity(self.size, self.etag, self.modified)


class Store(Protocol):
    """Objects of bytes under keys that are relative to the root of the store and split by `/`.

    Keys are checked as `windrow.storage.check_key` says. Every verb may be called from many threads at once. A verb
    raises `InvalidInput` for a key or range that cannot be, `NotFound` for a missing object and `StorageError` for
    everything else; its `retryable` says whether the same call may succeed later.
    """

    @property
    def url(self) -> str:
        """The root of the store, without secrets."""

    @property
    def gap(self) -> int:
        """Up to so many unwanted bytes are cheaper to read than to leave out by a further request."""

    def get(self, key: str) -> bytes:
        """All bytes of an object."""

    def get_ranges(self, key: str, ranges: Sequence[ByteRange], *, expect: Identity | None = None) -> Pieces:
        """The bytes of several ranges of an object, in the order of `ranges`, in as few requests as pay.

        Ranges may overlap, repeat and come in any order. A range that reaches beyond the object is a `StorageError`.
        Empty ranges are answered without a request. Bytes of an object that is not the expected one are never given:
        that is `Replaced`, and costs no request of its own.
        """

    def get_suffix(self, key: str, length: int) -> tuple[bytes, ObjectInfo]:
        """The last `length` bytes of an object, or all of a shorter one, and what the object is."""

    def head(self, key: str) -> ObjectInfo:
        """What the store tells of an object."""

    def put(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object, over the one that was there; a reader sees the whole old one or the whole new one."""

    def put_if_absent(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object unless the key is taken: then `AlreadyExists`. Of several callers at once one wins.

        A remote store repeats a request whose answer was lost, so the taker of the key can be the caller itself; who
        has to know reads the object back.
        """

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectInfo]:
        """Every object in the folder `prefix` and below it, ordered by key, from the first key beyond `after` on.

        A prefix is made of whole segments: `metrics` and `metrics/` name one folder, and `metrics2` is not in it. Pages
        are fetched while the iterator is used.
        """

    def delete(self, key: str) -> None:
        """Remove an object; a missing one is fine."""

"""What a store is: objects of bytes under string keys, a few verbs, and the values these verbs speak in.

Everything that reads or writes bytes of a lake goes through this seam, so that a local folder, a bucket, a recording
and a fault-injecting store are exchangeable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, get_args

from windrow.errors import InvalidInput

__all__ = [
    "FILE_VERBS",
    "LIST_PAGE",
    "VERBS",
    "ByteRange",
    "BytesLike",
    "FileVerb",
    "Identity",
    "LocalFiles",
    "ObjectInfo",
    "OpenFile",
    "Pieces",
    "Store",
    "Unfinished",
    "Verb",
]

BytesLike: TypeAlias = bytes | bytearray | memoryview
"""What can be put."""

# Inside a class with a verb `list`, type checkers take `list[bytes]` for that verb.
Pieces: TypeAlias = list[bytes]
"""The bytes of several ranges, in the order of the request."""

Verb: TypeAlias = Literal["get", "get_ranges", "get_suffix", "head", "put", "put_if_absent", "list", "delete"]
"""The name of a verb of a store."""

VERBS: tuple[Verb, ...] = get_args(Verb)
"""Every verb of a store."""

FileVerb: TypeAlias = Literal["path", "open", "read_at", "check", "read_each", "unfinished", "remove_unfinished"]
"""The name of a verb of a store's local files, or of one of them that is open."""

FILE_VERBS: tuple[FileVerb, ...] = get_args(FileVerb)
"""Every verb of local files."""

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
    """What tells contents apart that were under one key at different times; None is unknown."""

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

    `etag` is opaque: another etag under one key stands for other bytes. `modified` is in UTC and by the store's clock;
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


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A hidden file that holds bytes of an object before it has its name."""

    path: Path
    key: str | None
    """The object that it was to become; None where its name does not tell."""
    modified: datetime


class OpenFile(Protocol):
    """A local file that is open for reading; many threads may read at once."""

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly so many bytes, or an error."""

    def is_at_hand(self, offset: int) -> bool:
        """Whether a byte can be read without waiting for a disk, where the system tells."""

    def announce(self, offset: int, length: int) -> None:
        """Prefetch bytes that will be read soon."""

    def check(self) -> None:
        """Refuse a file that was written to since it was opened."""


class LocalFiles(Protocol):
    """What a store can do besides its verbs when its objects are files on this machine.

    Keys are checked as those of the store, and errors are of the same kinds.
    """

    def path(self, key: str) -> Path | None:
        """Where programs that read files by themselves find an object; None where they would pass a wrapper by."""

    def open(self, key: str, *, expect: Identity | None = None) -> OpenFile:
        """Open a file for many reads; it stays the same file, whatever its name stands for later."""

    def read_each(self, wanted: Sequence[tuple[str, int, ByteRange]]) -> Sequence[bytes | None]:
        """One range of each of many files that never change, given by key and size.

        None for a file that is odd in any way: a read of it by itself has the error.
        """

    def unfinished(self, prefix: str) -> Iterator[Unfinished]:
        """Every hidden file in and below a folder: a writer is at work on it, or was stopped."""

    def remove_unfinished(self, file: Unfinished) -> bool:
        """Remove a hidden file; whether it was still there."""


class Store(Protocol):
    """Objects of bytes under keys that are relative to the root of the store and split by `/`.

    Keys are checked as `windrow.storage.check_key` says. Every verb may be called from many threads at once. A verb
    raises `InvalidInput` for a key or range that cannot be, `NotFound` for a missing object and `StorageError` for
    everything else; its `retryable` says whether the same call may succeed later.

    What else a store can do it says by `root`, `is_remote` and `local`; nobody looks at its class.
    """

    @property
    def url(self) -> str:
        """The root of the store, without secrets."""

    @property
    def gap(self) -> int:
        """Up to so many unwanted bytes are cheaper to read than to leave out by a further request."""

    @property
    def root(self) -> Path | None:
        """The folder on this machine that the store is; None for a store that is elsewhere."""

    @property
    def is_remote(self) -> bool:
        """Whether each read is a request, to be coalesced, cached and retried; the others have `local` files."""

    @property
    def local(self) -> LocalFiles | None:
        """The objects as files on this machine, unless the store is remote."""

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

"""A store around a store: the base of everything that watches or disturbs the calls to one.

Local files are handed on call by call too, so that a wrapper of a local store meets the reads that a lake makes of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from windrow.storage.protocol import (
    ByteRange,
    BytesLike,
    FileVerb,
    Identity,
    LocalFiles,
    ObjectInfo,
    OpenFile,
    Pieces,
    Store,
    Unfinished,
    Verb,
)

__all__ = ["Call", "StoreWrapper", "received"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a verb; for a listing, `key` is the prefix. Of many files that are read at once, each is a call."""

    verb: Verb | FileVerb
    key: str
    data: BytesLike = b""
    ranges: Sequence[ByteRange] = ()


class StoreWrapper(ABC):
    """Hands every call on to `store`; subclasses say in `around` and `around_list` what happens besides.

    Reads by a plain path pass a wrapper by, so there are no paths unless `paths` says that this does not matter.
    """

    def __init__(self, store: Store, *, paths: bool = False) -> None:
        self.store = store
        self.paths = paths

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.store!r})"

    @abstractmethod
    def around(self, call: Call, run: Callable[[], Result]) -> Result:
        """Make a call by `run`."""

    @abstractmethod
    def around_list(self, call: Call, listing: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        """Hand a listing on."""

    @property
    def url(self) -> str:
        """The root of the wrapped store."""
        return self.store.url

    @property
    def gap(self) -> int:
        """The gap of the wrapped store."""
        return self.store.gap

    @property
    def root(self) -> Path | None:
        """The folder of the wrapped store."""
        return self.store.root

    @property
    def is_remote(self) -> bool:
        """Whether the wrapped store is remote."""
        return self.store.is_remote

    @property
    def local(self) -> LocalFiles | None:
        """The local files of the wrapped store, whose calls are handed on like those of the store."""
        files = self.store.local
        return None if files is None else _WrappedFiles(self, files)

    def get(self, key: str) -> bytes:
        """All bytes of an object."""
        return self.around(Call("get", key), lambda: self.store.get(key))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange], *, expect: Identity | None = None) -> Pieces:
        """The bytes of several ranges of an object."""
        call = Call("get_ranges", key, ranges=ranges)
        return self.around(call, lambda: self.store.get_ranges(key, ranges, expect=expect))

    def get_suffix(self, key: str, length: int) -> tuple[bytes, ObjectInfo]:
        """The last bytes of an object."""
        return self.around(Call("get_suffix", key), lambda: self.store.get_suffix(key, length))

    def head(self, key: str) -> ObjectInfo:
        """What the store tells of an object."""
        return self.around(Call("head", key), lambda: self.store.head(key))

    def put(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object."""
        return self.around(Call("put", key, data), lambda: self.store.put(key, data))

    def put_if_absent(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write an object unless the key is taken."""
        return self.around(Call("put_if_absent", key, data), lambda: self.store.put_if_absent(key, data))

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectInfo]:
        """Every object in a folder and below it."""
        return self.around_list(Call("list", prefix), self.store.list(prefix, after=after))

    def delete(self, key: str) -> None:
        """Remove an object."""
        return self.around(Call("delete", key), lambda: self.store.delete(key))


class _WrappedFiles:
    """Local files of a wrapped store."""

    def __init__(self, wrapper: StoreWrapper, files: LocalFiles) -> None:
        self._wrapper = wrapper
        self._files = files

    def path(self, key: str) -> Path | None:
        """Where an object is, if the wrapper lets others read by themselves."""
        if not self._wrapper.paths:
            return None
        return self._wrapper.around(Call("path", key), lambda: self._files.path(key))

    def open(self, key: str, *, expect: Identity | None = None) -> _WrappedFile:
        """Open a file for many reads; each is a call."""
        opened = self._wrapper.around(Call("open", key), lambda: self._files.open(key, expect=expect))
        return _WrappedFile(self._wrapper, key, opened)

    def read_each(self, wanted: Sequence[tuple[str, int, ByteRange]]) -> Sequence[bytes | None]:
        """One range of each of many files; each file is a call."""
        return [self._read(each) for each in wanted]

    def _read(self, wanted: tuple[str, int, ByteRange]) -> bytes | None:
        call = Call("read_each", wanted[0], ranges=(wanted[2],))
        return self._wrapper.around(call, lambda: self._files.read_each([wanted])[0])

    def unfinished(self, prefix: str) -> Iterator[Unfinished]:
        """Every hidden file in and below a folder."""
        return iter(self._wrapper.around(Call("unfinished", prefix), lambda: tuple(self._files.unfinished(prefix))))

    def remove_unfinished(self, file: Unfinished) -> bool:
        """Remove a hidden file."""
        call = Call("remove_unfinished", file.key or file.path.name)
        return self._wrapper.around(call, lambda: self._files.remove_unfinished(file))


class _WrappedFile:
    """An open file of a wrapped store. Hints are handed on as they are."""

    def __init__(self, wrapper: StoreWrapper, key: str, opened: OpenFile) -> None:
        self._wrapper = wrapper
        self._key = key
        self._opened = opened
        self.is_at_hand = opened.is_at_hand
        self.announce = opened.announce

    def read_at(self, offset: int, length: int) -> bytes:
        """Bytes of the file."""
        call = Call("read_at", self._key, ranges=(ByteRange(offset, length),))
        return self._wrapper.around(call, lambda: self._opened.read_at(offset, length))

    def check(self) -> None:
        """Refuse a file that was written to."""
        self._wrapper.around(Call("check", self._key), self._opened.check)


def received(result: object) -> int:
    """How many bytes of objects the result of a call carries."""
    match result:
        case bytes() as data:
            return len(data)
        case list() as pieces:
            return sum(map(len, pieces))
        case (bytes() as data, _):
            return len(data)
        case _:
            return 0

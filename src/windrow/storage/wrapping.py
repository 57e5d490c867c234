"""A store around a store: the base of everything that watches or disturbs the calls to one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from windrow.storage.protocol import ByteRange, BytesLike, Identity, ObjectInfo, Pieces, Store, Verb

__all__ = ["Call", "StoreWrapper", "received"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a verb; for a listing, `key` is the prefix."""

    verb: Verb
    key: str
    data: BytesLike = b""
    ranges: Sequence[ByteRange] = ()


class StoreWrapper(ABC):
    """Hands every call on to `store`; subclasses say in `around` and `around_list` what happens besides."""

    def __init__(self, store: Store) -> None:
        self.store = store

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

"""What a cache is: values under keys that name a part of an object, loaded by the caller when they are not there."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

__all__ = ["Cache", "CacheKey", "CacheKind", "Supplier", "Value"]

Value = TypeVar("Value")


class CacheKind(StrEnum):
    """What a value is, so that an application can route kinds to caches of its own."""

    DEFAULT = "default"
    DATA_FILE_FOOTER = "data_file_footer"
    """A complete Parquet footer (metadata, its length and the magic), or the page index that it points to."""
    SIDECAR = "sidecar"
    DATA_RANGE = "data_range"


class CacheKey(NamedTuple):
    """A part of an object: `length` bytes of `uri` from `position` on; -1 and -1 stand for its footer, or its whole.

    `identity` tells contents apart that were at one address at different times: with it in the key a replaced object
    is never served. It is None where the address alone stands for the content, as of splits, which never change.
    """

    uri: str
    position: int
    length: int
    kind: CacheKind = CacheKind.DEFAULT
    identity: str | None = None

    @classmethod
    def footer(cls, uri: str, identity: str | None = None) -> CacheKey:
        """The key of a Parquet file's footer."""
        return cls(uri, -1, -1, CacheKind.DATA_FILE_FOOTER, identity)


Supplier: TypeAlias = Callable[[CacheKey], Value]
"""Loads a value that is not cached."""


class Cache(Protocol[Value]):
    """Values under keys. Every method may be called from many threads at once.

    A cache may forget anything at any time, and gives back only what was supplied or put under the same key.
    """

    def get(self, key: CacheKey, supplier: Supplier[Value]) -> Value:
        """The value of a key; if it is not here, what the supplier gives. An error of the supplier is not cached."""

    def put(self, key: CacheKey, value: Value) -> None:
        """Keep a value, if there is room for it."""

    def invalidate(self, key: CacheKey) -> None:
        """Forget one key; a load of it that is under way is not stored either."""

    def invalidate_all(self) -> None:
        """Forget everything."""

    def size(self) -> int:
        """How many values are cached."""

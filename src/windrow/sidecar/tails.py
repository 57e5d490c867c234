"""Parts of Parquet files in a store."""

from __future__ import annotations

from collections.abc import Callable

from windrow.parquet.tail import FIRST_READ, Tail, complete_tail
from windrow.storage import ByteRange, Identity, ObjectInfo, Store

__all__ = ["reader_of", "stored_tail"]


def reader_of(store: Store, key: str, expect: Identity | None = None) -> Callable[[int, int], bytes]:
    """Return a function that reads bytes of a file; with `expect`, of no other file under its key."""

    def read(start: int, length: int) -> bytes:
        return store.get_ranges(key, [ByteRange(start, length)], expect=expect)[0]

    return read


def stored_tail(store: Store, key: str, name: str, length: int = FIRST_READ) -> tuple[Tail, ObjectInfo]:
    """Return the end of a file and the store's record of it, by one request if `length` bytes suffice."""
    data, info = store.get_suffix(key, length)
    return complete_tail(data, info.size, reader_of(store, key, info.identity), name=name), info

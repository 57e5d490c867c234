"""File objects over anything that can be read at an address, safe when many threads read at once."""

from __future__ import annotations

import io
import threading
from functools import cached_property
from typing import Protocol

from windrow.errors import InvalidInput
from windrow.storage import ByteRange, Identity, Store

__all__ = ["Handle", "Readable", "StoredFile"]


class Readable(Protocol):
    """Bytes that can be read from anywhere."""

    @property
    def size(self) -> int:
        """How many bytes there are."""

    def read_at(self, address: int, length: int) -> bytes:
        """Exactly so many bytes, which are all inside."""


class StoredFile:
    """An object of a store; a size that is not given comes from the store when it is first needed.

    Where another object is there than the one to `expect`, reading is `Replaced`.
    """

    def __init__(self, store: Store, key: str, size: int | None = None, *, expect: Identity | None = None) -> None:
        self._store = store
        self._key = key
        self._size = size
        self._expect = expect

    @cached_property
    def size(self) -> int:
        """How many bytes the object has."""
        return self._store.head(self._key).size if self._size is None else self._size

    def read_at(self, address: int, length: int) -> bytes:
        """Bytes of the object."""
        return self._store.get_ranges(self._key, [ByteRange(address, length)], expect=self._expect)[0]


class Handle(io.RawIOBase):
    """A readable file object. Every thread has a position of its own: engines seek and read from several at once.

    A thread that begins after another has ended may be given its number, and its position with it: who opens no file
    of his own seeks before he reads.
    """

    def __init__(self, source: Readable) -> None:
        super().__init__()
        self._source = source
        # By the numbers of threads: threads of engines are new to Python at every call, and a local of theirs as well.
        self._positions: dict[int, int] = {}

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The position of this thread."""
        return self._positions.get(threading.get_ident(), 0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position of this thread."""
        if whence != io.SEEK_SET:
            offset += self.tell() if whence == io.SEEK_CUR else self._source.size
        if offset < 0:
            raise InvalidInput(f"seek to {offset}: a file begins at 0; seek to a position from there on")
        self._positions[threading.get_ident()] = offset
        return offset

    def read(self, size: int | None = -1) -> bytes:
        """Bytes from the position of this thread on, fewer only at the end."""
        thread = threading.get_ident()
        position = self._positions.get(thread, 0)
        left = max(self._source.size - position, 0)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        data = self._source.read_at(position, length)
        self._positions[thread] = position + length
        return data

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer from the position of this thread on."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """All bytes from the position of this thread on."""
        return self.read()

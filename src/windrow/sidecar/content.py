"""The bytes of a sidecar: held in memory, or in an open file of which only what is asked for is read.

The header comes first, and its committed size bounds everything after it: an update may be writing behind that size, or
patch it while the file is opened. The size on disk only tells whether the header claims more than there is.
"""

from __future__ import annotations

import mmap
import os

from windrow.errors import Damaged, NotFound, StorageError
from windrow.sidecar import layout

Buffer = bytes | bytearray | mmap.mmap
"""All bytes of a sidecar: read whole, or mapped."""

READ_WHOLE = 1 << 16
"""Files up to this size are read at once: the few reads of one question would cost more."""


_TAIL = 1 << 12


class Held:
    """Bytes in memory."""

    __slots__ = ("buffer", "size")

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.size = len(buffer)

    def read(self, start: int, length: int) -> bytes | bytearray:
        """Bytes at a place that was checked to be inside of `size`."""
        return self.buffer[start : start + length]


class OpenFile:
    """A file that is too large to be read for one question.

    A mapping would cost a page fault for every place that is touched, and more to be undone, so it is made only when
    somebody wants all bytes. The descriptor keeps the file as it was opened, whatever its path names later.
    """

    __slots__ = ("_descriptor", "_head", "_mapping", "_tail", "_tail_start", "path", "size")

    def __init__(self, descriptor: int, path: str, size: int, head: bytes, tail: bytes) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor
        self._mapping: mmap.mmap | None = None
        # Read again, the header might speak of a later update.
        self._head = head
        # The footer is looked at in several small pieces.
        self._tail = tail
        self._tail_start = size - len(tail)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def read(self, start: int, length: int) -> bytes:
        """Bytes at a place that was checked to be inside of `size`."""
        if start >= self._tail_start and start + length <= self.size:
            return self._tail[start - self._tail_start : start - self._tail_start + length]
        if start + length <= len(self._head):
            return self._head[start : start + length]
        if self._mapping is not None:
            return self._mapping[start : start + length]
        data = os.pread(self._descriptor, length, start)
        if len(data) != length:
            raise self._cut(start + len(data))
        return data

    @property
    def buffer(self) -> Buffer:
        """All bytes, mapped."""
        if self._mapping is None:
            # Mapping past the end would kill the process at the first touch, so the length is looked at again.
            size = os.fstat(self._descriptor).st_size
            if size < self.size:
                raise self._cut(size)
            self._mapping = mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ)
        return self._mapping

    def _cut(self, size: int) -> Damaged:
        problem = f"the file ends at byte {size}, it had {self.size} when it was opened"
        return Damaged(f"{self.path}: {problem}; rebuild the sidecar from its Parquet file")


Content = Held | OpenFile


def open_content(path: str) -> Content:
    """The bytes of a local file."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError as error:
        raise NotFound(f"{path}: no such sidecar; build it from its Parquet file") from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be opened: {error.strerror}; check the path and its permissions") from error
    try:
        head = os.pread(descriptor, layout.HEADER_SIZE, 0)
        size = _size(descriptor, head)
        if size > READ_WHOLE:
            return OpenFile(descriptor, path, size, head, os.pread(descriptor, _TAIL, size - _TAIL))
        data = head + os.pread(descriptor, size - len(head), len(head))
    except OSError as error:
        os.close(descriptor)
        raise StorageError(f"{path}: cannot be read: {error.strerror}; check that it is a file") from error
    os.close(descriptor)
    return Held(data)


def _size(descriptor: int, head: bytes) -> int:
    """How many bytes may be looked at: those that the header commits, as far as they are there."""
    (committed,) = layout.U64.unpack_from(head) if len(head) == layout.HEADER_SIZE else (0,)
    if layout.SMALLEST_FILE <= committed <= READ_WHOLE:
        return int(committed)
    on_disk = os.lseek(descriptor, 0, os.SEEK_END)
    return min(committed, on_disk) if committed >= layout.SMALLEST_FILE else on_disk

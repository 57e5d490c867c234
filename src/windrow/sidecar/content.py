"""The bytes of a sidecar: held in memory, or in an open file, read piece by piece.

A file may grow while it is read, so its length is no boundary. Its first word is: a writer patches it last. That word
is read first, then no more bytes than it commits.
"""

from __future__ import annotations

import mmap
import os

from windrow.errors import Damaged, StorageError
from windrow.sidecar import layout
from windrow.storage.failures import local_reads

Buffer = bytes | bytearray | mmap.mmap
"""All bytes of a sidecar: read whole, or mapped."""

READ_WHOLE = 1 << 16
"""Files up to this size are read at once: the few reads of one question would cost more."""


_TAIL = 1 << 12


class Held:
    """Bytes in memory."""

    __slots__ = ("buffer", "committed", "size")

    def __init__(self, buffer: Buffer, committed: int | None = None) -> None:
        self.buffer = buffer
        self.size = len(buffer)
        self.committed = committed
        """How much was committed before the bytes were read; None where they tell."""

    def read(self, start: int, length: int) -> bytes | bytearray:
        """Bytes at a place that was checked to be inside of `size`."""
        return self.buffer[start : start + length]


class OpenSidecar:
    """A file that is too large to be read for one question.

    A mapping would cost a page fault for every place that is touched, and more to be undone, so it is made only when
    somebody wants all bytes. The descriptor keeps the file as it was opened, whatever its path names later.
    """

    __slots__ = ("_descriptor", "_mapping", "_tail", "_tail_start", "committed", "path", "size")

    def __init__(self, descriptor: int, path: str, size: int, tail: bytes, committed: int | None = None) -> None:
        self.path = path
        self.size = size
        self.committed = committed
        self._descriptor = descriptor
        self._mapping: mmap.mmap | None = None
        # The footer is looked at in several small pieces.
        self._tail = tail
        self._tail_start = size - len(tail)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def read(self, start: int, length: int) -> bytes:
        """Bytes at a place that was checked to be inside of `size`."""
        if start >= self._tail_start and start + length <= self.size:
            return self._tail[start - self._tail_start : start - self._tail_start + length]
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
        problem = f"the file ends at byte {size}, it had {self.size} or more when it was opened"
        return Damaged(f"{self.path}: {problem}; rebuild the sidecar from its Parquet file")


Content = Held | OpenSidecar


def open_content(path: str) -> Content:
    """The committed bytes of a local file; all of its bytes where it commits more than it has."""
    with local_reads(path, "no such sidecar; build it from its Parquet file"):
        descriptor = os.open(path, os.O_RDONLY)
    content: Content | None = None
    try:
        # Whoever writes a file anew in its place may be seen in between, so one look is no proof of damage.
        content = _look(descriptor, path) or _look(descriptor, path) or _uncommitted(descriptor, path)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}; check that it is a file") from error
    finally:
        if not isinstance(content, OpenSidecar):
            os.close(descriptor)
    return content


def _look(descriptor: int, path: str) -> Content | None:
    """What the first word commits; None where there is less."""
    word = os.pread(descriptor, layout.U64.size, 0)
    if len(word) < layout.U64.size:
        return None
    (committed,) = layout.U64.unpack(word)
    if committed < layout.SMALLEST_FILE:
        return None
    if committed > READ_WHOLE:
        return _open_file(descriptor, path, committed) if committed <= os.fstat(descriptor).st_size else None
    data = os.pread(descriptor, committed, 0)
    return Held(data, committed) if len(data) == committed else None


def _open_file(descriptor: int, path: str, committed: int) -> OpenSidecar | None:
    tail = os.pread(descriptor, _TAIL, committed - _TAIL)
    return OpenSidecar(descriptor, path, committed, tail, committed) if len(tail) == _TAIL else None


def _uncommitted(descriptor: int, path: str) -> Content:
    """The bytes of a file that cannot be a sidecar; the error of its reader says what is wrong."""
    size = os.fstat(descriptor).st_size
    if size > READ_WHOLE:
        return OpenSidecar(descriptor, path, size, os.pread(descriptor, _TAIL, size - _TAIL))
    return Held(os.pread(descriptor, READ_WHOLE, 0))

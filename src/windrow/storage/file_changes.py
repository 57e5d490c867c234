"""Changes of local files that grow or are replaced in place, as a few calls that a recorder can wrap."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from windrow.errors import StorageError

__all__ = ["FileSink", "Files"]

_BUFFER = 4 << 20


class Files:
    """Changes files and folders. Nothing lasts before the `sync` of its file, no name before that of its folder."""

    def create(self, path: Path, data: bytes) -> None:
        """Write a new file, or write an old one anew."""
        with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
            _write_all(descriptor, data, 0)

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        """Write bytes into a file that exists."""
        with _opened(path, os.O_WRONLY) as descriptor:
            _write_all(descriptor, data, offset)

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file off after its first bytes."""
        with _failures(path):
            os.truncate(path, size)

    def sync(self, path: Path) -> None:
        """Force a file's bytes to the disk."""
        with _opened(path, os.O_RDONLY) as descriptor:
            os.fsync(descriptor)

    def make_folder(self, path: Path) -> None:
        """Make a folder."""
        with _failures(path):
            path.mkdir()

    def sync_folder(self, path: Path) -> None:
        """Force the names in a folder to the disk."""
        with _opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            os.fsync(descriptor)

    def publish(self, path: Path, data: bytes) -> None:
        """Put a whole file in place, durably; readers see all of it or none."""
        # A leading underscore keeps a leftover of a crash out of what readers of the folder take for data.
        partial = path.with_name(f"_{path.name}.partial")
        self.create(partial, data)
        self.sync(partial)
        self.rename(partial, path)
        self.sync_folder(path.parent)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file another name, in place of what has it."""
        with _failures(path):
            path.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        with _failures(path):
            path.unlink()

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        with _failures(path):
            path.rmdir()


class FileSink(io.RawIOBase):
    """A new file that is written from its start to its end, in large pieces."""

    def __init__(self, files: Files, path: Path) -> None:
        super().__init__()
        self._files, self._path, self._held, self._written = files, path, bytearray(), 0
        files.create(path, b"")

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._written + len(self._held)

    def writable(self) -> bool:
        """Whether it takes bytes."""
        return True

    def tell(self) -> int:
        """Where the next byte goes."""
        return self.size

    def write(self, data: Any) -> int:
        """Add bytes at the end."""
        self._held += data
        if len(self._held) >= _BUFFER:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Hand over what is held."""
        if self._held:
            data, self._held = bytes(self._held), bytearray()
            self._files.write_at(self._path, self._written, data)
            self._written += len(data)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    with _failures(path):
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: cannot be written: {error.strerror}; check space and permissions") from error


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written

"""Virtual files under paths: a filesystem that DuckDB opens them from, while a query runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from fsspec.spec import AbstractFileSystem

from windrow.errors import AlreadyExists
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.pins import Hold
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage.handles import Handle

__all__ = ["PROTOCOL", "LentFiles", "VirtualFileSystem"]

PROTOCOL = "windrow"
"""Paths of virtual files begin so."""
_MADE = datetime(2000, 1, 1, tzinfo=UTC)
_numbers = itertools.count(1)


class VirtualFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The virtual files of the queries that are running. Each name has one reader, which its owner closes."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._readers: dict[str, VirtualReader] = {}

    @contextmanager
    def serving(self, reader: VirtualReader, name: str) -> Iterator[str]:
        """Serve a file under a name while the block lasts; gives its path."""
        # One step, so that of two who want a name at the same time one is refused.
        if self._readers.setdefault(name, reader) is not reader:
            raise AlreadyExists(f"virtual file {name!r}: another query is reading under this name; choose another name")
        try:
            yield f"{PROTOCOL}://{name}"
        finally:
            del self._readers[name]

    @property
    def paths(self) -> list[str]:
        """The paths that are served now."""
        return [f"{PROTOCOL}://{name}" for name in self._readers]

    def open(self, path: str, mode: str = "rb", **_: Any) -> Handle:  # noqa: ARG002
        """Open a file for reading."""
        return Handle(self._reader(path))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What a file is."""
        return {"name": path, "size": self._reader(path).size, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        """Whether a file is being served."""
        return self._strip_protocol(path) in self._readers

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file itself: names are no patterns."""
        return [self._strip_protocol(path)] if self.exists(path) else []

    def modified(self, path: str) -> datetime:  # noqa: ARG002
        """Always the same: another content has another name."""
        return _MADE

    def _reader(self, path: str) -> VirtualReader:
        try:
            return self._readers[self._strip_protocol(path)]
        except KeyError:
            raise FileNotFoundError(path) from None


class LentFiles(AbstractFileSystem):  # type: ignore[misc]
    """Virtual files for a connection that is not ours: they are there for as long as it is, and open only while read.

    Each has a protocol of its own, since a connection that shares its database with others may know one already.
    """

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.protocol = f"{PROTOCOL}-{next(_numbers)}"
        self._lent: dict[str, tuple[VirtualFile, ReadContext, Hold | None]] = {}

    def lend(self, virtual: VirtualFile, context: ReadContext, hold: Hold | None) -> str:
        """Serve a file from now on, and what is held for it; gives its path.

        The same bytes of the same version are one file, however often they are wanted for one lake object.
        """
        owner = "0" if hold is None else f"{hold.owner}-{hold.table_id}-{hold.version}"
        path = f"{self.protocol}://{owner}-{virtual.name}"
        self._lent.setdefault(path, (virtual, context, hold))
        return path

    def open(self, path: str, mode: str = "rb", **_: Any) -> Handle:  # noqa: ARG002
        """Open a file for reading."""
        virtual, context, _hold = self._lookup(path)
        return Handle(VirtualReader(virtual, context))

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What a file is."""
        return {"name": path, "size": self._lookup(path)[0].size, "type": "file"}

    def exists(self, path: str, **_: Any) -> bool:
        """Whether there is such a file."""
        return path in self._lent

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file itself: names are no patterns."""
        return [path] if self.exists(path) else []

    def modified(self, path: str) -> datetime:  # noqa: ARG002
        """Always the same: another content has another name."""
        return _MADE

    def _lookup(self, path: str) -> tuple[VirtualFile, ReadContext, Hold | None]:
        if path not in self._lent:
            raise FileNotFoundError(path)
        return self._lent[path]

"""Virtual files under paths: a filesystem that DuckDB opens them from, while a query runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from fsspec.spec import AbstractFileSystem

from windrow.scan.handles import Handle
from windrow.scan.reading import VirtualReader

__all__ = ["VirtualFileSystem"]

_PROTOCOL = "windrow"
_MADE = datetime(2000, 1, 1, tzinfo=UTC)


class VirtualFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The virtual files of the queries that are running, by name; names tell contents apart."""

    protocol = _PROTOCOL
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._readers: dict[str, list[VirtualReader]] = {}
        self._guard = threading.Lock()

    @contextmanager
    def serving(self, name: str, reader: VirtualReader) -> Iterator[str]:
        """Serve a file while the block lasts; gives its path."""
        with self._guard:
            self._readers.setdefault(name, []).append(reader)
        try:
            yield f"{_PROTOCOL}://{name}"
        finally:
            with self._guard:
                self._readers[name].remove(reader)
                if not self._readers[name]:
                    del self._readers[name]

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
            return self._readers[self._strip_protocol(path)][-1]
        except (KeyError, IndexError):
            raise FileNotFoundError(path) from None

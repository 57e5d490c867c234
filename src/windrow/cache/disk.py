"""A cache in a folder of the local disk: bounded, checksummed, shared by processes, and never a reason to fail.

Each value is one file that gets its name in one step, so readers see the whole of it or nothing, and a crash leaves at
most an unfinished file that is swept later. Nothing is forced to the disk: what a power cut damages has the wrong
checksum. Whatever goes wrong with the folder (deleted, full, not writable, damaged) is counted, and the value is loaded
as if it had never been here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from windrow import forking
from windrow.cache.metrics import CacheMetrics, KindRow
from windrow.cache.protocol import CacheKey, CacheKind, Supplier
from windrow.errors import InvalidInput
from windrow.model.rows import Rows

__all__ = ["DiskCache"]

_MAGIC = b"WRCACHE1"
_DIGEST_BYTES = 16
_KEY_LENGTH = struct.Struct("<I")
_HEAD = len(_MAGIC) + _DIGEST_BYTES + _KEY_LENGTH.size
_SUFFIX = ".cache"
_UNFINISHED = ".tmp"
_STALE_SECONDS = 3600
"""An unfinished file that nobody wrote to for so long was left by a crash."""
_TOUCH_SECONDS = 60
"""The time of a file says when it was last used, to about so many seconds."""
_SLACK_SHARE = 16
"""The folder is looked through after each process has added one part in so many of the budget."""
_KEPT_PERCENT = 90

_serial = itertools.count()


class _File(NamedTuple):
    """A file of the folder."""

    used: float
    size: int
    path: str


class DiskCache:
    """Bytes in files of one folder, together no more than a budget: what was not used for the longest time goes first.

    Processes that share the folder each look through it now and then; between two looks they may together exceed the
    budget by a sixteenth each. `clock` gives seconds since the epoch.
    """

    def __init__(
        self, folder: str | Path, budget: int, *, name: str = "disk", clock: Callable[[], float] = time.time
    ) -> None:
        if budget < 0:
            raise InvalidInput(f"cache {name!r}: a budget of {budget} bytes; give 0 or more")
        self.folder = Path(folder)
        self.budget = budget
        self.metrics = CacheMetrics(name)
        self._clock = clock
        self._lock = threading.Lock()
        self._unseen = budget  # the first value has the folder looked through
        # Loads that began before this number was raised are not stored: they may bring back what was forgotten.
        self._epoch = 0
        forking.register(self)

    def after_fork(self) -> None:
        """Go on with the folder, in a forked child."""
        self._lock = threading.Lock()

    def get(self, key: CacheKey, supplier: Supplier[bytes]) -> bytes:
        """The bytes of a key; if they are not here, or damaged, what the supplier gives."""
        data = self.find(key)
        if data is not None:
            self.metrics.add(key.kind, "hits", len(data))
            return data
        epoch = self._epoch
        data = supplier(key)
        self.metrics.add(key.kind, "misses", len(data))
        if epoch == self._epoch:
            self.put(key, data)
        return data

    def put(self, key: CacheKey, value: bytes) -> None:
        """Keep bytes, if there is room for them."""
        try:
            self.write(key, value)
        except OSError:
            self.metrics.add(key.kind, "failures")

    def write(self, key: CacheKey, value: bytes) -> None:
        """Keep bytes like `put`; where the disk does not take them, what was there stays, and OSError is raised."""
        size = len(value) + _HEAD
        if size > self.budget:
            return
        self._write(key, value)
        with self._lock:
            self._unseen += size
            due = self._unseen * _SLACK_SHARE > self.budget
            self._unseen = 0 if due else self._unseen
        if due:
            self.sweep()

    def invalidate(self, key: CacheKey) -> None:
        """Forget one key."""
        self._epoch += 1
        self._remove(self._path(key))

    def invalidate_all(self) -> None:
        """Forget everything, files that are still being written included."""
        self._epoch += 1
        for file in self._files():
            self._remove(file.path)

    def size(self) -> int:
        """How many values are cached."""
        return sum(file.path.endswith(_SUFFIX) for file in self._files())

    def contents(self) -> Rows[KindRow]:
        """What is cached, by kind."""
        sizes_of: dict[CacheKind, list[int]] = {}
        for file in self._files():
            if file.path.endswith(_SUFFIX):
                sizes_of.setdefault(_kind_of(file.path), []).append(file.size)
        return Rows(
            KindRow, tuple(KindRow(str(kind), len(sizes), sum(sizes)) for kind, sizes in sorted(sizes_of.items()))
        )

    @property
    def weight(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in self._files())

    def sweep(self) -> None:
        """Remove what crashes left behind, and as many of the oldest values as have to make room."""
        now, total, files = self._clock(), 0, []
        for file in self._files():
            if file.path.endswith(_UNFINISHED) and now - file.used > _STALE_SECONDS:
                self._remove(file.path)
            else:
                total += file.size
                files.append(file)
        if total <= self.budget:
            return
        for file in sorted(files):
            if total * 100 <= self.budget * _KEPT_PERCENT:
                break
            if file.path.endswith(_SUFFIX) and self._remove(file.path):
                self.metrics.add(_kind_of(file.path), "evictions")
                total -= file.size

    def _path(self, key: CacheKey) -> str:
        # The kind stands in the name, so that evictions can be counted without opening files.
        name = hashlib.blake2b(_key_bytes(key), digest_size=_DIGEST_BYTES).hexdigest()
        return str(self.folder / f"{name}.{key.kind}{_SUFFIX}")

    def find(self, key: CacheKey) -> bytes | None:
        """The bytes of a key; None where they are not here, or damaged."""
        path = self._path(key)
        try:
            with open(path, "rb") as file:  # noqa: PTH123 (a Path would cost more than the read)
                content = file.read()
                self._touch(file.fileno())
        except FileNotFoundError:
            return None
        except OSError:
            self.metrics.add(key.kind, "failures")
            return None
        data = _checked(key, content)
        if data is None:
            self.metrics.add(key.kind, "failures")
            self._remove(path)
        return data

    def _touch(self, file: int) -> None:
        now = self._clock()
        if now - os.fstat(file).st_mtime > _TOUCH_SECONDS:
            os.utime(file, (now, now))

    def _write(self, key: CacheKey, value: bytes) -> None:
        path = self._path(key)
        partial = f"{path}-{os.getpid()}-{next(_serial)}{_UNFINISHED}"
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with open(partial, "wb") as file:  # noqa: PTH123
                file.write(_framed(key, value))
            os.replace(partial, path)  # noqa: PTH105
        except BaseException:
            self._remove(partial)
            raise

    def _files(self) -> Iterator[_File]:
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith((_SUFFIX, _UNFINISHED)):
                        try:
                            status = entry.stat(follow_symlinks=False)
                        except OSError:  # another process removed it
                            continue
                        yield _File(status.st_mtime, status.st_size, entry.path)
        except OSError:
            return

    def _remove(self, path: str) -> bool:
        try:
            os.unlink(path)  # noqa: PTH108
        except OSError:
            return False
        return True


def _key_bytes(key: CacheKey) -> bytes:
    return json.dumps(key).encode()


def _kind_of(path: str) -> CacheKind:
    name = path.removesuffix(_SUFFIX).rpartition(".")[2]
    return CacheKind(name) if name in list(CacheKind) else CacheKind.DEFAULT


def _framed(key: CacheKey, value: bytes) -> bytes:
    named = _key_bytes(key)
    body = _KEY_LENGTH.pack(len(named)) + named + value
    return _MAGIC + _digest(body) + body


def _checked(key: CacheKey, content: bytes) -> bytes | None:
    """The value in the content of a file; None if it is another key's, or not what was written."""
    named, start = _key_bytes(key), len(_MAGIC) + _DIGEST_BYTES
    head = _KEY_LENGTH.pack(len(named)) + named
    begins = content[: len(_MAGIC)] == _MAGIC and content[start : start + len(head)] == head
    if not begins or content[len(_MAGIC) : start] != _digest(memoryview(content)[start:]):
        return None
    return content[start + len(head) :]


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()

"""Files on this machine: opened when they are first read, and announced to the system before."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from windrow.model.limits import READ_OVER
from windrow.planning.data_files import DataFile
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.needed_ranges import needed_bytes
from windrow.storage import LocalFiles, OpenFile

__all__ = ["NearFile", "OpenFiles", "announce"]

_MOST_OPEN = 256
_LARGE = 4 * 2**20
"""For smaller files nobody waits long."""
_AHEAD = 64 * 2**20
"""What lies this far behind a read is announced with it."""


class OpenFiles:
    """The files on this machine that are open: not too many at once."""

    def __init__(self) -> None:
        self._opened: OrderedDict[NearFile, OpenFile] = OrderedDict()
        self.count = 0
        self._lock = threading.Lock()

    def get(self, near: NearFile) -> OpenFile:
        """An open file; one that was opened longest ago may have to be closed for it."""
        opened = self._opened.get(near)
        if opened is None:
            opened = near.open()
            with self._lock:
                self.count += 1
                self._opened[near] = opened
                while len(self._opened) > _MOST_OPEN:
                    self._opened.popitem(last=False)[1].check()
        return opened

    def check(self, near: NearFile) -> None:
        """Refuse a file that was written to since it was opened."""
        opened = self._opened.get(near)
        if opened is not None:
            opened.check()

    def close(self) -> None:
        """Let go of all files; each is closed when the last read of it ends."""
        with self._lock:
            self._opened.clear()


class NearFile:
    """A file on this machine."""

    def __init__(self, file: DataFile, local: LocalFiles, pool: OpenFiles) -> None:
        self._file = file
        self._local = local
        self._pool = pool
        self._expected: list[list[int]] = []
        self._announced = 0

    def open(self) -> OpenFile:
        """Open the file that the plan was made with."""
        return self._local.open(self._file.key, expect=self._file.identity)

    def expect(self, ranges: list[list[int]]) -> None:
        """Say what will be read, by offset and length, in order."""
        self._expected = ranges

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly so many bytes; what is expected next is on its way from the disk meanwhile."""
        opened = self._pool.get(self)
        # threads that meet here announce something twice at worst
        while (place := self._announced) < len(self._expected) and self._expected[place][0] < offset + _AHEAD:
            self._announced = place + 1
            opened.announce(*self._expected[place])
        return opened.read_at(offset, length)

    def finish(self) -> None:
        """Refuse a file that was written to since it was opened."""
        self._pool.check(self)


def announce(virtual: VirtualFile, files: Mapping[int, NearFile]) -> None:
    """Tell large files what a virtual file will need of them."""
    large = [number for number in files if virtual.files[number].identity.size >= _LARGE]
    if not large or not len(virtual.chunks):
        return
    needed = needed_bytes(virtual)
    number, offset, length = needed[np.lexsort(needed.T[1::-1])].T
    end = offset + length
    begins = np.flatnonzero(np.append(True, (number[1:] != number[:-1]) | (offset[1:] > end[:-1] + READ_OVER)))
    spans = np.stack([offset[begins], end[np.append(begins[1:], len(end)) - 1] - offset[begins]], axis=1)
    for each in large:
        low, high = np.searchsorted(number[begins], (each, each + 1))
        files[each].expect(spans[low:high].tolist())

"""Files that an engine reads by itself in place of a virtual file.

A virtual file saves requests, pages and row groups, and every byte of it is copied once more on its way. Of large files
on this machine that are read as a whole there is nothing to save, so the engine is given their paths. Not while a disk
has to be waited for: a virtual file has it fetch ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from windrow.errors import WindrowError
from windrow.planning.data_files import DataFile
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.local_files import NearFile, OpenFiles
from windrow.reading.needed_ranges import needed_bytes
from windrow.storage.ranges import check_identity

__all__ = ["PlainFiles", "plain_files"]

_LARGE = 16 * 2**20
"""Many files that are smaller than this on the average are read faster as one."""
_PATTERN = frozenset("*?[")
_PROBES = 16
"""So many places tell whether files are in memory."""


class PlainFiles:
    """Files on this machine that are read by their paths."""

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files = files

    @property
    def failure(self) -> WindrowError | None:
        """Why an engine failed that read these files: one of them is no longer what was planned with."""
        try:
            self.finish()
        except WindrowError as error:
            return error
        return None

    def finish(self) -> None:
        """Make sure that what was read is what was planned with: `Replaced` if a file changed in the meantime."""
        for file in self._files:
            check_identity(file.uri, file.identity, file.store.head(file.key))


def plain_files(virtual: VirtualFile, *, wanted: bool | None) -> tuple[list[str], PlainFiles] | None:
    """The paths of the files of a virtual file, if they can be read in its place, and if that is better or wanted."""
    if wanted is False or not virtual.is_plain or not (wanted or virtual.is_whole):
        return None
    files = [virtual.files[number] for number in sorted({segment.file for segment in virtual.segments})]
    paths = [path for file in files if (path := _path(file)) is not None]
    if len(paths) < len(files) or _PATTERN & set("".join(paths)) or any(file.described for file in files):
        return None
    is_large = sum(file.identity.size for file in files) >= _LARGE * len(files)
    return (paths, PlainFiles(files)) if wanted or (is_large and _is_at_hand(virtual)) else None


def _path(file: DataFile) -> str | None:
    path = None if file.store.local is None else file.store.local.path(file.key)
    return None if path is None else str(path)


def _is_at_hand(virtual: VirtualFile) -> bool:
    """Whether the system has what is needed in memory, as far as some places tell."""
    needed = needed_bytes(virtual)
    places = needed[np.linspace(0, len(needed) - 1, min(len(needed), _PROBES)).astype(np.int64)]
    pool, opened = OpenFiles(), dict[int, NearFile]()
    for number, offset, _ in places.tolist():
        file = virtual.files[number]
        if file.store.local is None:
            return False
        near = opened.setdefault(number, NearFile(file, file.store.local, pool))
        if not pool.get(near).is_at_hand(offset):
            return False
    return True

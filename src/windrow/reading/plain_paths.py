"""Files that an engine reads by itself in place of a virtual file.

A virtual file saves requests, pages and row groups, and every byte of it is copied once more on its way. Of large files
on this machine that are read as a whole there is nothing to save, so the engine is given their paths. Not while a disk
has to be waited for: a virtual file has it fetch ahead.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np

from windrow.planning.data_files import DataFile
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.local_files import NearFile, OpenFiles
from windrow.reading.needed_ranges import needed_bytes

__all__ = ["files_of", "plain_paths"]

_LARGE = 16 * 2**20
"""Many files that are smaller than this on the average are read faster as one."""
_PATTERN = frozenset("*?[")
_PROBES = 16
"""So many places tell whether files are in memory."""


def plain_paths(virtual: VirtualFile, *, anyway: bool = False) -> list[str] | None:
    """The paths of the files of a virtual file, if they can be read in its place, and if that is faster or `anyway`."""
    if not virtual.is_plain or not (anyway or virtual.is_whole):
        return None
    files = files_of(virtual)
    paths = [path for file in files if (path := _path(file)) is not None]
    if len(paths) < len(files) or _PATTERN & set("".join(paths)) or any(file.described for file in files):
        return None
    is_large = sum(file.identity.size for file in files) >= _LARGE * len(files)
    return paths if anyway or (is_large and _is_in_memory(virtual)) else None


def files_of(virtual: VirtualFile) -> list[DataFile]:
    """The files of which there are bytes in a virtual file."""
    return [virtual.files[number] for number in sorted({segment.file for segment in virtual.segments})]


def _path(file: DataFile) -> str | None:
    path = None if file.store.local is None else file.store.local.path(file.key)
    return None if path is None else str(path)


def _is_in_memory(virtual: VirtualFile) -> bool:
    """Whether the system has what is needed in memory, as far as some places tell."""
    needed = needed_bytes(virtual)
    places = needed[np.linspace(0, len(needed) - 1, min(len(needed), _PROBES)).astype(np.int64)]
    opened = dict[int, NearFile]()
    with closing(OpenFiles()) as pool:
        for number, offset, _ in places.tolist():
            file = virtual.files[number]
            if file.store.local is None:
                return False
            near = opened.setdefault(number, NearFile(file, file.store.local, pool))
            if not pool.get(near).is_at_hand(offset):
                return False
    return True

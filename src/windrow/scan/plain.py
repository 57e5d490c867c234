"""Files that an engine reads by itself in place of a virtual file.

A virtual file saves requests, pages and row groups, and every byte of it is copied once more on its way. Of large files
on this machine that are read as a whole there is nothing to save, so the engine is given their paths.
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.scan.files import DataFile
from windrow.scan.virtual import VirtualFile
from windrow.storage import LocalStore
from windrow.storage.ranges import check_identity

__all__ = ["PlainFiles", "plain_files"]

_LARGE = 16 * 2**20
"""Many files that are smaller than this on the average are read faster as one."""
_PATTERN = frozenset("*?[")


class PlainFiles:
    """Files on this machine that are read by their paths."""

    failure = None

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files = files

    def finish(self) -> None:
        """Make sure that what was read is what was planned with: `Replaced` if a file changed in the meantime."""
        for file in self._files:
            check_identity(file.uri, file.identity, file.store.head(file.key))


def plain_files(virtual: VirtualFile, *, wanted: bool | None) -> tuple[list[str], PlainFiles] | None:
    """The paths of the files of a virtual file, if they can be read in its place, and if that is better or wanted."""
    if wanted is False or not virtual.is_plain or not (wanted or virtual.is_whole):
        return None
    files = [virtual.files[number] for number in sorted({segment.file for segment in virtual.segments})]
    paths = [str(file.store.path(file.key)) for file in files if isinstance(file.store, LocalStore)]
    if len(paths) < len(files) or _PATTERN & set("".join(paths)):
        return None
    is_large = sum(file.identity.size for file in files) >= _LARGE * len(files)
    return (paths, PlainFiles(files)) if wanted or (virtual.is_whole and is_large) else None

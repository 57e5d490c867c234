"""Putting sidecars into local files so that a crash at any point leaves the old snapshot or the new one."""

from __future__ import annotations

import os
from pathlib import Path

from windrow.errors import Conflict
from windrow.sidecar import layout
from windrow.sidecar.structure import damaged
from windrow.sidecar.writer import Update
from windrow.storage.failures import local_reads
from windrow.storage.file_changes import Files

__all__ = ["publish_new", "publish_update"]


def publish_new(path: str | os.PathLike[str], data: bytes) -> None:
    """Put a new sidecar in place, durably; readers see the whole file or none."""
    Files().publish(Path(path), data)


def publish_update(path: str | os.PathLike[str], update: Update, files: Files | None = None) -> None:
    """Append an update, durably: the bytes first, then the header's committed size, which makes them visible.

    The file must still be committed up to where the update begins; bytes after that are leftovers and are overwritten.
    """
    target, files = Path(path), files or Files()
    _check_base(target, update)
    files.write_at(target, update.base, update.data)
    files.sync(target)
    files.write_at(target, 0, layout.U64.pack(update.size))
    files.sync(target)


def _check_base(path: Path, update: Update) -> None:
    with local_reads(path, "no such sidecar; write a new one"), path.open("rb") as file:
        start = file.read(layout.U64.size)
    if len(start) < layout.U64.size:
        raise damaged(str(path), "PARQUET_META_FILE_SIZE", 0, "the file is shorter than that field")
    (committed,) = layout.U64.unpack(start)
    if committed != update.base:
        problem = f"{committed} bytes are committed, the update begins at byte {update.base}"
        raise Conflict(f"{path}: {problem}; another update came first, read the sidecar again and make a new one")

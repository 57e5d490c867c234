"""Putting sidecars into local files so that a crash at any point leaves the old snapshot or the new one."""

from __future__ import annotations

import os
from pathlib import Path

from windrow.errors import Conflict, NotFound, StorageError
from windrow.sidecar import layout
from windrow.sidecar.structure import damaged
from windrow.sidecar.writer import Update


def publish_new(path: str | os.PathLike[str], data: bytes) -> None:
    """Put a new sidecar in place, durably; readers see the whole file or none."""
    target = Path(path)
    # A leading underscore keeps a leftover of a crash out of what readers of the folder take for data.
    partial = target.with_name(f"_{target.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise _failed(path, error) from error


def publish_update(path: str | os.PathLike[str], update: Update) -> None:
    """Append an update, durably: the bytes first, then the header's committed size, which makes them visible.

    The file must still be committed up to where the update begins; bytes after that are leftovers and are overwritten.
    """
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError as error:
        raise NotFound(f"{os.fspath(path)}: no such sidecar; write a new one") from error
    except OSError as error:
        raise _failed(path, error) from error
    try:
        _check_base(descriptor, os.fspath(path), update)
        _write_all(descriptor, update.data, update.base)
        os.fsync(descriptor)
        _write_all(descriptor, layout.U64.pack(update.size), 0)
        os.fsync(descriptor)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        os.close(descriptor)


def _check_base(descriptor: int, path: str, update: Update) -> None:
    start = os.pread(descriptor, layout.U64.size, 0)
    if len(start) < layout.U64.size:
        raise damaged(path, "PARQUET_META_FILE_SIZE", 0, "the file is shorter than that field")
    (committed,) = layout.U64.unpack(start)
    if committed != update.base:
        problem = f"{committed} bytes are committed, the update begins at byte {update.base}"
        raise Conflict(f"{path}: {problem}; another update came first, read the sidecar again and make a new one")


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(path: str | os.PathLike[str], error: OSError) -> StorageError:
    return StorageError(f"{os.fspath(path)}: cannot be written: {error.strerror}; check space and permissions")

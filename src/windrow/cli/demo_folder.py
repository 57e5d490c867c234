"""The folder of the demo: a new one, or that of an earlier demo, of which only what the demo made is removed."""

from __future__ import annotations

import shutil
from pathlib import Path

from windrow.errors import AlreadyExists, NotFound, StorageError

__all__ = ["DEMO_TABLE", "SPARK_LOG", "prepare_folder"]

DEMO_TABLE = "metrics"
SPARK_LOG = "spark.log"
_MARK = "windrow-demo.txt"
_MARK_TEXT = (
    "`windrow demo` made this folder and may remove what it made: this file, spark.log, windrow.db*, _windrow.json and "
    "metrics/.\n"
)
_MADE = (_MARK, SPARK_LOG, "windrow.db", "windrow.db-wal", "windrow.db-shm", "_windrow.json", DEMO_TABLE)


def prepare_folder(folder: Path, *, overwrite: bool) -> None:
    """Make the folder and mark it; one that holds anything else than an earlier demo is refused."""
    try:
        if folder.exists() and any(folder.iterdir()):
            _clear(folder, overwrite=overwrite)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _MARK).write_text(_MARK_TEXT)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"the folder {folder} cannot be used: {error.strerror}; choose a folder that you may write to"
        ) from error


def _clear(folder: Path, *, overwrite: bool) -> None:
    if not (folder / _MARK).is_file():
        raise AlreadyExists(f"the folder {folder} is not empty and is no earlier demo; choose another")
    if not overwrite:
        raise AlreadyExists(f"the folder {folder} holds an earlier demo; add --overwrite to make it anew")
    others = [name for name in _tables(folder) if name != DEMO_TABLE]
    if others:
        raise AlreadyExists(
            f"the lake in {folder} has tables that the demo did not make: {', '.join(others)}; choose another folder"
        )
    for name in _MADE:
        _remove(folder / name)


def _tables(folder: Path) -> list[str]:
    from windrow.lake import connect

    try:
        with connect(folder, create=False) as lake:
            return [row.name for row in lake.tables()]
    except NotFound:  # a demo that was stopped early
        return []


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

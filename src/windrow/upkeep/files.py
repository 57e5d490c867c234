"""Which files of a table's folder are Windrow's own, and which split each belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from windrow.storage import ObjectInfo, Store

__all__ = ["own_files", "split_id_of"]

_FOLDER = r"partition_id=-?\d+/window_start=-?\d+/"
_NAME = re.compile(rf"{_FOLDER}(?P<data>[^_/][^/]*)\.parquet|(?:{_FOLDER}|_registered/)_(?P<sidecar>[^/]+)\.pm")
"""Data files and sidecars of splits, and the sidecars of registered files, which themselves lie elsewhere."""


def split_id_of(table: str, key: str) -> str | None:
    """Return the split that a file is the data or the sidecar of, by its name; None where the name is not ours.

    >>> split_id_of("metrics", "metrics/partition_id=0/window_start=900/_c1-1-0-0.pm")
    'c1-1-0-0'
    """
    match = _NAME.fullmatch(key.removeprefix(f"{table}/")) if key.startswith(f"{table}/") else None
    return None if match is None else match["data"] or match["sidecar"]


def own_files(store: Store, table: str) -> Iterator[tuple[str, ObjectInfo]]:
    """Yield the files in a table's folder that are named like ours, with the split that each belongs to."""
    for info in store.list(table):
        split_id = split_id_of(table, info.key)
        if split_id is not None:
            yield split_id, info

"""Which folders of a store hold tables of Windrow: what is left to see when the metastore is gone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from windrow.mirror.actions import PREFIX
from windrow.storage import Store

__all__ = ["dropped_key", "has_log", "is_dropped", "mark_dropped", "table_folders"]

_SPLIT = re.compile(r"[^/]+/partition_id=-?\d+/window_start=-?\d+/")


def table_folders(store: Store) -> Iterator[str]:
    """Yield the folders at the top of a store that hold a table, by name; a listing is begun for each folder."""
    after: str | None = None
    while (folder := _next_folder(store, after)) is not None:
        if _holds_table(store, folder):
            yield folder
        # The first character beyond a slash: whatever is in the folder comes before.
        after = f"{folder}0"


def has_log(store: Store, table: str) -> bool:
    """Whether the folder of a table holds a Delta log."""
    return next(iter(store.list(f"{table}/_delta_log")), None) is not None


def dropped_key(folder: str) -> str:
    """Return the object by which a folder says that its table was dropped, though the metastore may be lost."""
    return f"{folder}/_dropped.json"


def mark_dropped(store: Store, folder: str, table_id: str) -> None:
    """Let a folder say that its table was dropped."""
    store.put(dropped_key(folder), json.dumps({"table_id": table_id}).encode())


def is_dropped(store: Store, folder: str) -> bool:
    """Whether a folder says that its table was dropped."""
    key = dropped_key(folder)
    first = next(iter(store.list(folder, after=key[:-1])), None)
    return first is not None and first.key == key


def _next_folder(store: Store, after: str | None) -> str | None:
    keys = (info.key.partition("/") for info in store.list(after=after))
    return next((folder for folder, slash, _ in keys if slash), None)


def _holds_table(store: Store, folder: str) -> bool:
    """A Delta table of somebody else is none: it neither holds splits nor says that Windrow wrote it."""
    if is_dropped(store, folder):
        return False
    split = next(iter(store.list(folder, after=f"{folder}/partition_id")), None)
    if split is not None and _SPLIT.match(split.key):
        return True
    entry = next(iter(store.list(f"{folder}/_delta_log")), None)
    return entry is not None and f'"{PREFIX}'.encode() in store.get(entry.key)

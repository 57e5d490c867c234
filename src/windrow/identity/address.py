"""How the address of a lake is written down, so that two spellings of one place are one address."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from windrow.metastore import SqlMetastore
from windrow.storage import Store

__all__ = ["HERE", "has_own_address", "is_beside", "lake_address", "same_place"]

HERE = "."
"""The address of a lake whose metastore lies in its own folder: both move as one."""

_BORROWED = ("http:", "https:", "process:")
_SPELLINGS = {"s3a": "s3", "abfs": "abfss"}


def lake_address(store: Store, metastore: SqlMetastore | None) -> str:
    """Return where a lake is, as its metastore writes it down; without a metastore, one in its folder is meant."""
    if metastore is None or is_beside(store, metastore):
        return HERE
    if store.root is not None:
        return store.url
    parts = urlsplit(store.url)
    scheme = _SPELLINGS.get(parts.scheme, parts.scheme)
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def has_own_address(store: Store) -> bool:
    """Whether the store is a place of its own; through the others one reads, or tests, what lies elsewhere."""
    return not store.url.startswith(_BORROWED)


def is_beside(store: Store, metastore: SqlMetastore) -> bool:
    """Whether the metastore lies in the lake's own folder."""
    database = metastore.database
    if not database.is_sqlite or store.root is None:
        return False
    path = Path(database.url.database or "")
    # The file itself may be a link; it is the folder that is moved.
    return path.name == "windrow.db" and Path(os.path.realpath(path.parent)) == store.root


def same_place(one: str, other: str) -> bool:
    """Whether two addresses lead to one place: equal ones do, and folders that the system takes for one."""
    if one == other:
        return True
    if not one.startswith("file:") or not other.startswith("file:"):
        return False
    try:
        return _folder(one).samefile(_folder(other))
    except OSError:
        return False


def _folder(address: str) -> Path:
    return Path(unquote(urlsplit(address).path))

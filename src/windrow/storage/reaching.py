"""Files outside of a lake: what they are called, and how they are reached.

The key of a file of the lake is relative to it. A file that was registered stays where it is and has its whole URL
for a key, so that no key can be taken for one of the lake's own, which garbage collection may delete.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from windrow.storage.opening import open_store, options_for
from windrow.storage.protocol import Store

__all__ = ["is_foreign", "local_path", "reach", "reach_foreign", "reach_store", "url_of"]


def is_foreign(key: str) -> bool:
    """Say whether a key names a file outside of the lake."""
    return "://" in key


def url_of(name: str) -> str:
    """Return the URL of a local path, links followed, or of what is a URL already."""
    return name if is_foreign(name) and not name.startswith("file:") else Path(os.path.realpath(_path(name))).as_uri()


def local_path(key: str) -> Path | None:
    """Return the path of a foreign key that names a file of this machine."""
    return Path(_path(key)) if key.startswith("file:") else None


def reach(store: Store, key: str, options: Mapping[str, str] | None = None) -> tuple[Store, str]:
    """Return the store that holds a file and its key there; `store` is that of the lake, `options` open any other."""
    return reach_foreign(key, options) if is_foreign(key) else (store, key)


def reach_foreign(url: str, options: Mapping[str, str] | None = None) -> tuple[Store, str]:
    """Return a store that holds the file of a URL, and its key there."""
    path = local_path(url)
    if path is not None:
        return open_store(str(path.parent)), path.name
    folder, _, name = url.rpartition("/")
    return reach_store(folder, options), name


def reach_store(url: str, options: Mapping[str, str] | None = None) -> Store:
    """Open the store of an address with those of the lake's options that it takes."""
    return open_store(url, options=options_for(url, options))


def _path(name: str) -> str:
    return unquote(urlsplit(name).path) if name.startswith("file:") else name

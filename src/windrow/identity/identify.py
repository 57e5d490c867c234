"""A look at a lake and its metastore that changes neither."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import URL

from windrow.errors import ConfigError, NotFound, WindrowError
from windrow.identity.binding import Binding, examine
from windrow.identity.marker import BESIDE, Marker
from windrow.metastore import SqlMetastore
from windrow.metastore.database import plain_address
from windrow.storage import Store, reach_store

__all__ = ["beside", "identify"]


def identify(
    url: str | Path, *, metastore: str | None = None, store_options: Mapping[str, str] | None = None
) -> Binding:
    """Say how a lake stands to its metastore: whether it would be opened, and what could be accepted otherwise."""
    options = dict(store_options or {})
    store = reach_store(str(url), options)
    address = metastore or beside(store, options)
    marker = Marker.read(store)
    try:
        opened = SqlMetastore(address, create=False)
    except NotFound:
        return examine(store, marker, None, plain_address(address) if metastore else BESIDE)
    with opened:
        return examine(store, marker, opened)


def beside(store: Store, options: Mapping[str, str]) -> str:
    """Return the address of the database in a local lake's own folder; other lakes have none, and may name theirs."""
    if store.root is None:
        marker = _hurried_marker(store.url, options)
        which = f"its {marker.metastore}" if marker else "such as postgresql://user:password@host/database"
        raise ConfigError(
            f"metastore: a lake at {store.url} needs a database that many machines can reach, and none was named; "
            f"name one as the metastore, {which}"
        )
    # Spelled out, since a folder may be named with any character.
    return URL.create("sqlite", database=str(store.root / BESIDE)).render_as_string()


def _hurried_marker(url: str, options: Mapping[str, str]) -> Marker | None:
    """Return the marker of a lake that is refused in any case: nobody waits for a store that does not answer."""
    try:
        return Marker.read(reach_store(url, {**options, "max_retries": "0", "timeout": "3s"}))
    except WindrowError:
        return None

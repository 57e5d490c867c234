"""The store's own clock: files are dated by it, so their age is measured by it."""

from __future__ import annotations

from datetime import datetime

from windrow.errors import NotFound, StorageError
from windrow.storage import Store

__all__ = ["store_time"]


def store_time(store: Store, folder: str, token: str) -> datetime:
    """Return the time by the store's clock, as the date of an object that is written for that and taken away again.

    The answer to a write is not dated by every store; asking again is.
    """
    key = f"{folder}/_clock-{token}"
    store.put(key, b"")
    try:
        return store.head(key).modified
    except NotFound as error:
        raise StorageError(
            f"{key}: vanished while the store's clock was read; nothing was deleted, try again", retryable=True
        ) from error
    finally:
        store.delete(key)

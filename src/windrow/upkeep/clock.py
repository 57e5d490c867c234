"""The store's own clock: files are dated by it, so their age is measured by it."""

from __future__ import annotations

from datetime import datetime

from windrow.storage import Store

__all__ = ["clock_key", "store_time"]


def clock_key(table: str) -> str:
    """Return the object of a table's folder that is written to read the store's clock."""
    return f"{table}/_clock"


def store_time(store: Store, table: str) -> datetime:
    """Return the time by the store's clock, as the date of an object that is written for that.

    The answer to a write is not dated by every store; asking again is.
    """
    store.put(clock_key(table), b"")
    return store.head(clock_key(table)).modified

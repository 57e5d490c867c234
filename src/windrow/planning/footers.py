"""Footers of Parquet files, in one request of a file that nothing is known of."""

from __future__ import annotations

from windrow.parquet.tail import FIRST_READ
from windrow.sidecar.tails import stored_tail
from windrow.storage import ObjectInfo, Store, uri_of

__all__ = ["FIRST_CONTACT", "load_footer"]

FIRST_CONTACT = FIRST_READ
"""Files up to this size are fetched whole by the request for their footer."""


def load_footer(store: Store, key: str) -> tuple[bytes, ObjectInfo, bytes]:
    """The footer of a file (metadata, length, magic), what the object is, and the end of the file that was read."""
    tail, info = stored_tail(store, key, uri_of(store.url, key))
    return tail.footer, info, tail.data

"""Footers of Parquet files, in one request of a file that nothing is known of."""

from __future__ import annotations

from windrow.parquet.tail import FIRST_READ, complete_tail
from windrow.storage import ByteRange, ObjectInfo, Store, uri_of

__all__ = ["FIRST_CONTACT", "load_footer"]

FIRST_CONTACT = FIRST_READ
"""Files up to this size are fetched whole by the request for their footer."""


def load_footer(store: Store, key: str) -> tuple[bytes, ObjectInfo, bytes]:
    """The footer of a file (metadata, length, magic), what the object is, and the end of the file that was read."""
    tail, info = store.get_suffix(key, FIRST_CONTACT)

    def read(start: int, length: int) -> bytes:
        return store.get_ranges(key, [ByteRange(start, length)], expect=info.identity)[0]

    whole = complete_tail(tail, info.size, read, name=uri_of(store.url, key))
    return whole.footer, info, whole.data

"""Footers of Parquet files, in one request of a file that nothing is known of."""

from __future__ import annotations

from windrow.errors import Damaged
from windrow.parquet.footer import TAIL_SIZE, footer_length
from windrow.storage import ByteRange, ObjectInfo, Store, uri_of

__all__ = ["FIRST_CONTACT", "load_footer"]

FIRST_CONTACT = 64 * 2**10
"""The end of a file that is asked for before anything is known of it; most footers, and small files, are in it."""


def load_footer(store: Store, key: str) -> tuple[bytes, ObjectInfo, bytes]:
    """The footer of a file (metadata, length, magic), what the object is, and the end of the file that was read."""
    tail, info = store.get_suffix(key, FIRST_CONTACT)
    name = uri_of(store.url, key)
    if len(tail) < TAIL_SIZE:
        raise Damaged(f"{name}: {len(tail)} bytes are no Parquet file; the smallest has more")
    needed = footer_length(tail[-TAIL_SIZE:], name)
    if needed > info.size:
        raise Damaged(f"{name}: the footer claims {needed} bytes, the file has {info.size}; it is damaged")
    if needed > len(tail):
        rest = ByteRange(info.size - needed, needed - len(tail))
        [more] = store.get_ranges(key, [rest], expect=info.identity)
        tail = more + tail
    return tail[-needed:], info, tail

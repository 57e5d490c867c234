"""Footers of Parquet files through the cache: one request at first contact, none afterwards."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.cache import CacheKey, CacheKind, count_bypass
from windrow.errors import Damaged
from windrow.parquet.footer import MAGIC, TAIL_SIZE, footer_length
from windrow.scan.context import ReadContext
from windrow.scan.handles import Handle, StoredFile
from windrow.storage import ByteRange, ObjectInfo, Store, uri_of

__all__ = ["FIRST_CONTACT", "ParquetReaderBuilder", "footer_bytes", "load_footer"]

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


def footer_bytes(context: ReadContext, key: str, identity: str | None = None) -> bytes:
    """The complete footer of a file, from the cache if there is one."""
    if context.cache is None:
        return load_footer(context.store, key)[0]
    uri = uri_of(context.store.url, key)
    return context.cache.get(CacheKey.footer(uri, identity), lambda _: load_footer(context.store, key)[0])


def _least_size(metadata: pq.FileMetaData, footer: bytes) -> int:
    """A size that the file has at least, with all data inside: it is not worth a request to know it exactly."""
    if not metadata.num_row_groups:
        return len(MAGIC) + len(footer)
    last = metadata.row_group(metadata.num_row_groups - 1)
    chunks = [last.column(number) for number in range(last.num_columns)]
    starts = [each.dictionary_page_offset or each.data_page_offset for each in chunks]
    ends = [start + each.total_compressed_size for start, each in zip(starts, chunks, strict=True)]
    return max(ends, default=0) + len(footer)


class ParquetReaderBuilder:
    """Opens Parquet files with pyarrow; footers come from the cache of the read context."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context

    def open(self, key: str, *, identity: str | None = None) -> pq.ParquetFile:
        """Open a file of the context's store; `identity` tells contents apart where files are replaced in place."""
        footer = footer_bytes(self._context, key, identity)
        metadata = pq.read_metadata(pa.BufferReader(footer))
        file = StoredFile(self._context.store, key, _least_size(metadata, footer))
        return pq.ParquetFile(Handle(file), metadata=metadata)

    def open_file(self, file: BinaryIO) -> pq.ParquetFile:
        """Open a file that has no URI: nothing identifies it, so the cache is bypassed."""
        count_bypass(self._context.cache, CacheKind.DATA_FILE_FOOTER)
        return pq.ParquetFile(file)

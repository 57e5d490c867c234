"""Parquet files opened with pyarrow, whose footers come through the cache."""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.cache import CacheKey, CacheKind, count_bypass
from windrow.parquet.footer import MAGIC
from windrow.planning.footers import load_footer
from windrow.reading.read_context import ReadContext
from windrow.storage import uri_of
from windrow.storage.handles import Handle, StoredFile

__all__ = ["ParquetReaderBuilder", "footer_bytes"]


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

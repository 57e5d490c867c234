"""The footer of a Parquet file in a store."""

from __future__ import annotations

from windrow.parquet.footer import ParquetFooter
from windrow.sidecar.build import footer_of
from windrow.sidecar.convert import Read
from windrow.storage import ByteRange, ObjectInfo, Store

__all__ = ["footer_at", "reader_of"]


def reader_of(store: Store, key: str) -> Read:
    """Return a function that reads bytes of a file."""

    def read(start: int, length: int) -> bytes:
        return store.get_ranges(key, [ByteRange(start, length)])[0]

    return read


def footer_at(store: Store, key: str) -> tuple[ObjectInfo, ParquetFooter]:
    """Return what the store and what the file itself say of a Parquet file."""
    info = store.head(key)
    return info, footer_of(reader_of(store, key), info.size, name=key)

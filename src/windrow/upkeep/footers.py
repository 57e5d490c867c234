"""The footer of a Parquet file in a store."""

from __future__ import annotations

from windrow.parquet.footer import ParquetFooter
from windrow.sidecar.build import footer_of
from windrow.sidecar.tails import reader_of
from windrow.storage import ObjectInfo, Store

__all__ = ["footer_at"]


def footer_at(store: Store, key: str) -> tuple[ObjectInfo, ParquetFooter]:
    """Return what the store and what the file itself say of a Parquet file."""
    info = store.head(key)
    return info, footer_of(reader_of(store, key), info.size, name=key)

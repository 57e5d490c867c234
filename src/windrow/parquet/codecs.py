"""Bytes of pages, compressed and back.

A page is small, so what a call costs besides the work counts: for zstd the library `zstandard` needs a microsecond
where Arrow's codec needs sixteen. All other codecs are Arrow's.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from threading import local
from typing import Any

import pyarrow as pa
import zstandard

from windrow.errors import Damaged

__all__ = ["ZSTD_LEVEL", "Codec", "compressor", "decompressor"]

Buffer = Any

ZSTD_LEVEL = 3


class Codec(IntEnum):
    """How the pages of a chunk are compressed."""

    UNCOMPRESSED = 0
    SNAPPY = 1
    GZIP = 2
    BROTLI = 4
    ZSTD = 6
    LZ4_RAW = 7


def decompressor(codec: int) -> Callable[[Buffer, int], Buffer]:
    """What turns compressed bytes into so many, for use by the calling thread alone."""
    if codec == Codec.UNCOMPRESSED:
        return _unchanged
    if codec == Codec.ZSTD:
        return _of_this_thread("decompressor", zstandard.ZstdDecompressor).decompress  # type: ignore[no-any-return]
    return _arrow(codec).decompress  # type: ignore[no-any-return]


def compressor() -> Callable[[Buffer], bytes]:
    """What compresses bytes as all of our pages are, for use by the calling thread alone."""
    return _of_this_thread("compressor", _new_compressor).compress  # type: ignore[no-any-return]


def _new_compressor() -> zstandard.ZstdCompressor:
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL)


_threads = local()


def _of_this_thread(name: str, make: Callable[[], Any]) -> Any:
    """A context of the library, kept: making one takes as long as compressing a small page."""
    kept = getattr(_threads, name, None)
    if kept is None:
        kept = make()
        setattr(_threads, name, kept)
    return kept


@cache
def _arrow(codec: int) -> Any:
    return pa.Codec(Codec(codec).name.lower())


def _unchanged(data: Buffer, size: int) -> Buffer:
    if len(data) != size:
        raise Damaged(f"a page has {len(data)} bytes where its header says {size}; write the file again")
    return data

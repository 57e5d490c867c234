"""Bytes of pages, compressed and back, by Arrow. Whole columns of zstd pages go through `windrow.parquet.zstd`."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any

import pyarrow as pa

from windrow.errors import Damaged

__all__ = ["READABLE", "Codec", "decompressor"]

Buffer = Any


class Codec(IntEnum):
    """How the pages of a chunk are compressed."""

    UNCOMPRESSED = 0
    SNAPPY = 1
    GZIP = 2
    LZO = 3
    BROTLI = 4
    LZ4 = 5
    ZSTD = 6
    LZ4_RAW = 7


READABLE = tuple(codec for codec in Codec if codec not in (Codec.LZO, Codec.LZ4))
"""Codecs whose pages are read by us; pyarrow reads those of LZ4, and nobody those of LZO."""


def decompressor(codec: int) -> Callable[[Buffer, int], Buffer]:
    """What turns compressed bytes into so many, for use by the calling thread alone."""
    if codec == Codec.UNCOMPRESSED:
        return _unchanged
    return _arrow(codec).decompress  # type: ignore[no-any-return]


@cache
def _arrow(codec: int) -> Any:
    return pa.Codec(Codec(codec).name.lower())


def _unchanged(data: Buffer, size: int) -> Buffer:
    if len(data) != size:
        raise Damaged(f"a page has {len(data)} bytes where its header says {size}; write the file again")
    return data

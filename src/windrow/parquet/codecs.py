"""Bytes of pages, compressed and back.

A page is small, so what a call costs besides the work counts: zstd is handed to kernels as addresses of functions, so
that one call does all pages of a column. All other codecs are Arrow's.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from threading import local
from typing import Any, NamedTuple

import pyarrow as pa

from windrow.errors import Damaged

__all__ = ["ZSTD_LEVEL", "Codec", "Library", "decompressor", "zstd_compressor", "zstd_decompressor"]

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
    return _arrow(codec).decompress  # type: ignore[no-any-return]


class Library(NamedTuple):
    """A function of a library as kernels call it: its address, and that of a context for the calling thread alone."""

    function: int
    context: int


def zstd_compressor() -> Library:
    """What compresses bytes as all of our pages are."""
    return _of_this_thread("compressor", _new_compressor)


def zstd_decompressor() -> Library:
    """What decompresses zstd frames."""
    return _of_this_thread("decompressor", _new_decompressor)


def _new_compressor() -> tuple[Any, Library]:
    from zstandard._cffi import ffi, lib

    context = ffi.gc(lib.ZSTD_createCCtx(), lib.ZSTD_freeCCtx)
    if not context or lib.ZSTD_isError(lib.ZSTD_CCtx_setParameter(context, lib.ZSTD_c_compressionLevel, ZSTD_LEVEL)):
        raise MemoryError("zstd has no room for a context; free some memory")
    return context, _library(ffi, lib, "ZSTD_compress2", context)


def _new_decompressor() -> tuple[Any, Library]:
    from zstandard._cffi import ffi, lib

    context = ffi.gc(lib.ZSTD_createDCtx(), lib.ZSTD_freeDCtx)
    if not context:
        raise MemoryError("zstd has no room for a context; free some memory")
    return context, _library(ffi, lib, "ZSTD_decompressDCtx", context)


def _library(ffi: Any, lib: Any, name: str, context: Any) -> Library:
    return Library(int(ffi.cast("intptr_t", ffi.addressof(lib, name))), int(ffi.cast("intptr_t", context)))


_threads = local()


def _of_this_thread(name: str, make: Callable[[], tuple[Any, Library]]) -> Library:
    """A context of the library, kept: making one takes as long as compressing a small page."""
    kept: tuple[Any, Library] | None = getattr(_threads, name, None)
    if kept is None:
        kept = make()
        setattr(_threads, name, kept)
    return kept[1]


@cache
def _arrow(codec: int) -> Any:
    return pa.Codec(Codec(codec).name.lower())


def _unchanged(data: Buffer, size: int) -> Buffer:
    if len(data) != size:
        raise Damaged(f"a page has {len(data)} bytes where its header says {size}; write the file again")
    return data

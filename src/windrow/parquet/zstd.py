"""zstd as kernels call it: by the address of a function and that of a context.

What it buys: one compiled call does all pages of a column, where a call of Arrow's codec costs 16 microseconds a page
besides the work, and tiny inputs are all pages.

The trick: addresses are those of the functions inside of `zstandard._cffi`, a private module of the `zstandard`
package, and some builds of that come without it. Where it or a name in it is missing, or with the trick off, kernels
get the addresses of functions in Python that call Arrow's codec for each page.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import local
from typing import Any, TypeAlias, cast

import pyarrow as pa

from windrow.tricks import Trick, is_on

__all__ = ["ZSTD_LEVEL", "Library", "zstd_compressor", "zstd_decompressor"]

ZSTD_LEVEL = 3

_SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)
"""Context, target and room in it, source and its bytes; gives how many bytes were written, or a negative number."""


Library: TypeAlias = tuple[int, int]
"""A function of a library as kernels call it: its address, and that of a context for the calling thread alone.

A plain tuple, as kernels take them.
"""


class _Contexts(local):
    """Of one thread; making a context takes as long as compressing a small page."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[Any, Library]] = {}


_contexts = _Contexts()


def zstd_compressor() -> Library:
    """What compresses bytes as all of our pages are."""
    names = _names()
    return (_plain(_compress), 0) if names is None else _of_this_thread("ZSTD_compress2", names)


def zstd_decompressor() -> Library:
    """What decompresses zstd frames."""
    names = _names()
    return (_plain(_decompress), 0) if names is None else _of_this_thread("ZSTD_decompressDCtx", names)


# ---- by the functions of the package


def _names() -> tuple[Any, Any] | None:
    """The package's own way into the library; None where there is none that we know."""
    if not is_on(Trick.ZSTD_POINTERS):
        return None
    return _loaded()


@cache
def _loaded() -> tuple[Any, Any] | None:
    try:
        from zstandard._cffi import ffi, lib
    except ImportError:
        return None
    needed = ("ZSTD_createCCtx", "ZSTD_createDCtx", "ZSTD_compress2", "ZSTD_decompressDCtx", "ZSTD_CCtx_setParameter")
    return (ffi, lib) if all(hasattr(lib, name) for name in needed) else None


def _of_this_thread(function: str, names: tuple[Any, Any]) -> Library:
    made = _contexts.made.get(function)
    if made is None:
        ffi, lib = names
        context = _compressing(ffi, lib) if function == "ZSTD_compress2" else _decompressing(ffi, lib)
        address = int(ffi.cast("intptr_t", ffi.addressof(lib, function)))
        made = _contexts.made[function] = context, (address, int(ffi.cast("intptr_t", context)))
    return made[1]


def _compressing(ffi: Any, lib: Any) -> Any:
    context = ffi.gc(lib.ZSTD_createCCtx(), lib.ZSTD_freeCCtx)
    if not context or lib.ZSTD_isError(lib.ZSTD_CCtx_setParameter(context, lib.ZSTD_c_compressionLevel, ZSTD_LEVEL)):
        raise MemoryError("zstd has no room for a context; free some memory")
    return context


def _decompressing(ffi: Any, lib: Any) -> Any:
    context = ffi.gc(lib.ZSTD_createDCtx(), lib.ZSTD_freeDCtx)
    if not context:
        raise MemoryError("zstd has no room for a context; free some memory")
    return context


# ---- by Arrow's codec, page by page


@cache
def _callback(function: Callable[..., int]) -> Any:
    return _SIGNATURE(function)


def _plain(function: Callable[..., int]) -> int:
    """The address at which compiled code calls a function of Python."""
    return cast("int", ctypes.cast(_callback(function), ctypes.c_void_p).value)


def _compress(_context: int, target: int, room: int, source: int, size: int) -> int:
    try:
        frame = _codec().compress(pa.foreign_buffer(source, size), asbytes=True)
    except Exception:  # no error passes through compiled code
        return -1
    return _put(frame, target, room)


def _decompress(_context: int, target: int, room: int, source: int, size: int) -> int:
    try:
        page = _codec().decompress(pa.foreign_buffer(source, size), room, asbytes=True)
    except Exception:  # no error passes through compiled code
        return -1
    return _put(page, target, room)


def _put(data: bytes, target: int, room: int) -> int:
    if len(data) > room:
        return -1
    ctypes.memmove(target, data, len(data))
    return len(data)


@cache
def _codec() -> Any:
    return pa.Codec("zstd", compression_level=ZSTD_LEVEL)

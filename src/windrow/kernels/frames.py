"""Bytes of pages, compressed and back, many pages by one call.

A compression library is called by the address of its function and that of a context, which the caller keeps to himself
while the call lasts. Functions of both ways take the same: context, target and room in it, source and its bytes; they
return how many bytes were written, or a number that no room has.

What it buys: 16 microseconds a page, which a call of Arrow's codec costs besides the work.

The trick: intrinsics that emit LLVM code by `llvmlite`, a call of an address among them. A wrong address or room ends
the process. The plain way is that of `windrow.parquet.zstd`: the address is that of a function in Python, which does
one page by Arrow.
"""

# Kernels hand each other bare memory and places in it, one by one: an object that holds them would cost more than they.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np import arrayobj

from windrow.kernels.compiled import kernel

__all__ = ["bound", "call", "copy", "inflate"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

# The compiler has no type hints.
_ir, _cgutils, _arrayobj, _NUMBER = (cast("Any", each) for each in (ir, cgutils, arrayobj, types.int64))


def _places(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The memory of a target and of a source, each from a place on."""
    for array, place in ((0, 1), (-3, -2)):
        data = _arrayobj.make_array(signature.args[array])(context, builder, arguments[array]).data
        yield builder.gep(data, [arguments[place]])


def _call(
    _typing: Any, out: Any, _at: Any, _room: Any, _function: Any, _state: Any, source: Any, _first: Any, _size: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, room, function, state, _, _, size = arguments
        target, origin = _places(context, builder, signature, arguments)
        byte, word = _ir.IntType(8).as_pointer(), _ir.IntType(64)
        takes = _ir.FunctionType(word, [byte, byte, word, byte, word]).as_pointer()
        given = [builder.inttoptr(state, byte), target, room, origin, size]
        return builder.call(builder.inttoptr(function, takes), given)

    return _NUMBER(out, *[_NUMBER] * 4, source, *[_NUMBER] * 2), generate


def _copy(_typing: Any, out: Any, _at: Any, source: Any, _first: Any, _size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _cgutils.raw_memcpy(builder, *_places(context, builder, signature, arguments), arguments[-1], 1)
        return builder.add(arguments[1], arguments[-1])

    return _NUMBER(out, _NUMBER, source, _NUMBER, _NUMBER), generate


call = cast("Callable[[Bytes, int, int, int, int, Bytes, int, int], int]", intrinsic(_call))
"""Call a function of a compression library: from `size` bytes of a source to at most `room` bytes of a target."""

copy = cast("Callable[[Bytes, int, Bytes, int, int], int]", intrinsic(_copy))
"""Copy `size` bytes of a source to a place of a target, at once; the byte after them."""


@kernel
def bound(size: int) -> int:
    """The room in which a frame of so many bytes surely fits."""
    return size + (size >> 8) + 256


@kernel
def inflate(
    library: tuple[int, int],
    source: Bytes,
    pages: tuple[Longs, Longs, Longs, Longs, npt.NDArray[np.bool_]],
    out: Bytes,
) -> int:
    """Lay out decompressed pages behind each other; the page in trouble or -1.

    `pages` says where each begins, how many of its bytes are levels, which are never compressed, how many bytes it has
    in all, and how many when decompressed, and whether it is stored as it is. Every page lies within the source.
    """
    bodies, levels, sizes, whole, stored = pages
    at = 0
    for page in range(bodies.size):
        body, level = bodies[page], levels[page]
        at = copy(out, at, source, body, level)
        left, wanted = sizes[page] - level, whole[page] - level
        if wanted and stored[page]:
            if left != wanted:
                return page
            copy(out, at, source, body + level, wanted)
        elif wanted and call(out, at, wanted, library[0], library[1], source, body + level, left) != wanted:
            return page
        at += wanted
    return -1

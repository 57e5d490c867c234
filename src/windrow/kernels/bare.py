"""Arrays as bare memory, inside of kernels.

What it buys: merges of 6 x 150,000 rows take a fifth more CPU with arrays, since each call counts references to them.

The trick: intrinsics that emit LLVM code by `llvmlite`. An index out of bounds reads or writes whatever lies there, so
a kernel checks each one itself. The plain way are arrays, with a check of every access: it is taken where
NUMBA_BOUNDSCHECK is set when kernels are compiled, and tests feed it damaged bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import cgutils, config
from numba.extending import intrinsic
from numba.np import arrayobj

from windrow.kernels.compiled import kernel

__all__ = ["load", "memory"]

Array = TypeVar("Array")

# The compiler has no type hints.
_numba, _cgutils, _arrayobj, _config, _ir = (cast("Any", module) for module in (numba, cgutils, arrayobj, config, ir))


def _memory(_typing: Any, array: Any) -> Any:
    """The memory of a contiguous one-dimensional array: no owner, no length, indexed by numbers from 0.

    Between small functions that all work on the same few arrays, handing over arrays costs more than the work: each
    call counts references. Memory is one pointer. Whoever uses it checks every index himself and keeps the array alive.
    When kernels are compiled with bounds checks on (NUMBA_BOUNDSCHECK), it stays an array, so that those checks see
    every access.
    """
    checked = bool(_config.BOUNDSCHECK)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = _arrayobj.make_array(signature.args[0])(context, builder, arguments[0])
        if not checked:
            return struct.data
        struct.meminfo = _cgutils.get_null_value(struct.meminfo.type)
        return struct._getvalue()  # noqa: SLF001

    return (array if checked else _numba.types.CPointer(array.dtype))(array), generate


memory = cast("Callable[[Array], Array]", intrinsic(_memory))


def _load(_typing: Any, words: Any, _at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, at = arguments
        if not isinstance(signature.args[0], _numba.types.CPointer):
            data = _arrayobj.make_array(signature.args[0])(context, builder, data).data
        place = builder.gep(builder.bitcast(data, _ir.IntType(8).as_pointer()), [at])
        found = builder.load(builder.bitcast(place, _ir.IntType(64).as_pointer()))
        found.align = 1
        return found

    return _numba.types.uint64(words, _numba.types.int64), generate


@kernel
def _checked_load(words: npt.NDArray[np.uint64], at: int) -> np.uint64:
    word, shift = at >> 3, np.uint64((at & 7) * 8)
    # a shift by 64 would be none at all
    return words[word] >> shift | words[word + 1] << (np.uint64(63) - shift) << np.uint64(1)  # type: ignore[no-any-return]


load = cast(
    "Callable[[npt.NDArray[np.uint64], int], np.uint64]", _checked_load if _config.BOUNDSCHECK else intrinsic(_load)
)
"""The eight bytes of some words that begin at a byte, as one word; with bounds checks on, out of the two it lies in."""

"""How kernels are compiled: cached on disk, without the interpreter lock, and on bare memory where that counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import cgutils, config
from numba.extending import intrinsic
from numba.np import arrayobj

__all__ = ["kernel", "memory"]

Function = TypeVar("Function", bound=Callable[..., object])
Array = TypeVar("Array")

# The compiler has no type hints.
_numba, _cgutils, _arrayobj, _config = (cast("Any", module) for module in (numba, cgutils, arrayobj, config))


def kernel(function: Function) -> Function:
    """Compile a function at its first call; the signature that people and type checkers see stays as written."""
    return cast("Function", _numba.njit(cache=True, nogil=True)(function))


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

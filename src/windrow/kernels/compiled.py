"""How kernels are compiled: cached on disk, and without the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core.compiler_lock import global_compiler_lock

from windrow.kernels import notice as _notice  # noqa: F401  it listens from the first kernel on

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., object])

# The compiler has no type hints.
_numba = cast("Any", numba)

_lock = cast("Any", global_compiler_lock)
# A child that is forked while another thread compiles would wait for that thread for ever.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


def kernel(function: Function) -> Function:
    """Compile a function at its first call; the signature that people and type checkers see stays as written."""
    return cast("Function", _numba.njit(cache=True, nogil=True)(function))

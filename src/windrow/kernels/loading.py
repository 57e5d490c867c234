"""Loads kernels that an earlier process compiled, and tells which ones are compiled already.

A process that is forked from one that loaded them finds them ready.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import windrow.kernels
from windrow.kernels.index import cached_signatures

__all__ = ["SECONDS_TO_COMPILE", "compiled_count", "load_kernels", "seconds_to_compile"]

SECONDS_TO_COMPILE = 30.0
"""What the kernels of a merge, those that it calls included, take to compile on a small machine."""


def load_kernels() -> int:
    """Load all that the compiler's cache holds and return how many; nothing is compiled."""
    return sum(map(_load, _kernels()))


def compiled_count() -> int:
    """How many signatures of kernels the compiler's cache holds."""
    return sum(len(cached_signatures(kernel)) for kernel in _kernels())


def seconds_to_compile(module: str) -> float:
    """About how long the first use of the kernels of a module compiles; 0 when an earlier use did.

    >>> seconds_to_compile("merge") in (0.0, SECONDS_TO_COMPILE)
    True
    """
    return 0.0 if any(map(cached_signatures, _kernels_of(module))) else SECONDS_TO_COMPILE


def _kernels() -> list[Any]:
    return [kernel for each in iter_modules(windrow.kernels.__path__) for kernel in _kernels_of(each.name)]


def _kernels_of(module: str) -> list[Any]:
    from numba.core.dispatcher import Dispatcher

    name = f"{windrow.kernels.__name__}.{module}"
    things = vars(import_module(name)).values()
    return [thing for thing in things if isinstance(thing, Dispatcher) and thing.__module__ == name]


def _load(kernel: Any) -> int:
    signatures = cached_signatures(kernel)
    for signature in signatures:
        kernel.compile(signature)
    return len(signatures)

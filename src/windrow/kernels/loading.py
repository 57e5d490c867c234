"""Loads kernels that an earlier process compiled, so that a process that is forked from this one finds them ready."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import windrow.kernels

__all__ = ["load_kernels"]


def load_kernels() -> int:
    """Load all that the compiler's cache holds and return how many; nothing is compiled."""
    return sum(map(_load, _kernels()))


def _kernels() -> list[Any]:
    from numba.core.dispatcher import Dispatcher

    modules = [
        import_module(f"{windrow.kernels.__name__}.{each.name}") for each in iter_modules(windrow.kernels.__path__)
    ]
    found = {id(thing): thing for module in modules for thing in vars(module).values()}
    return [thing for thing in found.values() if isinstance(thing, Dispatcher)]


def _load(kernel: Any) -> int:
    # The cache has no other way to tell which signatures it holds.
    signatures = [key[0] for key in kernel._cache._cache_file._load_index()]  # noqa: SLF001
    for signature in signatures:
        kernel.compile(signature)
    return len(signatures)

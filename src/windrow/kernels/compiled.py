"""Kernels as they are called: those that were compiled when the package was built, or, for tests, as plain Python.

`WINDROW_KERNELS` chooses: `compiled`, which is the default; `checked`, the same with a check of every access to an
array; `plain`, the functions as they are written, which are their own oracle and can be stepped through.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar, cast
from zipimport import zipimporter

from windrow.errors import ConfigError

__all__ = ["KERNELS", "NATIVES", "VARIABLE", "digest", "kernel", "native"]

Function = TypeVar("Function", bound=Callable[..., Any])

VARIABLE = "WINDROW_KERNELS"
KERNELS: set[Callable[..., Any]] = set()
"""All kernels of the modules that are loaded, as they are written."""
NATIVES: set[Callable[..., Any]] = set()
"""The functions that are written in C besides."""

_MODULES = {"compiled": "windrow.kernels._compiled", "checked": "windrow.kernels._checked", "plain": None}


def _load() -> ModuleType | None:
    choice = os.environ.get(VARIABLE, "compiled")
    if choice not in _MODULES:
        raise ConfigError(f"{VARIABLE}: there is no {choice!r}; choose from {', '.join(_MODULES)}")
    name = _MODULES[choice]
    try:
        return _imported(name) if name else None
    except ImportError as error:
        message = f"the {choice} kernels of this installation cannot be loaded ({error}); install the package anew"
        raise ImportError(f"{message}, in a checkout with `make kernels`") from error


def _imported(name: str) -> ModuleType:
    """A library is never loaded from within an archive, such as Spark hands to its workers, but from a copy of it."""
    around: object = __spec__.loader
    if not isinstance(around, zipimporter):
        return import_module(name)
    from importlib.util import module_from_spec, spec_from_file_location
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(prefix="windrow-", suffix=".so") as copy:
        copy.write(around.get_data(f"{around.archive}/{name.replace('.', '/')}.abi3.so"))
        copy.flush()
        spec = spec_from_file_location(name, copy.name)
        if spec is None or spec.loader is None:
            raise ImportError(f"{copy.name} is no library")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


_module = _load()


def kernel(function: Function) -> Function:
    """The compiled function, where there is one; the signature that people and type checkers see stays as written."""
    KERNELS.add(function)
    name = f"{function.__module__.rpartition('.')[2]}_{function.__name__}"
    return cast("Function", getattr(_module, name, function))


def native(function: Function) -> Function:
    """A function that kernels call and that is written in C too, where one machine instruction does what it does."""
    NATIVES.add(function)
    return function


def digest() -> str:
    """The digest of the sources that the kernels were compiled from; empty for plain ones."""
    return cast("str", _module.digest()) if _module else ""

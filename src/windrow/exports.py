"""The public names of the package, loaded when they are first asked for.

The command line answers `--help` without loading a single engine, since importing the package loads none.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["__dir__", "__getattr__"]

_HOMES = {"Lake": "windrow.lake", "Table": "windrow.table", "connect": "windrow.lake"}


def __dir__() -> list[str]:
    """List the public names of the package, and no room of its inside."""
    return sorted(import_module("windrow").__all__)


def __getattr__(name: str) -> Any:
    """Return a public name of the package from the module where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module 'windrow' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

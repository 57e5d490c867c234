"""The source in C of all kernels."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from native.program import Program
from native.wrappers import can_be_called, method_name, wrapper

__all__ = ["digest", "kernels_source", "source_of"]

HERE = Path(__file__).parent
SOURCES = HERE.parent / "src"
ROOM = SOURCES / "windrow" / "kernels"


def digest() -> str:
    """What the sources are: those of kernels and of what translates them."""
    made = hashlib.sha256()
    for path in sorted([*ROOM.glob("*.py"), *HERE.glob("*.py"), *HERE.glob("*.[ch]")]):
        made.update(path.name.encode() + b"\0" + path.read_bytes())
    return made.hexdigest()


def _modules() -> list[ModuleType]:
    """All modules of kernels, as plain Python.

    The package that is being built is not installed yet: nothing of it is imported but this room and what it stands on.
    """
    os.environ["WINDROW_KERNELS"] = "plain"
    package = ModuleType("windrow")
    package.__path__ = [str(SOURCES / "windrow")]
    sys.modules["windrow"] = package
    return [importlib.import_module(f"windrow.kernels.{path.stem}") for path in sorted(ROOM.glob("[!_]*.py"))]


def kernels_source(*names: str) -> str:
    """Public kernels, all or those of some names, and what they call, in C."""
    modules = _modules()
    compiled = importlib.import_module("windrow.kernels.compiled")
    public = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    wanted = [each for each in public if each in compiled.KERNELS and (not names or method_name(each) in names)]
    return source_of(Program(compiled.KERNELS, compiled.NATIVES), wanted)


def source_of(program: Program, functions: Iterable[Callable[..., Any]]) -> str:
    """Functions that Python can call, and what they call, in C."""
    wrappers = [wrapper(program, each) for each in functions if can_be_called(each)]
    methods = [f'{{"{name}", py_{name}, METH_FASTCALL, NULL}},' for name, _ in wrappers]
    return "\n\n".join(
        [
            '#include "runtime.h"',
            "\n".join(dict.fromkeys(program.types)),
            '#include "native.h"',
            '#include "calls.h"',
            "\n".join(program.tables),
            "\n".join(program.heads),
            *program.functions,
            *(text for _, text in wrappers),
            "PyMethodDef KERNELS_NAME[] = {\n" + "\n".join(methods) + "\n{NULL, NULL, 0, NULL}};\n",
        ]
    )


def main() -> None:
    """Write the source to a file: of all kernels, or of those that are named."""
    Path(sys.argv[1]).write_text(kernels_source(*sys.argv[2:]), encoding="utf-8")


if __name__ == "__main__":
    main()

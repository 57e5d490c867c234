"""The source in C of all kernels."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from native.program import Program
from native.wrappers import can_be_called, wrapper

__all__ = ["digest", "kernels_source"]

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
    program = Program(compiled.KERNELS, compiled.NATIVES)
    wrappers = []
    for module in modules:
        for name in getattr(module, "__all__", ()):
            function = getattr(module, name)
            is_wanted = not names or f"{module.__name__.rpartition('.')[2]}_{name}" in names
            if is_wanted and function in compiled.KERNELS and can_be_called(function):
                wrappers.append(wrapper(program, function))
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

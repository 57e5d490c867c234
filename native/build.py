"""Kernels are built by the C compiler there is, or by the one that the package `ziglang` brings."""

from __future__ import annotations

import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from native.source import HERE, ROOM, digest

__all__ = ["CHECKED", "COMPILED", "build", "compiler", "is_built"]

COMPILED, CHECKED = "_compiled", "_checked"
_FLAGS = [
    "-std=gnu11",
    "-O3",
    "-funroll-loops",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
]
_CHECKS = ["-DWINDROW_CHECKED", "-O1", "-fno-unroll-loops"]
_BASELINE = ["-msse4.2", "-mpopcnt"]
_WIDE = [*_BASELINE, "-mavx2", "-mbmi", "-mbmi2"]
_WIDEST = [*_WIDE, "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl"]
"""Those of x86-64-v2, v3 and v4 by which kernels gain; older compilers know the levels by no name."""
_GAIN_BY_WIDEST = ("sums_sum_values",)
"""64-bit products of whole vectors make it 2.5 times as fast; most other kernels gain nothing, some lose."""


def compiler() -> list[str] | None:
    """The command of the C compiler: that of CC, that of Python, or any that is installed."""
    for command in (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"):
        words = shlex.split(command or "")
        if words and shutil.which(words[0]):
            return words
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None


def path_of(name: str) -> Path:
    """Where a module of kernels lies."""
    return ROOM / f"{name}.abi3.so"


def is_built(name: str) -> bool:
    """Whether a module is that of today's sources."""
    path = path_of(name)
    return path.exists() and digest().encode() in path.read_bytes()


def build(*names: str, flags: tuple[str, ...] = ()) -> list[Path]:
    """Build modules that are not those of today's sources; all of them."""
    missing = [name for name in names if not is_built(name)]
    if missing:
        command = compiler()
        if command is None:
            raise SystemExit(
                "there is no C compiler to build kernels with: install one, or `pip install ziglang`, which is one"
            )
        with TemporaryDirectory(prefix="windrow-kernels-") as folder:
            # in a process of its own: kernels are imported as plain Python
            translate = [sys.executable, "-m", "native.source"]
            _run([*translate, str(Path(folder, "kernels.c"))], folder)
            _run([*translate, str(Path(folder, "few.c")), *_GAIN_BY_WIDEST], folder)
            for name in missing:
                _build(command, name, Path(folder), list(flags))
    return [path_of(name) for name in names]


def _build(command: list[str], name: str, folder: Path, more: list[str]) -> None:
    """Compile all parts of a module at once, and link them."""
    is_wide = platform.machine() in ("x86_64", "AMD64") and name == COMPILED
    flags = [*_FLAGS, f"-I{HERE}", *(_BASELINE if is_wide else []), *(_CHECKS if name == CHECKED else []), *more]
    about = [f"-DMODULE={name}", f'-DDIGEST="{digest()}"', *(["-DWIDE"] if is_wide else [])]
    source = str(folder / "kernels.c")
    parts = [
        [str(HERE / "module.c"), "-o", str(folder / "module.o"), *flags, *about],
        [source, "-o", str(folder / "base.o"), *flags, "-DKERNELS_NAME=kernels_base"],
    ]
    if is_wide:
        few = str(folder / "few.c")
        parts.append([source, "-o", str(folder / "wide.o"), *flags, *_WIDE, "-DKERNELS_NAME=kernels_wide"])
        parts.append([few, "-o", str(folder / "widest.o"), *flags, *_WIDEST, "-DKERNELS_NAME=kernels_widest"])
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda part: _run([*command, "-c", *part], folder), parts))
    linking = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    made = folder / f"{name}.so"
    _run([*command, *linking, *more, "-o", str(made), *(part[2] for part in parts), "-lm"], folder)
    # another process may have the old one in memory
    staged = path_of(name).with_suffix(f".{os.getpid()}")
    shutil.copyfile(made, staged)
    staged.chmod(0o755)
    staged.replace(path_of(name))


def _run(command: list[str], folder: str | Path) -> None:
    # zig looks for a cache at home, where there may be none, or none that can be written
    caches = {name: str(Path(folder, "zig")) for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
    environment = {**os.environ, **caches}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent, env=environment)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)} failed:\n{done.stderr}")

"""Builds the kernels with the package: in a wheel, and in place for an editable installation."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))

from native.build import COMPILED, build, compiler  # noqa: E402


class KernelsHook(BuildHookInterface):  # type: ignore[misc]
    """Compiled kernels are one module for all versions of Python from 3.11 on, since they use its stable ABI alone."""

    def dependencies(self) -> list[str]:
        """A compiler, where there is none."""
        return [] if compiler() else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Build, and name the wheel for this machine."""
        if self.target_name != "wheel":
            return
        (path,) = build(COMPILED)
        machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{machine}"
        build_data["artifacts"].append(str(path.relative_to(ROOT)))

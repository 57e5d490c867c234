"""The samples as a module, compiled as kernels are: without checks, and with a check of every access."""

from __future__ import annotations

import importlib.util
import subprocess

import pytest
from native.build import _CHECKS, _FLAGS, compiler
from native.program import Program
from native.source import HERE, source_of
from tests.native import accepted


@pytest.fixture(scope="session", params=["compiled", "checked"])
def samples(request, tmp_path_factory):
    return compile_samples(tmp_path_factory.mktemp("native"), _CHECKS if request.param == "checked" else [])


@pytest.fixture(scope="session")
def checked(tmp_path_factory):
    return compile_samples(tmp_path_factory.mktemp("native"), _CHECKS)


def compile_samples(folder, flags):
    source, made = folder / "samples.c", folder / "samples.so"
    source.write_text(source_of(Program(set(accepted.FUNCTIONS), set()), accepted.FUNCTIONS))
    about = ["-DMODULE=samples", '-DDIGEST="of samples"', "-DKERNELS_NAME=kernels_base", "-O1"]
    command = [*compiler(), *_FLAGS, *flags, f"-I{HERE}", *about, "-shared", str(HERE / "module.c"), str(source)]
    subprocess.run([*command, "-o", str(made), "-lm"], check=True, capture_output=True)
    spec = importlib.util.spec_from_file_location("samples", made)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Samples(module)


class Samples:
    """The compiled functions by the names that they have in Python."""

    def __init__(self, module):
        self.digest = module.digest
        for each in accepted.FUNCTIONS:
            setattr(self, each.__name__, getattr(module, f"accepted_{each.__name__}"))

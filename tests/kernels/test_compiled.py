"""Kernels are compiled from the sources that are there, and do what these do as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import BuiltinFunctionType

import numpy as np
import pytest
from native.build import CHECKED, COMPILED, is_built

import windrow.kernels
from windrow.kernels import compiled
from windrow.kernels.merge import combine_runs
from windrow.kernels.native import bits_set, fold, leading_zeros, load
from windrow.kernels.runs import take_fixed
from windrow.kernels.texts import hash_texts

ROOT = Path(__file__).parents[2]
MODULES = [each.name for each in iter_modules(windrow.kernels.__path__) if not each.name.startswith("_")]
ONLY_IN_KERNELS = {"signed"}
"""Its argument has one of several types, which Python cannot choose from."""


def run(*arguments, **environment):
    """Python in a process of its own; both of what it prints, and whether it ended well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("name", [COMPILED, CHECKED])
def test_the_modules_are_built_from_the_sources_that_are_there(name):
    assert is_built(name), "kernels were changed since they were compiled: run `make kernels`"


@pytest.mark.parametrize("name", MODULES)
def test_every_kernel_that_is_public_is_compiled(name):
    module = import_module(f"windrow.kernels.{name}")
    written = {each.__name__ for each in compiled.KERNELS if each.__module__ == module.__name__}
    for each in written.intersection(getattr(module, "__all__", ())) - ONLY_IN_KERNELS:
        assert isinstance(getattr(module, each), BuiltinFunctionType), each


SUITE = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/kernels", f"--ignore={__file__}"]


@pytest.mark.parametrize(
    ("environment", "options"),
    [
        ({compiled.VARIABLE: "plain"}, ["-W", "ignore:overflow encountered", "--ignore=tests/kernels/test_thrift.py"]),
        ({compiled.VARIABLE: "checked"}, []),
        ({"WINDROW_KERNELS_LEVEL": "2"}, []),
        ({"WINDROW_KERNELS_LEVEL": "3"}, []),
    ],
    ids=["plain", "checked", "level 2", "level 3"],
)
def test_the_suite_passes_in_every_way_that_kernels_run(environment, options):
    code, out = run(*SUITE, *options, **environment)
    assert code == 0, out


def test_another_way_is_an_error_that_lists_those_that_there_are():
    code, out = run("-c", "import windrow.kernels.runs", **{compiled.VARIABLE: "fast"})
    assert code != 0
    assert "there is no 'fast'; choose from compiled, checked, plain" in out


OUTSIDE = """
import numpy as np
from windrow.kernels.runs import take_fixed
take_fixed(np.array([3], np.int32), np.zeros(3, np.uint64), np.zeros(1, np.uint64))
"""


def test_an_access_out_of_bounds_is_an_error_where_all_are_checked():
    code, out = run("-c", OUTSIDE, **{compiled.VARIABLE: "checked"})
    assert code != 0
    assert "IndexError: runs_take_fixed: an index is out of bounds" in out


def test_arrays_of_other_types_or_shapes_are_refused():
    rows, values = np.zeros(1, np.int32), np.zeros(3, np.uint64)
    with pytest.raises(TypeError, match="runs_take_fixed is not compiled for arrays of the types i4 f8 u8"):
        take_fixed(rows, values.astype(np.float64), values)
    with pytest.raises(TypeError, match="an array of 2 dimensions is given where 1 are expected"):
        take_fixed(rows, values.reshape(1, 3), values)
    with pytest.raises(ValueError, match="not C-contiguous"):
        take_fixed(rows, np.zeros(6, np.uint64)[::2], values)
    with pytest.raises(TypeError, match="runs_take_fixed takes 3 arguments, 2 were given"):
        take_fixed(rows, values)
    with pytest.raises(TypeError, match="not compiled for arrays"):
        take_fixed(rows, values.astype(">u8"), values)


def test_what_cannot_be_written_to_is_refused():
    rows, values = np.zeros(1, np.int32), np.zeros(3, np.uint64)
    values.flags.writeable = False
    take_fixed(rows, values, np.zeros(1, np.uint64))
    with pytest.raises(ValueError, match="read-only"):
        take_fixed(rows, values, values)
    nothing, ends = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    ends.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        combine_runs(nothing, np.zeros(0, np.int64), nothing, np.zeros(0, np.int64), 1, nothing, ends)


THREADS = """
import threading, time
import numpy as np
from windrow.kernels.texts import hash_texts
words = np.zeros(1 << 16, np.uint64)
texts, out = np.zeros(2000, np.int64), np.zeros(2000, np.uint64)
lengths = np.full(2000, 1 << 18)
thread = threading.Thread(target=hash_texts, args=(words, texts, lengths, out))
turns = 0
thread.start()
while thread.is_alive():
    turns += 1
    time.sleep(0)
print(turns > 100)
"""


def test_kernels_run_without_the_interpreter_lock():
    assert run("-c", THREADS) == (0, "True\n")


def test_what_is_written_in_c_too_does_what_its_twin_does():
    data = np.random.default_rng(1).integers(0, 256, 400).astype(np.uint8)
    for at in range(24):
        assert load(data.view(np.uint64), at) == int.from_bytes(data[at : at + 8].tobytes(), "little")
    assert [leading_zeros(np.uint64(value)) for value in (0, 1, 2**63)] == [64, 63, 0]
    assert [bits_set(np.uint64(value)) for value in (0, 7, 2**64 - 1)] == [0, 3, 64]


def test_blocks_that_are_folded_have_the_remainder_that_they_had():
    import zlib

    data = np.random.default_rng(2).integers(0, 256, 300, dtype=np.uint8)
    for at, blocks in ((0, 1), (3, 2), (44, 4)):
        low, high = fold(data, at, blocks, np.uint64(0xFFFFFFFF))
        folded = int(low).to_bytes(8, "little") + int(high).to_bytes(8, "little")
        # `zlib` turns all bits of the state before and after
        assert zlib.crc32(folded, 0xFFFFFFFF) == zlib.crc32(data[at : at + 64 * blocks].tobytes())


def test_text_hashes_need_no_more_than_the_padding():
    out = np.zeros(1, np.uint64)
    hash_texts(np.zeros(3, np.uint64), np.array([7]), np.array([1]), out)
    assert out[0]

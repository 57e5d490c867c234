"""Kernels that were compiled before are loaded, and none is compiled for it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

from windrow.kernels.index import cached_signatures
from windrow.kernels.loading import SECONDS_TO_COMPILE, compiled_count, load_kernels, seconds_to_compile
from windrow.splits.sorting import radix_order
from windrow.tricks import Trick, without

LOADING = """
from windrow.kernels.loading import load_kernels
from windrow.kernels.radix import radix_pass
loaded = load_kernels()
print(loaded, len(radix_pass.signatures), sum(radix_pass.stats.cache_misses.values()))
"""


def test_what_was_compiled_before_is_loaded():
    radix_order([np.arange(3, dtype=np.uint64)])
    done = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, check=True)
    loaded, signatures, compiled = map(int, done.stdout.split())
    assert loaded >= signatures >= 1
    assert compiled == 0


EMPTY = """
from windrow.kernels.loading import compiled_count, seconds_to_compile
print(compiled_count(), seconds_to_compile("merge"))
"""


def test_where_nothing_is_compiled_yet_a_merge_has_to_wait(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", EMPTY], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["0", str(SECONDS_TO_COMPILE)]


def test_what_is_compiled_is_counted():
    radix_order([np.arange(3, dtype=np.uint64)])
    assert compiled_count() >= 1
    assert seconds_to_compile("radix") == 0


def test_without_the_index_of_the_cache_nothing_counts_as_compiled():
    radix_order([np.arange(3, dtype=np.uint64)])
    with without(Trick.KERNEL_INDEX):
        assert compiled_count() == load_kernels() == 0
        assert seconds_to_compile("radix") == SECONDS_TO_COMPILE


def test_a_cache_of_another_form_counts_as_empty():
    assert cached_signatures(object()) == []

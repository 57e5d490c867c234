"""Kernels that were compiled before are loaded, and none is compiled for it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from windrow.splits.sorting import radix_order

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

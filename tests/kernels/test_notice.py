"""Somebody who waits for kernels to be compiled is told so, once, on stderr, and not where he asked for quiet."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMPILING = """
import logging, sys
import numpy as np
from windrow.kernels.notice import notice
from windrow.kernels.runs import take_codes, take_fixed

notice._patience = float(sys.argv[1])
logging.getLogger("windrow").setLevel(sys.argv[2])
rows = np.arange(3, dtype=np.int64)
for kind in (np.float64, np.int64):
    take_fixed(rows, rows.astype(kind), np.empty(3, kind))
print("done")
"""
LINE = "compiling kernels: the first use of an installation takes up to a minute longer"


@pytest.fixture
def compiling(tmp_path):
    """Runs kernels in a new process whose compiler has cached nothing yet."""

    def run(patience=0.0, level="WARNING"):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        arguments = [sys.executable, "-c", COMPILING, str(patience), level]
        return subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment)

    return run


def test_compiling_is_said_once_and_only_where_something_is_compiled(compiling):
    first, second = compiling(), compiling()
    assert first.stderr.count(LINE) == 1
    assert "`windrow compile`" in first.stderr
    assert first.stdout == second.stdout == "done\n"
    assert second.stderr == ""


def test_a_moment_of_compiling_needs_no_word(compiling):
    assert compiling(patience=600.0).stderr == ""


def test_who_wants_errors_alone_is_not_told(compiling):
    assert compiling(level="ERROR").stderr == ""

"""Commands have the collector run seldom; importing the package changes nothing of it."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from windrow.cli.collector import THRESHOLDS, collect_seldom
from windrow.tricks import Trick, without


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_it_runs_seldom():
    collect_seldom()
    assert gc.get_threshold() == THRESHOLDS


def test_it_runs_as_before_where_the_trick_is_off(thresholds):
    with without(Trick.RARE_COLLECTIONS):
        collect_seldom()
    assert gc.get_threshold() == thresholds


def test_a_command_sets_it_and_a_library_does_not():
    code = """
import gc, sys
before = gc.get_threshold()
import windrow
windrow.connect
print(gc.get_threshold() == before)
import windrow.cli.main as command
sys.argv = ["windrow", "--version"]
try:
    command.main()
except SystemExit:
    print(gc.get_threshold() == before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.split() if line in ("True", "False")] == ["True", "False"]

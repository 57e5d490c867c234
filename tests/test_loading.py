"""While modules are loaded the collector rests, and afterwards it is as it was."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from windrow.loading import loading
from windrow.tricks import Trick, without


@pytest.fixture(autouse=True)
def collector():
    yield
    gc.enable()


def test_it_rests_in_the_block_and_runs_again_after_an_error():
    def fail():
        with loading():
            assert not gc.isenabled()
            raise ImportError

    with pytest.raises(ImportError):
        fail()
    assert gc.isenabled()


def test_blocks_may_be_nested():
    with loading():
        with loading():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_one_that_the_user_turned_off_stays_so():
    gc.disable()
    with loading():
        pass
    assert not gc.isenabled()


def test_it_runs_on_where_the_trick_is_off():
    with without(Trick.QUIET_LOADING), loading():
        assert gc.isenabled()


def test_the_first_use_of_a_public_name_loads_its_module_so():
    code = """
import gc, windrow
collections = []
gc.callbacks.append(lambda phase, info: collections.append(phase))
windrow.connect
assert gc.isenabled()
print(len(collections))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 4

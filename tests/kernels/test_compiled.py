from __future__ import annotations

import numpy as np

from windrow.kernels.bare import load, memory
from windrow.kernels.compiled import kernel


@kernel
def total(array):
    """The sum of an array, taken from its bare memory."""
    values, found = memory(array), 0
    for place in range(array.size):
        found += values[place]
    return found


@kernel
def raise_all(array, by):
    values = memory(array)
    for place in range(array.size):
        values[place] += by


@kernel
def word_at(words, at):
    return load(memory(words), at)


def test_a_word_is_loaded_from_any_byte():
    data = np.random.default_rng(1).integers(0, 256, 40).astype(np.uint8)
    for at in range(24):
        assert word_at(data.view(np.uint64), at) == int.from_bytes(data[at : at + 8].tobytes(), "little")


def test_memory_is_read_and_written_in_place():
    array = np.arange(5)
    raise_all(array, 10)
    assert array.tolist() == [10, 11, 12, 13, 14]
    assert total(array) == 60


def test_an_array_without_elements_has_memory_too():
    assert total(np.zeros(0, np.int64)) == 0


def test_a_kernel_runs_without_the_interpreter_lock_and_is_cached():
    options = total.targetoptions
    assert options["nogil"]
    assert options["nopython"]
    assert total.stats.cache_path

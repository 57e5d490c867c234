"""The memory of a compaction is bounded for all merges together."""

from __future__ import annotations

import pytest
from benchmarks.memory import CONSTANT, MIB, TIMES, measured

import windrow
from windrow.compaction.compactor import Bounds
from windrow.errors import InvalidInput
from windrow.runners.memory import Shares


def test_twenty_times_the_budget_takes_the_budget_and_a_constant(tmp_path):
    budget = 8 * MIB
    found = measured("compaction", tmp_path, TIMES * budget, budget, 2)
    assert found["done"] > 1
    assert found["peak"] < budget + CONSTANT


@pytest.mark.long
@pytest.mark.parametrize("threads", [2, 64])
def test_larger_budgets_hold_too(tmp_path, threads):
    found = measured("compaction", tmp_path, TIMES * 128 * MIB, 128 * MIB, threads)
    assert found["peak"] < 128 * MIB + CONSTANT


def test_fewer_merges_run_at_once_where_memory_is_small():
    assert Bounds.of("128MiB", 2).local == Shares(1, 128 * MIB)
    assert Bounds.of("1GiB", 64).local == Shares(8, 128 * MIB)
    assert Bounds.of("1GiB", 64).of_a_task == 1024 * MIB
    assert Bounds.of(None, 1).local == Shares(1, 512 * MIB)


@pytest.mark.parametrize("wrong", [{"memory": "much"}, {"memory": -1}, {"memory": 1.5}, {"threads": 0}])
def test_what_cannot_be_used_is_refused_at_once(tmp_path, wrong):
    with windrow.connect(str(tmp_path / "lake")) as lake:
        noun = lake.create_table("events", sort="host|timestamp/V2").compact
        with pytest.raises(InvalidInput, match="memory: .* is not a size|threads: .* is not a number"):
            noun.run(**wrong)
        with pytest.raises(InvalidInput):
            noun.watch(**wrong)


def test_memory_is_given_as_text_or_as_bytes(tmp_path):
    with windrow.connect(str(tmp_path / "lake")) as lake:
        noun = lake.create_table("events", sort="host|timestamp/V2").compact
        assert noun.run(memory="128MiB").planned == noun.run(memory=2**27).planned == 0

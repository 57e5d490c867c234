"""Any sequence of things that can be done to a table keeps its rows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.proofs.table_machine import TableMachine

SHARDS = 200
"""So many times 50 sequences of 100 steps are the whole of it."""


def run(folder, examples, steps, number=0):
    @seed(number)
    class Machine(TableMachine):
        pass

    Machine.folder = folder
    patient = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, database=None, derandomize=False, **patient
        ),
    )


@pytest.mark.parametrize("number", range(8))
def test_any_sequence_keeps_the_rows(folder, number):
    run(folder, 25, 50, number)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_very_many_sequences_keep_the_rows(folder, shard):
    """Ten thousand sequences of a hundred steps, in shards that can be run one by one."""
    run(folder, 50, 100, number=1000 + shard)

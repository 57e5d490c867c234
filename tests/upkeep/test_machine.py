"""Any sequence of things that can be done to a table keeps its rows."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from windrow.testing.table_machine import TableMachine


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
def test_any_sequence_keeps_the_rows(tmp_path, number):
    run(tmp_path, 25, 50, number)


@pytest.mark.long
def test_very_many_sequences_keep_the_rows(tmp_path):
    """A step takes some 30 ms of a processor: WINDROW_MACHINE=10000x100 is a matter of eight hours."""
    examples, steps = os.environ.get("WINDROW_MACHINE", "1000x100").split("x")
    run(tmp_path, int(examples), int(steps), number=8)

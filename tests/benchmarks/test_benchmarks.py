"""Every benchmark still runs and prints what machines read."""

from __future__ import annotations

import importlib
import json

import pytest
from benchmarks.measure import names


@pytest.mark.parametrize("name", names())
def test_a_benchmark_runs_at_a_tiny_size_and_reports(name, capsys):
    importlib.import_module(f"benchmarks.{name}").main(["--tiny", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["name"] == name
    assert found["ratios"]
    assert all(isinstance(ratio, int | float) for ratio in found["ratios"].values())
    assert found["table"]
    assert found["versions"]["windrow"]

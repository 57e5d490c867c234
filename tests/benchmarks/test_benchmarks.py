"""Every benchmark still runs and prints what machines read."""

from __future__ import annotations

import importlib
import json

import pytest
from benchmarks.measure import names

ON_SPARK = ("ingest", "spark_joins", "spark_query")


def cases():
    marks = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
    return [pytest.param(name, marks=marks if name in ON_SPARK else []) for name in names()]


@pytest.mark.parametrize("name", cases())
def test_a_benchmark_runs_at_a_tiny_size_and_reports(name, capsys):
    importlib.import_module(f"benchmarks.{name}").main(["--tiny", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["name"] == name
    assert found["ratios"]
    assert all(isinstance(ratio, int | float) for ratio in found["ratios"].values())
    assert found["table"]
    assert found["versions"]["windrow"]
